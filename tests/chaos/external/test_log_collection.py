import os
import subprocess
import sys
import time
from math import ceil
from pathlib import Path

import pytest

from chaos.clusters.commands import MARK, end_under_way, marked
from chaos.errors import ClusterError
from chaos.external import log_collection
from chaos.external.log_collection import collect
from scenarios.external import Logs
from tests.chaos.fakes import until


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(log_collection, "LOG_QUIET_S", 0.3)
    monkeypatch.setattr(log_collection, "LOG_COMMAND_AGAIN_S", 0.1)


def line(number: int, at_ms: int | None = None) -> str:
    now = ceil(time.time() * 1000) if at_ms is None else at_ms  # no time before the collection
    return f"{number} {now} 1 main INFO body (logger)\n"


def test_a_file_is_copied_from_its_end_on_through_rotation_and_truncation(tmp_path: Path) -> None:
    file, copy = tmp_path / "7" / "group.log", tmp_path / "run" / "group.log"
    file.parent.mkdir()
    file.write_text(line(1) + "2 half a li")
    source = collect(Logs(folder=str(tmp_path)), 7, copy.parent)
    with file.open("a") as log:
        log.write("ne\n3 first\n4 sec")
    until(lambda: copy.read_text() == "3 first\n")
    with file.open("a") as log:
        log.write("ond\n")
    file.rename(file.with_name("group.log.1"))
    file.write_text("5 of the new file\n")
    copied = "3 first\n4 second\n5 of the new file\n"
    until(lambda: copy.read_text() == copied)
    os.truncate(file, 0)
    with file.open("a") as log:
        log.write("6 after\n")
    source.end()
    gap, last = copy.read_text().removeprefix(copied).splitlines()
    assert "truncated in place" in gap
    assert last == "6 after"


def test_a_broker_without_a_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no such log of broker 7"):
        collect(Logs(folder=f"{tmp_path}/{{broker}}"), 7, tmp_path / "run")


def test_a_command_that_prints_all_again_gives_each_new_line_once(tmp_path: Path) -> None:
    file, copy = tmp_path / "log", tmp_path / "run" / "group.log"
    old = line(1, 1_000_000_000_000)
    file.write_text(old)
    source = collect(Logs(command=f"cat {file}"), 1, copy.parent)
    wanted = ""
    for number in (2, 3):
        wanted += (new := line(number))
        with file.open("a") as log:
            log.write(new)
        until(lambda expected=wanted: copy.read_text() == expected)
    time.sleep(0.5)
    source.end()
    assert copy.read_text() == wanted


def test_a_command_that_begins_in_the_middle_gives_each_line_once(tmp_path: Path) -> None:
    """As `tail -n 3` does, and `kubectl logs --since`: another first line each time."""
    file, copy = tmp_path / "log", tmp_path / "brokers" / "1" / "group.log"
    at_ms = round(time.time() * 1000) + 60_000
    same = line(9, at_ms)
    wanted = [line(number, at_ms) for number in range(5)] + [same, same]
    file.write_text("".join(wanted[:5]))
    source = collect(Logs(command=f"tail -n 3 {file}"), 1, copy.parent)
    until(lambda: copy.read_text() == "".join(wanted[2:5]))
    for number in (6, 7):
        with file.open("a") as log:
            log.write(wanted[number - 1])
        until(lambda number=number: copy.read_text() == "".join(wanted[2:number]))
    time.sleep(0.5)
    source.end()
    assert copy.read_text() == "".join(wanted[2:])


def test_a_command_that_fails_makes_a_gap(tmp_path: Path) -> None:
    copy = tmp_path / "brokers" / "1" / "group.log"
    again = tmp_path / "again"  # the second time it is killed as the collection ends
    command = f"[ -e {again} ] && exec sleep 60; touch {again}; echo no such pod >&2; exit 3"
    source = collect(Logs(command=command), 1, copy.parent)
    until(lambda: source._code == 3 and source._process)
    source.end()
    assert "the log command fails with code 3; see logs-command.err" in copy.read_text()
    assert "no such pod" in (copy.parent / "logs-command.err").read_text()


def test_a_log_in_another_zone_makes_a_gap(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(log_collection, "LOG_LIVE_S", 0.1)
    copy = tmp_path / "brokers" / "1" / "group.log"
    script = "while sleep 0.2; do date -d '-5 hours' '+%F %T,000 main INFO body (logger)'; done"
    source = collect(Logs(command=script), 1, copy.parent)
    until(lambda: source._late_ms > 0)
    source.end()
    assert "the log has to be in UTC" in copy.read_text()


def test_a_copy_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    copy = tmp_path / "brokers" / "1" / "group.log"
    copy.parent.mkdir(parents=True)
    copy.symlink_to("/dev/full")
    new = line(1, round(time.time() * 1000) + 60_000).strip()
    source = collect(Logs(command=f"echo '{new}'; sleep 60"), 1, copy.parent)
    until(lambda: source._error is not None)
    with pytest.raises(ClusterError, match="No space left on device"):
        source.end()


def test_a_command_can_be_ended_at_any_moment(tmp_path: Path) -> None:
    """Also while it is being started again."""
    for _ in range(5):
        source = collect(Logs(command="true"), 1, tmp_path / "brokers" / "1")
        source.end()
        assert end_under_way(tmp_path / "brokers") == ()


def test_a_command_of_a_killed_runner_is_found(tmp_path: Path) -> None:
    into = tmp_path / "brokers" / "1"
    script = (
        "import time; from pathlib import Path\n"
        "from chaos.external.log_collection import CommandSource\n"
        f"CommandSource('sleep 60 | cat', Path({str(into)!r})); time.sleep(60)"
    )
    into.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", script]) as runner:
        until(lambda: len(tuple(marked(f"{MARK}={(tmp_path / 'brokers').resolve()}:"))) == 3)
        runner.kill()
    assert len(end_under_way(tmp_path / "brokers")) == 3
    assert end_under_way(tmp_path / "brokers") == ()
