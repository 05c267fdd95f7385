"""Coordinators that come and go: what the next one finds, and what a replaced one may still say."""

from collections.abc import Iterable

import pytest

from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import Error
from reference_coordinator.replay import EpochEvent, Hint, HintKind, Outage, Stall
from reference_coordinator.replay.coordinator_epochs import StoredRecords
from reference_coordinator.replay.result import Stored
from tests.reference_coordinator.replay.conftest import (
    IDS,
    START,
    Scenario,
    beating,
    both_join,
    rejoin,
    unexplained,
    wrong,
)

AGAIN = Error.REBALANCE_IN_PROGRESS
B_STAYS = (3_210, 4_210, 5_210, 6_210)
"""When b sends heartbeats to broker 2, so that its session goes on."""


def epoch_event(at: float, broker: str, *kinds: str) -> list[EpochEvent]:
    """A broker's doings, 10 ms apart."""
    return [EpochEvent(START + at + 10 * n, broker, kind) for n, kind in enumerate(kinds)]


def transition(at: int = 3_000, b_stays: Iterable[float] = ()) -> Scenario:
    """Broker 1 serves the stable group; from `at` on broker 2 does, and both members go there."""
    scenario = beating(2_500)
    scenario.epoch_events = [
        *epoch_event(-300, "1", "started", "loading", "loaded"),
        *epoch_event(-250, "2", "started"),
        *epoch_event(at, "2", "loading", "loaded"),
    ]
    scenario.heartbeats("a", at + 200, at + 3_700, broker="2")
    for when in b_stays:
        scenario.heartbeat("b", when, broker="2")
    return scenario


def before(scenario: Scenario, at: float) -> None:
    """Leave out the requests after a time."""
    scenario.requests = [seen for seen in scenario.requests if seen.at_ms < START + at]


def assert_lies(scenario: Scenario, request: str, error: int) -> None:
    """Check that all is explained, and not with that one error instead."""
    assert scenario.replay().violations == ()
    scenario.change(request, errorCode=error)
    assert wrong(scenario.replay()) == [request]


def test_the_next_coordinator_finds_the_members_and_their_generation() -> None:
    outcome = transition(b_stays=B_STAYS).replay()
    assert outcome.violations == ()
    assert unexplained(outcome) == []


def test_only_a_record_that_was_written_makes_certain_what_a_coordinator_loads() -> None:
    """The replay notes the write when it starts, and its failure when that is answered."""
    records = StoredRecords()
    records.stored.append((1, Stored(1.0, None, "1:1")))
    assert not records.uncertain
    records.skip()
    mark = records.mark()
    assert records.uncertain
    records.stored.append((1, Stored(2.0, None, "1:2")))
    assert not records.uncertain
    records.stored.append((1, Stored(3.0, None, "1:2", failed=True)))
    assert records.uncertain
    records.stored.append((1, Stored(4.0, None)))
    assert not records.uncertain
    records.back_to(mark)
    assert records.uncertain


def test_what_was_not_stored_is_lost_with_the_coordinator() -> None:
    """The leader never syncs the second generation, so that broker 2 still has the first."""
    scenario = transition()
    before(scenario, 2_900)
    both_join(scenario, 2_600, 2)
    scenario.heartbeat("a", 3_200, broker="2")
    assert_lies(scenario, "HEARTBEAT:a:3200", Error.ILLEGAL_GENERATION)


@pytest.mark.parametrize(
    ("line_after_ms", "in_outage", "fails"),
    [(300, True, True), (300, False, False), (1_100, True, False), (None, True, False)],
)
@pytest.mark.parametrize(
    "kind", [AppendError.NOT_LEADER, AppendError.NOT_REPLICATED, AppendError.APPENDED]
)
def test_a_write_that_no_request_waits_for_fails_by_the_line_of_its_broker(
    line_after_ms: float | None, kind: AppendError, *, in_outage: bool, fails: bool
) -> None:
    """Both sessions end at 5510: the group is empty. Broker 2 takes it over, with its members."""
    scenario = transition(7_000)
    before(scenario, 2_600)
    fails &= kind is not AppendError.APPENDED
    if line_after_ms is not None:
        scenario.epoch_events.insert(-2, EpochEvent(START + 5_510 + line_after_ms, "1", kind))
    scenario.epoch_events[-2:-2] = epoch_event(6_700, "1", "unloaded")
    if in_outage:
        scenario.outages = [Outage(START + 5_000, START + 8_000)]
    scenario.heartbeat("a", 7_200, broker="2")
    outcome = scenario.replay()
    assert wrong(outcome) == ([] if fails else ["HEARTBEAT:a:7200"])
    assert outcome.bound.get("failed_write", 0) == fails


