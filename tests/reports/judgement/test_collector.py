"""Python's collector of cyclic garbage while replays run."""

import gc

import pytest

from reports.judgement.collector import collector_paused, collector_spared


@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_is_left_as_it_was_after_an_error_too(was_on):
    try:
        (gc.enable if was_on else gc.disable)()
        with collector_paused():
            assert not gc.isenabled()
        assert gc.isenabled() is was_on
        with pytest.raises(ZeroDivisionError), collector_paused():
            1 / gc.isenabled()
        assert gc.isenabled() is was_on
    finally:
        gc.enable()


def test_a_task_leaves_what_was_there_before_out_of_later_searches():
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
