"""Logs that are odd in one way: the rebalance of `05.log` is read from each, and takes as long."""

import re
from collections.abc import Callable

import pytest

from tests.reports.incident.incident_here import RECORDED, incident_of, with_rows

LINES = (RECORDED.parent / "incidents" / "05.log").read_text("utf-8").splitlines(keepends=True)
"""Preparing at 10:00:00,000, stabilized at 10:00:03,000, assigned at 10:00:03,010; no brackets."""
NOISE = (
    "Dec 31 09:00:00 b1 kafka[12]: INFO [ReplicaManager broker=1] x (kafka.server.ReplicaManager)\n"
)
SYSLOG = {"10:00:00,000": "Dec 31 23:59:57", "10:00:03,0[01]0": "Jan 01 00:00:00"}


def syslog(line: str) -> str:
    for time, other in SYSLOG.items():
        line = re.sub(f"2026-01-05 {time}", f"{other} b1 kafka[12]:", line)
    return line


ODD: dict[str, tuple[Callable[[str], str], str, float]] = {
    "a thread's number as long as a time": (
        lambda line: line.replace(" INFO", " [pool tid=1767000000] INFO"), "", 3_010.0,
    ),
    "a new year, of dates without one": (syslog, "", 3_000.0),
    "half a character in JSON": (
        lambda line: '{"log": "' + line.rstrip().replace("group g1", "group g1\\ud83d") + '"}\n',
        "", 3_010.0,
    ),
    "no coordinator's line in the first megabyte": (
        syslog, NOISE * 15_000, 3_000.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_an_odd_log_tells_the_same(name: str) -> None:
    changed, before, took_ms = ODD[name]
    text = before + "".join(map(changed, LINES))
    incident, rows = with_rows({"app.log": text.encode()})
    assert [row["took_ms"] for row in rows] == [took_ms]
    assert incident["coverage"]["rejected"] == 0


def test_twelve_hours_are_not_twenty_four() -> None:
    afternoon = [line.replace(" INFO", " PM INFO") for line in LINES]
    incident = incident_of({"app.log": "".join([*LINES, *afternoon]).encode()})
    assert incident["coverage"]["rejected"] == len(LINES)


def test_repeats_within_a_second_fold_only_where_times_are_to_the_second() -> None:
    fenced = (
        "[2026-01-05 10:00:00,{}] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=3]"
        " Request memberId=a for static member with groupInstanceId=i is fenced by existing"
        " memberId=b during operation HEARTBEAT"
        " (org.apache.kafka.coordinator.group.GroupMetadataManager)\n"
    )
    for first in ("000", "001"):
        text = "".join(fenced.format(ms) for ms in (first, "300", "600"))
        coverage = incident_of({"app.log": text.encode()})["coverage"]
        assert (coverage["used"] + coverage["rejected"], coverage["copies"]) == (3, 0)