def test_sessions_begin_anew_with_the_load() -> None:
    """b was last heard at 2510 and has a session of 3 s: it ends at 6010, not at 5510."""
    scenario = transition()
    for when in (6_200, 6_700):
        scenario.change(f"HEARTBEAT:a:{when}", errorCode=AGAIN)
    outcome = scenario.replay()
    assert outcome.violations == ()
    row = outcome.rows[-1]
    assert (row.reason, row.incarnation) == ("session_expired", 2)
    assert row.started_ms == pytest.approx(START + 6_010)


class TestPausedCoordinator:
    """Broker 1 stands still from 2600 on, and does not know that it was replaced."""

    def test_an_old_coordinator_answers_from_memory_until_it_unloads(self) -> None:
        scenario = transition(b_stays=B_STAYS)
        scenario.epoch_events += epoch_event(6_050, "1", "unloaded")
        scenario.heartbeat("b", 6_005)
        scenario.heartbeat("a", 6_100, error=Error.NOT_COORDINATOR)
        assert_lies(scenario, "HEARTBEAT:a:6100", Error.NONE)

    @pytest.mark.parametrize(
        ("unloaded", "release", "explained"),
        [
            (6_150, "3.9-scala", True),
            (5_600, "3.9-scala", True),
            (5_580, "3.9-scala", False),
            (6_220, "3.9-scala", False),
            (6_150, "3.9-java", False),
        ],
    )
    def test_a_request_under_way_as_its_group_is_unloaded_finds_it_dead(
        self, unloaded: float, release: str, *, explained: bool
    ) -> None:
        scenario = transition(b_stays=B_STAYS)
        scenario.epoch_events += epoch_event(unloaded, "1", "unloaded")
        scenario.heartbeat(
            "a", 6_150, Error.COORDINATOR_NOT_AVAILABLE, answered=6_202, before=50, latest=6_200
        )
        outcome = scenario.replay(rules=release)
        assert wrong(outcome) == ([] if explained else ["HEARTBEAT:a:6150"])
        assert outcome.bound.get("unloaded_meanwhile", 0) == explained

    def test_an_old_coordinator_may_expire_sessions_late(self) -> None:
        """Both sessions ended by 5510, while broker 1 stood still; then it hears a first."""
        scenario = transition(b_stays=B_STAYS)
        scenario.heartbeat("a", 6_305)
        scenario.heartbeat("a", 6_600, error=AGAIN)
        assert "HEARTBEAT:a:6305" in wrong(scenario.replay())
        scenario.stalls = [Stall("1", START + 2_600, START + 6_300)]
        assert wrong(scenario.replay()) == []

    def test_writes_of_an_old_coordinator_do_not_count(self) -> None:
        scenario = transition(2_600)
        before(scenario, 2_600)
        rejoin(scenario, 3_000, 2)  # on broker 1, which was replaced at 2600
        scenario.epoch_events += epoch_event(5_000, "3", "loading", "loaded")
        scenario.heartbeat("a", 5_200, broker="3")
        assert_lies(scenario, "HEARTBEAT:a:5200", Error.ILLEGAL_GENERATION)


def test_a_broker_that_was_killed_remembers_nothing() -> None:
    scenario = transition(b_stays=B_STAYS)
    scenario.epoch_events += epoch_event(5_000, "1", "started")
    scenario.heartbeat("b", 5_500, error=Error.NOT_COORDINATOR)
    assert_lies(scenario, "HEARTBEAT:b:5500", Error.NONE)


def test_a_group_lost_from_sight_is_found_again_under_the_next_coordinator() -> None:
    """REBALANCE_IN_PROGRESS again and again without a reason; then the coordinator dies."""
    scenario = beating(3_500, AGAIN)
    scenario.epoch_events = [
        *epoch_event(-300, "1", "started", "loading", "loaded"),
        *epoch_event(4_000, "2", "started", "loading", "loaded"),
    ]
    unanswered = scenario.heartbeat("a", 4_200, broker="2")
    both_join(scenario, 4_500, 2, broker="2")
    outcome = scenario.replay()
    assert wrong(outcome) == ["HEARTBEAT:a:1500"]
    assert unanswered in unexplained(outcome)
    assert outcome.bound["census"] == 1


