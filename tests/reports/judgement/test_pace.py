"""For how long clients demonstrably ran after their topics grew."""

from dataclasses import replace

import pytest

from reports.judgement.expectations import UNOWNED, Shortfall, had_time
from reports.judgement.members import Pace
from reports.timing import PACE_MS, PARTITIONS_NOTICED_MS
from tests.reports.judgement.test_recorded_leaders import MISSES, recording, tables

LEFT = Shortfall("static", "the end", UNOWNED, "0", 2, too_many=True)


SESSION_MS = 6_000.0
"""What each JoinGroup here asks for."""


def kept(*heard: tuple[str, str, float], end_ms: float = 10_000.0) -> float | None:
    pace = Pace(1_000.0, end_ms)
    for client, api, at_ms in heard:
        pace.heard(client, api, at_ms, SESSION_MS if api == "JOIN_GROUP" else None)
    return pace.kept_ms


def beats(client: str, first_ms: int, last_ms: int, every_ms: int = 700):
    return [(client, "HEARTBEAT", float(at)) for at in range(first_ms, last_ms, every_ms)]


EARLY, LATE = beats("a", 1_000, 3_000), beats("a", 5_500, 9_000)
ONCE, SINCE = [("a", "HEARTBEAT", 500.0)], [("a", "HEARTBEAT", 1_200.0)]
OTHER = beats("b", 0, 9_000)
OTHERS = [*OTHER, *beats("c", 0, 9_000)]
JOINS, LEAVES = [("a", "JOIN_GROUP", 100.0)], [("a", "LEAVE_GROUP", 500.0)]
OVER_MS = 100.0 + SESSION_MS


@pytest.mark.parametrize(
    ("heard", "ran_ms"),
    [
        ([], None),
        (beats("a", 0, 9_000), 7_000.0),
        (beats("a", 0, 9_000) + beats("b", 5_000, 9_000), 3_500.0),
        (beats("a", 1_000, 20_000), 8_400.0),
        (EARLY + LATE, 2_800.0),
        ([*EARLY, ("a", "HEARTBEAT", EARLY[-1][2] + PACE_MS), *LATE], LATE[-1][2] - 1_000.0),
        (OTHERS, 7_000.0),
        (ONCE + OTHERS, 0.0),
        (SINCE + OTHERS, 0.0),
        ([*ONCE, *OTHERS, ("b", "JOIN_GROUP", 6_000.0)], 0.0),
        (JOINS + OTHER, 0.0),
        (JOINS + LEAVES + OTHER, 7_000.0),
        ([*JOINS, *OTHER, ("b", "JOIN_GROUP", OVER_MS + 1)], 8_400.0 - OVER_MS - 1),
        ([*JOINS, *OTHER, ("b", "JOIN_GROUP", OVER_MS)], 0.0),
        ([*beats("a", 1_000, 9_000), ("b", "JOIN_GROUP", 6_000.0)], 0.0),
        ([*beats("a", 1_000, 9_000), ("b", "SYNC_GROUP", 6_000.0)], 0.0),
        ([*beats("a", 1_000, 9_000), ("a", "JOIN_GROUP", 6_000.0)], 2_700.0),
        ([*beats("a", 1_000, 9_000), ("a", "SYNC_GROUP", 6_000.0)], 2_700.0),
        ([*beats("a", 1_000, 9_000), ("b", "LEAVE_GROUP", 6_000.0)], 8_700.0 - 6_600.0),
    ],
    ids=[
        "nobody", "from the growth on", "the client that ran for the shortest time",
        "until the load is stopped", "a silent client may not have run", "it sends at its pace",
        "others", "heard before the topic grew", "heard once since", "a change forgets nobody",
        "a member counts", "it left", "its session ended, and they know",
        "its session may not have ended", "another joins: anew", "another syncs: anew",
        "it joins: anew", "it syncs: anew", "another leaves: the others begin anew",
    ],
)  # fmt: skip
def test_the_time_counts_in_which_each_client_ran(heard, ran_ms):
    assert kept(*sorted(heard, key=lambda request: request[2])) == ran_ms


def test_without_a_growth_nothing_is_measured():
    pace = Pace()
    pace.heard("a", "HEARTBEAT", 1_000.0)
    assert pace.kept_ms is None


@pytest.mark.parametrize(
    ("ran_ms", "enough"),
    [(None, False), (PARTITIONS_NOTICED_MS - 1, False), (PARTITIONS_NOTICED_MS, True)],
)
def test_clients_that_ran_had_the_time(made, ran_ms, enough):
    run, *_ = made.finish()
    wire = replace(LEFT, group="a wire script's")
    assert had_time(wire, ran_ms, run.experiment) == enough
    assert not had_time(LEFT, ran_ms, run.experiment), "it may keep metadata for five minutes"
    assert had_time(LEFT, 1_500_000.0, run.experiment)
    assert not had_time(replace(wire, what="rebalances"), ran_ms, run.experiment)
    assert not had_time(replace(wire, too_many=False), ran_ms, run.experiment)


@pytest.mark.parametrize("group", ["static", "old_leader_returns"])
def test_recorded_members_ran_on(group):
    (row,) = tables(MISSES, group)["groups"]
    grown_ms, end_ms = recording(MISSES).run.grown_ms
    assert PARTITIONS_NOTICED_MS < row["ran_ms"] < end_ms - grown_ms
