from pathlib import Path

from loadtest.distribution.spool import LINES, Spool
from loadtest.history import History


def test_lines_are_read_whole_and_once(tmp_path: Path) -> None:
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
    spool.close()


def test_a_message_holds_a_bounded_number_of_lines(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    history = History(spool.path)
    for _ in range(LINES + 1):
        history.write("created")
    history.close()
    sizes = []
    while lines := spool.new():
        sizes.append(len(lines))
        spool.taken(len(lines))
    spool.close()
    assert sizes == [LINES, 1]


def test_nothing_is_left_of_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert list(tmp_path.iterdir()) == [spool.path]
    spool.close()
    assert list(tmp_path.iterdir()) == []
