"""The history of a worker: read from its own disk in batches, which the master takes by number."""

from pathlib import Path

from loadtest.configs import ProducerConfig
from loadtest.history import History
from loadtest.workers.connected import ConnectedWorker
from loadtest.workers.worker import MOST_LINES, Spool


def problems(*batches: tuple[int, str], written: int | None) -> list[str]:
    """Return what is missing of a worker that sent such batches of one-letter lines."""
    worker = ConnectedWorker("w", took=True)
    for first, lines in batches:
        worker.take(first, list(lines), worker.heard_ms)
    worker.written = written
    prefix = "the history of w is not whole: "
    return [problem.removeprefix(prefix) for problem in worker.problems(())]


def test_what_is_missing_is_named_by_its_lines() -> None:
    silent = "it did not say how many lines it wrote"
    assert problems((1, "ab"), (3, "c"), written=3) == problems(written=0) == []
    assert problems((1, "a"), (4, "d"), (6, "f"), written=6) == ["lines 2-3, 5 are missing"]
    assert problems((3, "c"), written=3) == ["lines 1-2 are missing"]
    assert problems((1, "a"), written=3) == ["lines 2-3 are missing"]
    assert problems((1, "a"), written=None) == [silent]
    assert problems((2, "b"), written=None) == [f"{silent}; lines 1 are missing"]
    assert problems((1, "ab"), written=1) == ["2 lines came and it wrote 1"]
    [many] = problems(*((2 * n, "x") for n in range(1, 9)), written=16)
    assert many == "lines 1, 3, 5, 7, 9, … are missing"


def test_a_clock_that_is_off_by_more_than_100_ms_is_named() -> None:
    said = {}
    for ahead_ms in (-1_200.0, -100.0, 0.0, 100.0, 1_200.0):
        worker = ConnectedWorker("w", 10_000.0, took=True)
        for delay_ms in (500.0, 0.0):  # the fastest message counts
            worker.take(1, [], worker.heard_ms + ahead_ms - delay_ms)
        worker.written = 0
        said[ahead_ms] = list(worker.problems(()))
    assert said == {
        -1_200.0: ["the clock of w seems 1200 ms behind the master's"],
        **{ahead_ms: [] for ahead_ms in (-100.0, 0.0, 100.0)},
        1_200.0: ["the clock of w seems 1200 ms ahead of the master's"],
    }


def test_what_comes_twice_is_taken_once() -> None:
    worker = ConnectedWorker("w", took=True)
    taken = [*worker.take(1, ["a", "b"], 0.0), *worker.take(2, ["b", "c"], 0.0)]
    assert taken == ["a", "b", "c"]
    worker.written = 3
    worker.take(4, ["d"], 0.0)
    assert worker.written is None, "it goes on"


def test_a_worker_that_never_took_part_misses_nothing_and_a_lost_one_names_its_clients() -> None:
    had = [ProducerConfig("p", "orders", 1.0)]
    assert list(ConnectedWorker("w", lost_ms=1.0).problems(had)) == []
    [lost, _] = ConnectedWorker("w", 0.0, took=True, lost_ms=1_000.0).problems(had)
    assert lost == ("w was lost at 00:00:01.000 UTC, last heard of at 00:00:00.000 UTC, with p")
    [left] = ConnectedWorker("w", took=True, left=True, lost_ms=0.0, written=0).problems(())
    assert left == "w ended at 00:00:00.000 UTC, before the load; it closed its members"


def test_lines_are_read_whole_and_once_and_the_file_is_deleted(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with spool.path.open("ab", buffering=0) as writer:
        writer.write(b"one\ntw")
        assert spool.new() == spool.new() == ["one"]
        spool.taken(1)
        assert spool.new() == []
        writer.write(b"o\nthree\n")
        assert spool.new() == ["two", "three"]
        spool.taken(1)
        assert spool.new() == ["three"]
    assert list(tmp_path.iterdir()) == [spool.path]
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_a_message_holds_a_bounded_number_of_lines(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    history = History(spool.path)
    for _ in range(MOST_LINES + 1):
        history.write("created")
    history.close()
    sizes = []
    while lines := spool.new():
        sizes.append(len(lines))
        spool.taken(len(lines))
    spool.close()
    assert sizes == [MOST_LINES, 1]
