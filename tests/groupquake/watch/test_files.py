"""A log is read whole and in order, and counts once, whatever becomes of its file."""

import os
import shutil
from collections.abc import Iterator
from math import inf
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupquake.watch.counting import Counting, State
from groupquake.watch.files import FollowedFile, logs_of
from tests.groupquake.watch.outputs_here import preparing


@pytest.fixture
def log(tmp_path: Path) -> Iterator["Log"]:
    log = Log(tmp_path)
    yield log
    log.follower.close()


class Log:
    """A log that a test writes to, and its follower."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "server.log"
        self.state = State()
        self.wrote: list[str] = []
        self.read: list[str] = []
        self.begun: list[str] = []
        self.notices: list[str] = []
        self._tick_ns = 2 * 10**18
        self.start()

    def start(self, given: list[Path] | None = None) -> None:
        """Follow anew, from what is written down."""
        if hasattr(self, "follower"):
            self.follower.close()
        self.state = msgspec.json.decode(msgspec.json.encode(self.state), type=State)
        self.counting = Counting(self.state, ZoneInfo("UTC"))
        self.follower = FollowedFile(
            self.path, given or [self.path], self.state.written_ns, self._begins,
            self.notices.append,
        )  # fmt: skip

    def _begins(self, name: str) -> None:
        self.begun.append(name)
        self.counting.begins(name)

    def write(self, count: int = 1, end: str = "\n") -> None:
        for _ in range(count):
            line = preparing(len(self.wrote), generation=len(self.wrote))
            self.wrote.append(line)
            with self.path.open("a") as file:
                file.write(line + end)
        self._tick_ns += 10**9  # kernels write times in steps of milliseconds
        os.utime(self.path, ns=(self._tick_ns, self._tick_ns))

    def rotate(self) -> None:
        for number in range(9, 0, -1):
            part = self.path.with_name(f"server.log.{number}")
            if part.exists():
                part.rename(part.with_name(f"server.log.{number + 1}"))
        if self.path.exists():
            self.path.rename(self.path.with_name("server.log.1"))

    def copy_and_truncate(self) -> None:
        if self.path.exists():
            for number in range(9, 0, -1):
                part = self.path.with_name(f"server.log.{number}")
                if part.exists():
                    part.rename(part.with_name(f"server.log.{number + 1}"))
            shutil.copy2(self.path, self.path.with_name("server.log.1"))
            os.truncate(self.path, 0)

    def follow(self) -> None:
        """Read what there is, and what comes after the end of a file."""
        empty = 0
        while empty < 3:
            lines = self.follower.read(0)
            self.read += lines
            self.counting.take(str(self.path), lines, 0)
            empty = 0 if lines else empty + 1


STEPS = ["write", "rotate", "copy_and_truncate", "follow", "start"]


@given(st.lists(st.sampled_from(STEPS), max_size=25))
@settings(max_examples=150)
def test_every_line_is_read_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    log = Log(tmp_path_factory.mktemp("log"))
    log.write()
    log.follow()
    rotations = 0
    for step in steps:
        rotations += step in ("rotate", "copy_and_truncate")
        if rotations > 8:
            break
        if step in ("rotate", "copy_and_truncate"):
            log.write()
        getattr(log, step)()
    log.write()
    log.follow()
    log.follower.close()
    assert [*dict.fromkeys(log.read)] == log.wrote
    log.counting.settle(inf)
    (group,) = log.counting.view().groups
    assert group.causes == {"leave": len(log.wrote)}, "none is lost, and none counts twice"


def test_a_line_is_read_when_it_is_whole_or_its_file_is_left(log: Log) -> None:
    log.write(end="")
    log.follow()
    assert log.read == []
    log.rotate()
    log.write()
    log.follow()
    assert log.read == log.wrote


def test_lines_come_again_only_from_a_log_that_begins_again(log: Log) -> None:
    for _ in range(3):
        log.write(2)
        log.follow()
        log.rotate()
    assert log.read == log.wrote
    assert len(log.begun) == 1
    log.start()
    log.write()
    log.follow()
    assert log.read[6:] == log.wrote[4:], "the part that was read last, and what is new"
    assert len(log.begun) == 2


def test_a_log_that_is_not_there_yet_is_waited_for_and_read(tmp_path: Path) -> None:
    log = Log(tmp_path / "later")
    log.follow()
    log.path.parent.mkdir()
    log.write()
    log.rotate()
    log.write()
    log.follow()
    log.follower.close()
    assert log.read == log.wrote
    name = str(log.path)
    assert log.notices == [
        f"{name}: No such file or directory; it is waited for", f"{name}: is there now, and is read"
    ]  # fmt: skip


def test_rotated_parts_are_read_first(log: Log) -> None:
    for _ in range(3):
        log.write()
        log.rotate()
    log.write()
    ((path, given),) = logs_of(map(str, log.path.parent.iterdir())).items()
    assert path == log.path
    log.state = State()
    log.start(given)
    log.follow()
    assert log.read == log.wrote
