import pytest

from loadtest.errors import LoadtestError
from loadtest.lease_pool import LeasePool


def test_everyone_gets_another_identity_until_none_is_left():
    pool = LeasePool(["static-0", "static-1"])
    assert [pool.lease(), pool.lease(), pool.lease()] == ["static-0", "static-1", None]


def test_a_freed_identity_is_leased_again_before_later_ones():
    pool = LeasePool(["static-0", "static-1", "static-2"])
    pool.lease(), pool.lease()
    pool.release("static-0")
    assert [pool.lease(), pool.lease()] == ["static-0", "static-2"]


@pytest.mark.parametrize("released", ["static-0", "unknown"])
def test_an_identity_that_is_not_leased_cannot_be_released(released):
    pool = LeasePool(["static-0"])
    with pytest.raises(LoadtestError, match="is not leased"):
        pool.release(released)
