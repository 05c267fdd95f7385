"""Rotated and compressed logs: the verdict names a file and the line in that file."""

import gzip
from pathlib import Path

import pytest

from reports.judgement.log.log_places import LogPlaces
from reports.judgement.missing.gaps import described, gap, whole_log
from tests.reports.conftest import Judge

PLACES = LogPlaces({"1": [(0, "brokers/1/group.log.1.gz"), (100, "brokers/1/group.log")]})


@pytest.mark.parametrize(
    ("broker", "line", "place"),
    [
        ("1", 1, ("brokers/1/group.log.1.gz", 1)),
        ("1", 100, ("brokers/1/group.log.1.gz", 100)),
        ("1", 101, ("brokers/1/group.log", 1)),
        ("1", 0, ("brokers/1/group.log", 0)),
        ("2", 101, ("brokers/2/group.log", 101)),
    ],
)
def test_the_place_of_a_line(broker: str, line: int, place: tuple[str, int]) -> None:
    assert PLACES.place(broker, line) == place


def test_a_gap_is_told_with_its_file() -> None:
    assert described(gap("1", 103, None, "cut"), PLACES) == "brokers/1/group.log:3: cut"
    assert described(whole_log("1", "gone"), PLACES) == "brokers/1/group.log: gone"


def rotated(log: Path, first: int, second: int) -> None:
    """Cut a log before two lines (from 0): a compressed file, a plain one, and what is left."""
    lines = log.read_bytes().splitlines(keepends=True)
    log.with_name("group.log.2.gz").write_bytes(gzip.compress(b"".join(lines[:first])))
    log.with_name("group.log.1").write_bytes(b"".join(lines[first:second]))
    log.write_bytes(b"".join(lines[second:]))


@pytest.mark.spark
def test_findings_name_the_line_in_its_file(judge: Judge, recorded: Path) -> None:
    """One answer is changed, which stands in the second file of three."""
    about = '"request":{"groupId":"static"'
    beats = lambda log: [
        number
        for number, line in enumerate(log.read_text().splitlines())
        if '"HEARTBEAT"' in line and about in line and '"errorCode":0' in line
    ]
    log = max(recorded.glob("brokers/*/group.log"), key=lambda log: len(beats(log)))
    changed = beats(log)[20]
    lines = log.read_text().splitlines(keepends=True)
    lines[changed] = lines[changed].replace('"errorCode":0', '"errorCode":27')
    log.write_text("".join(lines))
    rotated(log, changed - 6, changed + 50)
    verdict = judge(recorded)
    [root] = [finding for finding in verdict["findings"] if finding["root"]]
    place = {"broker": log.parent.name, "file": f"brokers/{log.parent.name}/group.log.1", "line": 7}
    assert root["log"] == place
    written = f"{place['file']}:{place['line']}"
    for name in ("counterexample.txt", "report.html", "junit.xml"):
        assert written in (recorded / name).read_text(), name
    assert verdict["verdict"] == "fail"
