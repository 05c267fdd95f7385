"""Coordinators that come and go: what the next one finds, and what a replaced one may still say."""

import pytest

from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import Error
from reference_coordinator.classic.releases import PROFILES
from reference_coordinator.replay import EpochEvent, Hint, HintKind, Outage, Stall
from reference_coordinator.replay.coordinator_epochs import StoredRecords
from reference_coordinator.replay.result import Stored
from tests.reference_coordinator.replay.conftest import (
    IDS,
    PROFILE,
    START,
    Scenario,
    rejoin,
    stable,
    unexplained,
    wrong,
)

APPENDS = (AppendError.NOT_LEADER, AppendError.NOT_REPLICATED, AppendError.APPENDED)


def epoch_event(at: float, broker: str, *kinds: str) -> list[EpochEvent]:
    """A broker's doings, 10 ms apart."""
    return [EpochEvent(START + at + 10 * n, broker, kind) for n, kind in enumerate(kinds)]


def transition(at: float = 3_000) -> Scenario:
    """Broker 1 serves the stable group; from `at` on broker 2 does, and both members go there."""
    scenario = stable()
    scenario.epoch_events = [
        *epoch_event(-300, "1", "started", "loading", "loaded"),
        *epoch_event(-250, "2", "started"),
        *epoch_event(at, "2", "loading", "loaded"),
    ]
    scenario.heartbeats("a", 1_500, 2_500)
    scenario.heartbeats("b", 1_510, 2_510)
    for when in range(int(at) + 200, int(at) + 4_000, 500):
        scenario.heartbeat("a", when, broker="2")
    return scenario


def test_the_next_coordinator_finds_the_members_and_their_generation() -> None:
    scenario = transition()
    for when in (3_210, 4_210, 5_210):
        scenario.heartbeat("b", when, broker="2")
    outcome = scenario.replay()
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
    scenario = transition()
    # the leader never syncs the second generation, so that broker 2 still has the first
    scenario.requests = [seen for seen in scenario.requests if seen.at_ms < START + 2_900]
    for who, when in (("a", 2_600), ("b", 2_640)):
        members = "ab" if who == "a" else ""
        scenario.join(who, when, 2_642, generation=2, known=IDS[who], members=members)
    scenario.heartbeat("a", 3_200, broker="2")
    assert scenario.replay().violations == ()
    scenario.change("HEARTBEAT:a:3200", errorCode=Error.ILLEGAL_GENERATION)
    assert wrong(scenario.replay()) == ["HEARTBEAT:a:3200"]


@pytest.mark.parametrize(
    ("line_after_ms", "in_outage", "fails"),
    [(300, True, True), (300, False, False), (1_100, True, False), (None, True, False)],
)
@pytest.mark.parametrize("kind", APPENDS)
def test_a_write_that_no_request_waits_for_fails_by_the_line_of_its_broker(
    line_after_ms: float | None, kind: AppendError, *, in_outage: bool, fails: bool
) -> None:
    """Both sessions end at 5510: the group is empty. Broker 2 takes it over, with its members."""
    scenario = transition(7_000)
    empty_ms = 5_510
    scenario.requests = [seen for seen in scenario.requests if seen.at_ms < START + 2_600]
    scenario.epoch_events = [
        *scenario.epoch_events[:-2],
        *epoch_event(6_700, "1", "unloaded"),
        *epoch_event(7_000, "2", "loading", "loaded"),
    ]
    fails &= kind is not AppendError.APPENDED
    if line_after_ms is not None:
        failed = EpochEvent(START + empty_ms + line_after_ms, "1", kind)
        scenario.epoch_events.insert(-3, failed)
    if in_outage:
        scenario.outages = [Outage(START + 5_000, START + 8_000)]
    scenario.heartbeat("a", 7_200, broker="2")
    outcome = scenario.replay()
    assert wrong(outcome) == ([] if fails else ["HEARTBEAT:a:7200"])
    assert outcome.bound.get("failed_write", 0) == fails


def test_sessions_begin_anew_with_the_load() -> None:
    scenario = transition()
    # b was last heard at 2510 and has a session of 3 s: it ends at 6010, not at 5510
    for when in range(3_200, 7_000, 500):
        scenario.change(
            f"HEARTBEAT:a:{when}", errorCode=Error.REBALANCE_IN_PROGRESS if when > 6_010 else 0
        )
    outcome = scenario.replay()
    assert outcome.violations == ()
    assert (outcome.rows[-1].reason, outcome.rows[-1].incarnation) == ("session_expired", 2)
    assert outcome.rows[-1].started_ms == pytest.approx(START + 6_010)


