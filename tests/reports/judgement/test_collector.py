"""Python's collector of cyclic garbage while replays run."""

import gc

import pytest

from reports.judgement.collector import collector_paused, collector_spared


@pytest.mark.parametrize("collecting", [True, False])
def test_pythons_collector_is_left_as_it_was(*, collecting: bool) -> None:
    was_on = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        with collector_paused():
            assert not gc.isenabled()
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if was_on else gc.disable)()


def test_it_is_switched_on_again_after_an_error() -> None:
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collector_paused():
        1 / 0  # noqa: B018 (it is to raise)
    assert gc.isenabled()


def test_a_task_leaves_what_was_there_before_out_of_later_searches() -> None:
    old = ["made before the task"]
    try:
        with collector_spared():
            assert not gc.isenabled()
            new = ["made in the task"]
        searched = {id(one) for one in gc.get_objects()}
        assert gc.isenabled()
        assert (id(old) in searched, id(new) in searched) == (False, True)
    finally:
        gc.unfreeze()
