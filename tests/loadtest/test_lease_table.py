import pytest

from loadtest.errors import LoadtestError
from loadtest.lease_table import LeaseTable
from loadtest.options import configs_of
from tests.loadtest.test_options import given

CONFIGS = configs_of(
    given("--static-members", "3", "--dynamic-members", "1", "--produce-rate", "1")
)
STATIC = tuple(f"groupquake-static-{number}" for number in range(3))
DYNAMIC = "groupquake-dynamic-0"


@pytest.fixture
def table():
    return LeaseTable(CONFIGS)


def names(*leased):
    return [client and client.name for client in leased]


def test_everyone_gets_another_client_of_a_kind_until_none_is_left(table):
    assert names(*(table.lease("static", holder) for holder in "abcd")) == [*STATIC, None]
    assert names(table.lease("dynamic"), table.lease("dynamic")) == [DYNAMIC, None]
    assert [table.lease("producer"), table.lease("producer")] == [CONFIGS.producers[0], None]


def test_a_freed_client_is_leased_again_before_later_ones(table):
    table.lease("static", "a"), table.lease("static", "b")
    table.release(STATIC[0], "a")
    assert names(table.lease("static"), table.lease("static")) == [STATIC[0], STATIC[2]]


def test_the_table_tells_who_has_what(table):
    table.lease("static", "a"), table.lease("static", "b"), table.lease("dynamic", "a")
    assert names(*table.held_by("a")) == [STATIC[0], DYNAMIC]
    assert (table.holder(STATIC[1]), table.holder(STATIC[2])) == ("b", None)
    assert STATIC[2] in table
    assert "nobody" not in table


def test_only_a_holder_can_release(table):
    table.lease("static", "a")
    for name, holder in ((STATIC[0], "b"), (STATIC[1], "a"), ("nobody", "")):
        with pytest.raises(LoadtestError, match="is not leased to"):
            table.release(name, holder)