class TestPausedCoordinator:
    def paused(self) -> Scenario:
        """Broker 1 stands still from 2600 on, and does not know that it was replaced."""
        scenario = transition()
        for when in (3_210, 4_210, 5_210, 6_210):
            scenario.heartbeat("b", when, broker="2")
        return scenario

    def test_an_old_coordinator_answers_from_memory_until_it_unloads(self) -> None:
        scenario = self.paused()
        scenario.epoch_events += epoch_event(6_050, "1", "unloaded")
        scenario.heartbeat("b", 6_005)
        scenario.heartbeat("a", 6_100, error=Error.NOT_COORDINATOR)
        outcome = scenario.replay()
        assert outcome.violations == ()
        scenario.change("HEARTBEAT:a:6100", errorCode=0)
        assert wrong(scenario.replay()) == ["HEARTBEAT:a:6100"]

    @pytest.mark.parametrize(
        ("unloaded", "profile", "explained"),
        [
            (6_150, "3.9-scala", True),
            (5_600, "3.9-scala", True),
            (5_580, "3.9-scala", False),
            (6_220, "3.9-scala", False),
            (6_150, "3.9-java", False),
        ],
    )
    def test_a_request_under_way_as_its_group_is_unloaded_finds_it_dead(
        self, unloaded: float, profile: str, *, explained: bool
    ) -> None:
        scenario = self.paused()
        scenario.epoch_events += epoch_event(unloaded, "1", "unloaded")
        scenario.heartbeat("a", 6_150, error=Error.COORDINATOR_NOT_AVAILABLE, answered=6_202)
        scenario.alter_last(earliest_ms=START + 6_100, latest_ms=START + 6_200)
        outcome = scenario.replay(rules=PROFILES[profile].with_settings(PROFILE.settings))
        assert wrong(outcome) == ([] if explained else ["HEARTBEAT:a:6150"])
        assert outcome.bound.get("unloaded_meanwhile", 0) == explained

    def test_an_old_coordinator_may_expire_sessions_late(self) -> None:
        scenario = self.paused()
        # both sessions ended by 5510, while broker 1 stood still; then it hears a first
        scenario.heartbeat("a", 6_305)
        scenario.heartbeat("a", 6_600, error=Error.REBALANCE_IN_PROGRESS)
        assert "HEARTBEAT:a:6305" in wrong(scenario.replay())
        scenario.stalls = [Stall("1", START + 2_600, START + 6_300)]
        assert wrong(scenario.replay()) == []

    def test_writes_of_an_old_coordinator_do_not_count(self) -> None:
        scenario = transition(2_600)
        scenario.requests = [seen for seen in scenario.requests if seen.at_ms < START + 2_600]
        rejoin(scenario, 3_000, 2)  # on broker 1, which was replaced at 2600
        scenario.epoch_events += epoch_event(5_000, "3", "loading", "loaded")
        scenario.heartbeat("a", 5_200, broker="3")
        assert scenario.replay().violations == ()
        scenario.change("HEARTBEAT:a:5200", errorCode=Error.ILLEGAL_GENERATION)
        assert wrong(scenario.replay()) == ["HEARTBEAT:a:5200"]


def test_a_broker_that_was_killed_remembers_nothing() -> None:
    scenario = transition()
    scenario.epoch_events += epoch_event(5_000, "1", "started")
    scenario.heartbeat("b", 5_500, error=Error.NOT_COORDINATOR)
    for when in (3_210, 4_210, 5_210, 6_210):
        scenario.heartbeat("b", when, broker="2")
    assert scenario.replay().violations == ()
    scenario.change("HEARTBEAT:b:5500", errorCode=0)
    assert wrong(scenario.replay()) == ["HEARTBEAT:b:5500"]


def test_a_group_lost_from_sight_is_found_again_under_the_next_coordinator() -> None:
    scenario = stable()
    scenario.epoch_events = [
        *epoch_event(-300, "1", "started", "loading", "loaded"),
        *epoch_event(4_000, "2", "started", "loading", "loaded"),
    ]
    # REBALANCE_IN_PROGRESS again and again without a reason; then the coordinator dies
    scenario.heartbeats("a", 1_500, 3_500, error=Error.REBALANCE_IN_PROGRESS)
    scenario.heartbeats("b", 1_510, 3_510, error=Error.REBALANCE_IN_PROGRESS)
    unanswered = scenario.heartbeat("a", 4_200, broker="2")
    for who, when in (("a", 4_500), ("b", 4_540)):
        members = "ab" if who == "a" else ""
        scenario.join(who, when, 4_542, generation=2, known=IDS[who], members=members, broker="2")
    outcome = scenario.replay()
    assert wrong(outcome) == ["HEARTBEAT:a:1500"]
    assert unanswered in unexplained(outcome)
    assert outcome.bound["census"] == 1


