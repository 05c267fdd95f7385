"""For how long clients demonstrably ran after their topics grew."""

from dataclasses import replace

import pytest

from reports.judgement.expectations import UNOWNED, Shortfall, had_time
from reports.judgement.members import Pace
from reports.timing import PACE_MS, PARTITIONS_NOTICED_MS
from tests.reports.judgement.test_recorded_leaders import MISSES, recording, tables
from tests.reports.page_run import made_up

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


def in_order(*requests: tuple[str, str, float]):
    return kept(*sorted(requests, key=lambda request: request[2]))


def test_the_time_counts_in_which_each_client_ran() -> None:
    assert kept() is None
    assert in_order(*beats("a", 0, 9_000)) == 7_000.0, "from the growth on"
    assert in_order(*beats("a", 0, 9_000), *beats("b", 5_000, 9_000)) == 3_500.0
    assert in_order(*beats("a", 1_000, 20_000)) == 8_400.0, "until the load is stopped"


def test_a_silent_client_may_not_have_run() -> None:
    early, late = beats("a", 1_000, 3_000), beats("a", 5_500, 9_000)
    assert in_order(*early, *late) == 2_800.0
    at_pace = ("a", "HEARTBEAT", early[-1][2] + PACE_MS)
    assert in_order(*early, at_pace, *late) == late[-1][2] - 1_000.0


def test_a_client_that_is_silent_throughout_may_not_have_run() -> None:
    others = (*beats("b", 0, 9_000), *beats("c", 0, 9_000))
    assert in_order(*others) == 7_000.0
    assert in_order(("a", "HEARTBEAT", 500.0), *others) == 0.0, "heard before the topic grew"
    assert in_order(("a", "HEARTBEAT", 1_200.0), *others) == 0.0, "heard once since"
    rejoins = ("b", "JOIN_GROUP", 6_000.0)
    assert in_order(("a", "HEARTBEAT", 500.0), *others, rejoins) == 0.0, "a change forgets nobody"


def test_a_client_counts_as_long_as_it_is_a_member() -> None:
    others, joins = beats("b", 0, 9_000), ("a", "JOIN_GROUP", 100.0)
    assert in_order(joins, *others) == 0.0
    assert in_order(joins, ("a", "LEAVE_GROUP", 500.0), *others) == 7_000.0, "it left"
    late = ("b", "JOIN_GROUP", 100.0 + SESSION_MS + 1)
    assert in_order(joins, *others, late) == 8_400.0 - late[2], "its session ended, and they know"
    soon = ("b", "JOIN_GROUP", 100.0 + SESSION_MS)
    assert in_order(joins, *others, soon) == 0.0, "its session may not have ended"


def test_without_a_growth_nothing_is_measured() -> None:
    pace = Pace()
    pace.heard("a", "HEARTBEAT", 1_000.0)
    assert pace.kept_ms is None


@pytest.mark.parametrize("api", ["JOIN_GROUP", "SYNC_GROUP"])
def test_a_group_that_changes_begins_anew(api: str) -> None:
    assert in_order(*beats("a", 1_000, 9_000), ("b", api, 6_000.0)) == 0.0
    assert in_order(*beats("a", 1_000, 9_000), ("a", api, 6_000.0)) == 2_700.0


def test_a_member_that_leaves_lets_the_others_begin_anew() -> None:
    assert in_order(*beats("a", 1_000, 9_000), ("b", "LEAVE_GROUP", 6_000.0)) == 8_700.0 - 6_600.0


@pytest.mark.parametrize(
    ("ran_ms", "enough"),
    [(None, False), (PARTITIONS_NOTICED_MS - 1, False), (PARTITIONS_NOTICED_MS, True)],
)
def test_clients_that_ran_had_the_time(tmp_path, ran_ms: float | None, enough: bool) -> None:
    run, *_ = made_up(tmp_path / "run").finish()
    wire = replace(LEFT, group="a wire script's")
    assert had_time(wire, ran_ms, run.experiment) == enough
    assert not had_time(LEFT, ran_ms, run.experiment), "it may keep metadata for five minutes"
    assert had_time(LEFT, 1_500_000.0, run.experiment)
    assert not had_time(replace(wire, what="rebalances"), ran_ms, run.experiment)
    assert not had_time(replace(wire, too_many=False), ran_ms, run.experiment)


@pytest.mark.parametrize("group", ["static", "old_leader_returns"])
def test_recorded_members_ran_on(group: str) -> None:
    (row,) = tables(MISSES, group)["groups"]
    grown_ms, end_ms = recording(MISSES).run.grown_ms
    assert PARTITIONS_NOTICED_MS < row["ran_ms"] < end_ms - grown_ms