class TestSilence:
    """The group's last line is b's heartbeat at 2510; its broker goes on to write of others."""

    def silent(self, last: float) -> Scenario:
        scenario = beating(2_500)
        scenario.epoch_events = [
            *epoch_event(-300, "1", "started", "loading", "loaded"),
            *epoch_event(last, "1", "ended"),
        ]
        return scenario

    @pytest.mark.parametrize(
        ("last", "expired"),
        [(5_990, ""), (6_005, "a"), (6_100, "ab")],
        ids=["both may be late", "a's session may end as late as 6000", "b's as late as 6010"],
    )
    def test_after_a_group_s_last_line_sessions_end_all_the_same(
        self, last: float, expired: str
    ) -> None:
        outcome = self.silent(last).replay()
        assert outcome.violations == ()
        due = [line.subject for line in outcome.expected_lines if line.line == "session_expired"]
        assert due == [IDS[who] for who in expired]
        reasons = [row.reason for row in outcome.rows[1:]]
        assert reasons == ["session_expired"] * bool(expired)
        assert (outcome.rows[-1].ended_as == "empty") == (expired == "ab")

    def test_an_expiry_logged_before_the_end_is_not_late(self) -> None:
        scenario = self.silent(5_990)
        scenario.hints = [
            Hint(START + 5_520 + n, HintKind.SESSION_EXPIRED, IDS[who])
            for n, who in enumerate("ab")
        ]
        assert [row.started_ms for row in scenario.replay().rows[1:]] == [START + 5_520]

    def test_a_member_with_a_pending_request_keeps_its_session(self) -> None:
        """Both rejoined; a request is logged once it is answered, and these never were."""
        scenario = self.silent(9_000)
        scenario.leave("b", 2_700)
        scenario.heartbeat("a", 2_800, error=AGAIN)
        outcome = scenario.replay()
        assert [row.ended_as for row in outcome.rows] == ["assigned", "open"]
        assert "session_expired" not in {line.line for line in outcome.expected_lines}

    def test_a_broker_that_gave_the_group_up_or_stood_still_ends_no_session(self) -> None:
        scenario = self.silent(9_000)
        scenario.epoch_events += epoch_event(3_000, "1", "unloaded")
        assert len(scenario.replay().rows) == 1
        scenario = self.silent(9_000)
        scenario.stalls = [Stall("1", START + 2_600, START + 9_000)]
        assert len(scenario.replay().rows) == 1


@pytest.mark.parametrize(
    ("taken", "answered", "explained"),
    [(2_985, 3_005, True), (2_985, 2_988, True), (2_975, 2_984, False), (4_400, 4_405, False)],
)
def test_a_request_answered_with_loading_arrived_after_the_load_began(
    taken: float, answered: float, *, explained: bool
) -> None:
    """A JoinGroup is taken up before the broker begins to load at 3000, and may wait for its turn.

    The line of 3000 may be printed 15 ms (`Tolerance.line`) after the broker marked the partition.
    By 4400 the group is loaded.
    """
    scenario = transition(b_stays=B_STAYS)
    request = scenario.join(
        "b", taken, answered, error=Error.COORDINATOR_LOAD_IN_PROGRESS, known=IDS["b"], broker="2"
    )
    assert wrong(scenario.replay()) == ([] if explained else [request])


def test_a_broker_begins_to_load_somewhere_between_its_two_lines() -> None:
    """While it loads, it answers heartbeats with no error: nothing that b could do about it."""
    scenario = transition(b_stays=(3_100, 3_300, *B_STAYS[1:]))
    scenario.epoch_events = [s for s in scenario.epoch_events if s.broker != "2"]
    scenario.epoch_events += epoch_event(2_990, "2", "loading") + epoch_event(3_150, "2", "loaded")
    scenario.heartbeat("b", 3_050, error=Error.NOT_COORDINATOR, broker="2")
    assert_lies(scenario, "HEARTBEAT:b:3300", Error.NOT_COORDINATOR)


class TestBrokerThatStartsBehindClosedDoors:
    """It loads the group at 3000 and takes requests from 8000 on; both sessions take 3 s."""

    def restarted(self, error: int) -> Scenario:
        scenario = beating(2_500)
        scenario.epoch_events = [
            *epoch_event(-300, "1", "started", "opened", "loading", "loaded"),
            *epoch_event(3_000, "1", "started", "loading", "loaded"),
            *epoch_event(8_000, "1", "opened"),
        ]
        scenario.heartbeat("a", 8_100, error)
        scenario.heartbeat("b", 8_110, error)
        return scenario

    @pytest.mark.parametrize("promised", [False, True])
    def test_kafka_ends_sessions_meanwhile_and_the_proposal_does_not(
        self, *, promised: bool
    ) -> None:
        gone, alive = (self.restarted(e).replay(promised=promised) for e in (25, 0))
        right, lie = (alive, gone) if promised else (gone, alive)
        assert right.violations == ()
        assert wrong(lie)[0] == "HEARTBEAT:a:8100"
        if not promised:
            assert right.rows[-1].ended_as == "empty"

    def test_a_session_longer_than_the_epoch_has_no_effect(self) -> None:
        scenario = self.restarted(0)
        scenario.epoch_events = [s for s in scenario.epoch_events if s.at_ms < START + 7_000]
        scenario.epoch_events += epoch_event(3_500, "1", "opened")
        before(scenario, 8_000)
        scenario.heartbeats("a", 3_600, 9_600)
        for at in range(7_600, 9_601, 1_000):
            scenario.change(f"HEARTBEAT:a:{at}", errorCode=AGAIN)
        outcome = scenario.replay(promised=True)
        assert outcome.rows[-1].started_ms == pytest.approx(START + 6_500, abs=100)