class TestSilence:
    """The group's last line is b's heartbeat at 2510; its broker goes on to write of others."""

    def silent(self, last: float) -> Scenario:
        scenario = stable()
        scenario.heartbeats("a", 1_500, 2_500)
        scenario.heartbeats("b", 1_510, 2_510)
        scenario.epoch_events = [
            *epoch_event(-300, "1", "started", "loading", "loaded"),
            *epoch_event(last, "1", "ended"),
        ]
        return scenario

    def test_after_a_group_s_last_line_sessions_end_all_the_same(self) -> None:
        outcome = self.silent(6_100).replay()
        assert outcome.violations == ()
        ended = [line.subject for line in outcome.expected_lines if line.line == "session_expired"]
        assert ended == [IDS["a"], IDS["b"]]
        assert (outcome.rows[-1].reason, outcome.rows[-1].ended_as) == ("session_expired", "empty")

    def test_what_may_be_late_is_not_due_before_the_broker_ends(self) -> None:
        # a's session may end as late as 6000, b's as late as 6010
        assert len(self.silent(5_990).replay().rows) == 1
        assert len(self.silent(6_005).replay().rows) == 2

    def test_an_expiry_logged_before_the_end_is_not_late(self) -> None:
        scenario = self.silent(5_990)
        scenario.hints = [
            Hint(START + 5_520 + n, HintKind.SESSION_EXPIRED, IDS[who])
            for n, who in enumerate("ab")
        ]
        assert [row.started_ms for row in scenario.replay().rows[1:]] == [START + 5_520]

    def test_a_member_with_a_pending_request_keeps_its_session(self) -> None:
        # both rejoined; a request is logged once it is answered, and these never were
        scenario = self.silent(9_000)
        scenario.leave("b", 2_700)
        scenario.heartbeat("a", 2_800, error=Error.REBALANCE_IN_PROGRESS)
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
    scenario = transition()
    request = scenario.join(
        "b", taken, answered, error=Error.COORDINATOR_LOAD_IN_PROGRESS, known=IDS["b"], broker="2"
    )
    for when in (3_210, 4_210, 5_210):
        scenario.heartbeat("b", when, broker="2")
    assert wrong(scenario.replay()) == ([] if explained else [request])


def test_a_broker_begins_to_load_somewhere_between_its_two_lines() -> None:
    scenario = transition()
    scenario.epoch_events = [s for s in scenario.epoch_events if s.broker != "2"]
    scenario.epoch_events += [
        EpochEvent(START + 2_990, "2", "loading"),
        EpochEvent(START + 3_150, "2", "loaded"),
    ]
    scenario.heartbeat("b", 3_050, error=Error.NOT_COORDINATOR, broker="2")
    scenario.heartbeat("b", 3_100, broker="2")  # while it loads: nothing that b could do about it
    scenario.heartbeat("b", 3_300, broker="2")
    for when in (4_210, 5_210):
        scenario.heartbeat("b", when, broker="2")
    assert scenario.replay().violations == ()
    scenario.change("HEARTBEAT:b:3300", errorCode=Error.NOT_COORDINATOR)
    assert wrong(scenario.replay()) == ["HEARTBEAT:b:3300"]


class TestBrokerThatStartsBehindClosedDoors:
    """It loads the group at 3000 and takes requests from 8000 on; both sessions take 3 s."""

    def restarted(self, **answers: int) -> Scenario:
        scenario = stable()
        scenario.epoch_events = [
            *epoch_event(-300, "1", "started", "opened", "loading", "loaded"),
            *epoch_event(3_000, "1", "started", "loading", "loaded"),
            *epoch_event(8_000, "1", "opened"),
        ]
        scenario.heartbeats("a", 1_500, 2_500)
        scenario.heartbeats("b", 1_510, 2_510)
        scenario.heartbeat("a", 8_100)
        scenario.heartbeat("b", 8_110)
        for who, error in answers.items():
            scenario.change(f"HEARTBEAT:{who}:{8_100 if who == 'a' else 8_110}", errorCode=error)
        return scenario

    def test_kafka_ends_sessions_meanwhile(self) -> None:
        outcome = self.restarted(a=25, b=25).replay()
        assert outcome.violations == ()
        assert outcome.rows[-1].ended_as == "empty"
        assert wrong(self.restarted().replay())[0] == "HEARTBEAT:a:8100"

    def test_the_proposal_does_not(self) -> None:
        assert self.restarted().replay(promised=True).violations == ()
        outcome = self.restarted(a=25, b=25).replay(promised=True)
        assert wrong(outcome)[0] == "HEARTBEAT:a:8100"

    def test_a_session_longer_than_the_epoch_has_no_effect(self) -> None:
        scenario = self.restarted()
        scenario.epoch_events = [s for s in scenario.epoch_events if s.at_ms < START + 7_000]
        scenario.epoch_events += epoch_event(3_500, "1", "opened")
        scenario.requests = [seen for seen in scenario.requests if seen.at_ms < START + 8_000]
        scenario.heartbeats("a", 3_600, 9_600)
        for at in range(6_600, 9_601, 1_000):
            scenario.change(
                f"HEARTBEAT:a:{at}", errorCode=Error.REBALANCE_IN_PROGRESS if at > 6_600 else 0
            )
        outcome = scenario.replay(promised=True)
        assert outcome.rows[-1].started_ms == pytest.approx(START + 6_500, abs=100)
