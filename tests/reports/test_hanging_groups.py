"""A group that hangs in a rebalance while its broker goes on: lies in recorded evidence.

Everything about the group from some line on is taken out, as if the coordinator had done no more.
A first rebalance cannot hang so: its JoinGroups are logged when it ends, and without them its lines
have no cause. Lines about fenced members are not compared: those of all groups stand in one table.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reference_coordinator.replay import EpochEvent
from reports.judgement.disturbances import Disturbances
from reports.judgement.findings import of_group
from reports.judgement.group import check_rows
from reports.judgement.missing.gaps import unlogged
from reports.judgement.recording import Recording
from reports.judgement.timelines.member_lines import OF_LOADS
from reports.timing import WAITS_MS
from tests.reports.alter import compared

Row = dict[str, Any]
SLACK_MS = 500.0
NO_LIE = ("match", "doubtful_line")


AFTER_DUE = pytest.mark.parametrize(
    ("after_ms", "found"), [(-50, False), (50, True), (9_000, True)]
)
"""How long after a line was due its broker writes its last line, and whether that is a finding."""


def hanging(recording: Recording, group: str, line: Row) -> list[Any]:
    """Return what the logs tell of a group before a line: the group comes no further."""
    last_ms = lambda row: row["at_ms"] if row["template"] else row["answered_ms"]
    return [row for row in recording.rows_by_group[group] if last_ms(row) < line["at_ms"] - 0.001]


def lines(recording: Recording, group: str, template: str, text: str = "") -> list[Any]:
    """Return some coordinator lines about a group, in order."""
    found = (row for row in recording.rows_by_group[group] if row["template"] == template)
    return sorted((row for row in found if text in row["message"]), key=lambda row: row["at_ms"])


def overdue(
    recording: Recording, group: str, line: Row, ended_ms: float, unlogged: Sequence[str] = ()
) -> list[str]:
    """Judge a group that hangs before a line, and whose broker wrote its last line at a time.

    Returns the lines that are due. Other differences follow from a request that is in no log:
    `unlogged` are their outcomes.
    """
    epochs = recording.context.epochs
    before = lambda events: [event for event in events if event.at_ms < ended_ms]
    of_brokers = [*before(epochs.of_brokers), EpochEvent(ended_ms, line["broker"], "ended")]
    of_partitions = {number: before(events) for number, events in epochs.of_partitions.items()}
    ended = replace(epochs, of_brokers=of_brokers, of_partitions=of_partitions)
    judge = replace(recording.context, epochs=ended, fenced=None)
    found = [
        row
        for _, row in compared(judge, group, hanging(recording, group, line))
        if row.get("outcome") not in (*NO_LIE, *unlogged) and row.get("kind") not in OF_LOADS
    ]
    assert {row.get("outcome") for row in found} <= {"missing_line"}
    return [f"{row['kind']} of {row['subject']}" for row in found]


def rebalance_timeout_ms(recording: Recording, group: str) -> float:
    seen = recording.evidence(group).requests
    return max(one.request["rebalanceTimeoutMs"] for one in seen if one.api == "JOIN_GROUP")


@pytest.mark.parametrize("group", ["failover", "leading", "removal"])
@AFTER_DUE
def test_a_generation_gets_an_assignment_or_ends(
    recording: Recording, group: str, after_ms: float, found: int
) -> None:
    assignment = lines(recording, group, "assignment")[0]
    (joined,) = lines(recording, group, "stabilized", " generation 1 ")
    due_ms = joined["at_ms"] + rebalance_timeout_ms(recording, group) + SLACK_MS
    due = overdue(recording, group, assignment, due_ms + after_ms)
    assert due == ["assignment of generation 1"] * found


@AFTER_DUE
def test_a_join_phase_ends(recording: Recording, after_ms: float, found: int) -> None:
    """A member leaves, and all others hang in the rebalance that begins."""
    (joined,) = lines(recording, "failover", "stabilized", " generation 2 ")
    begun_ms = [line["at_ms"] for line in lines(recording, "failover", "preparing")]
    began_ms = max(at_ms for at_ms in begun_ms if at_ms < joined["at_ms"])
    due_ms = began_ms + rebalance_timeout_ms(recording, "failover") + SLACK_MS
    due = overdue(recording, "failover", joined, due_ms + after_ms)
    assert due == ["stabilized of generation 2"] * found


@AFTER_DUE
def test_an_assignment_is_stored(recording: Recording, after_ms: float, found: int) -> None:
    """The leader's SyncGroup came, and is in no log: its write may take 5 s, and 1 s more."""
    assignment = lines(recording, "removal", "assignment")[0]
    due_ms = assignment["at_ms"] + 5_000.0 + 1_000.0
    received = {**assignment, "at_ms": assignment["at_ms"] + 0.01}
    due = overdue(recording, "removal", received, due_ms + after_ms, ("wrong_members",))
    assert due == ["assignment of generation 1"] * found


def test_a_kill_makes_it_unknown(recording: Recording) -> None:
    """What the broker had not answered then is in no log; what was due before should be there."""
    assignment = lines(recording, "removal", "assignment")[0]
    rows = hanging(recording, "removal", assignment)
    timeout_ms = max(rebalance_timeout_ms(recording, "removal"), WAITS_MS)
    tables: dict[str, list[Row]] = {"member_lines": [], "comparison": [], "violations": []}
    judge = replace(recording.context, fenced=None)
    for name, row in compared(judge, "removal", rows):
        if row.get("outcome") not in NO_LIE and row.get("kind") not in OF_LOADS:
            tables[name].append({"group": "removal", **row})
    (finding,) = of_group(tables)
    assert finding.kind == "missing_line"
    for killed_after_ms, proven in ((100.0, False), (timeout_ms + 2_100.0, True)):
        killed_ms = finding.at_ms + killed_after_ms
        killed = replace(judge, kills=((assignment["broker"], killed_ms - 10.0, killed_ms),))
        every = check_rows(killed, "removal", rows)
        gaps = [unlogged({"group": "removal", **row}) for name, row in every if name == "unlogged"]
        found = Disturbances(gaps, {}).judged([finding])
        assert [one.proven for one in found] == [proven]
