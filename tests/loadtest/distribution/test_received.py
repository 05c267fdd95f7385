"""A history that came in batches: lines are numbered, so that what is missing shows."""

from loadtest.distribution.received import Received


def came(*batches: tuple[int, list[str]], written: int | None) -> Received:
    received = Received()
    for first, lines in batches:
        received.take(first, lines)
    received.written = written
    return received


def test_a_whole_history_has_no_problem() -> None:
    assert came((1, ["a", "b"]), (3, ["c"]), written=3).problem is None
    assert came(written=0).problem is None


def test_a_hole_is_named_by_its_lines() -> None:
    received = came((1, ["a"]), (4, ["d"]), (6, ["f"]), written=6)
    assert received.problem == "lines 2-3, 5 are missing"


def test_a_first_batch_that_never_came_is_a_hole() -> None:
    assert came((3, ["c"]), written=3).problem == "lines 1-2 are missing"


def test_a_last_batch_that_never_came_is_a_hole() -> None:
    assert came((1, ["a"]), written=3).problem == "lines 2-3 are missing"


def test_a_worker_that_did_not_end_has_said_nothing() -> None:
    assert came((1, ["a"]), written=None).problem == "it did not say how many lines it wrote"
    assert came((2, ["b"]), written=None).problem == (
        "it did not say how many lines it wrote; lines 1 are missing"
    )


def test_lines_that_nobody_wrote_show() -> None:
    assert came((1, ["a", "b"]), written=1).problem == "2 lines came and it wrote 1"


def test_what_comes_twice_is_taken_once() -> None:
    received = Received()
    assert [*received.take(1, ["a", "b"]), *received.take(2, ["b", "c"])] == ["a", "b", "c"]
    received.written = 3
    assert received.problem is None


def test_a_worker_that_goes_on_has_not_ended() -> None:
    received = came((1, ["a"]), written=1)
    received.take(2, ["b"])
    assert received.problem == "it did not say how many lines it wrote"
