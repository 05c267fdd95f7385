"""The write of a static rejoin times out after the end of a join phase answered its JoinGroup.

The coordinator goes back to the member's old id, and fences the process that was given the new one
(docs/findings.md#given-and-taken-back). What was written stays in the log, so that a successor may
know an id that no response gave (docs/findings.md#stored-and-taken-back). Recorded on real brokers
whose replicas were paused. The time of LeaveGroup's response is the brokers': the client read it
later.
"""

from dataclasses import replace

import pytest

from reference_coordinator.replay import (
    EpochEvent,
    Evidence,
    Hint,
    HintKind,
    ObservedRequest,
    Replay,
    replay,
)
from tests.reference_coordinator.replay.conftest import renamed
from tests.reference_coordinator.replay.test_sequences import recorded

BROKERS = ("3.9.1-java", "3.9.1-scala", "4.3.0-java")


@pytest.fixture(params=BROKERS)
def name(request: pytest.FixtureRequest) -> str:
    return f"{request.param}-a-member-is-given-an-id-that-is-taken-back"


def evidence_of(name: str) -> Evidence:
    sequence, _ = recorded(name)
    return sequence.evidence


def judged(name: str, evidence: Evidence) -> Replay:
    _, profile = recorded(name)
    return replay(evidence, profile)


def rejoin(evidence: Evidence) -> ObservedRequest:
    """Return the JoinGroup that was answered while its write was under way."""
    return [seen for seen in evidence.requests if seen.api == "JOIN_GROUP"][2]


def told_later(evidence: Evidence, after_ms: float) -> Evidence:
    """Let what shows the old id begin so long after the rejoin came."""
    begun_ms = rejoin(evidence).earliest_ms
    show = [s for s in evidence.requests if s.at_ms > begun_ms and s.api != "LEAVE_GROUP"][1:]
    by_ms = begun_ms + after_ms - show[0].earliest_ms

    def moved(seen: ObservedRequest) -> ObservedRequest:
        if seen not in show:
            return seen
        names = ("earliest_ms", "at_ms", "latest_ms", "answered_ms")
        return replace(seen, **{name: getattr(seen, name) + by_ms for name in names})

    return replace(evidence, requests=tuple(map(moved, evidence.requests)))


def with_lines(evidence: Evidence, *failed_after_ms: float) -> Evidence:
    """Add coordinator lines: a load, and that the rejoin could not be stored."""
    seen, broker = rejoin(evidence), evidence.requests[0].broker
    loads = (EpochEvent(-200.0, broker, "loading"), EpochEvent(-100.0, broker, "loaded"))
    hints = tuple(
        Hint(seen.earliest_ms + after, HintKind.PERSIST_FAILED, broker=broker)
        for after in failed_after_ms
    )

    return replace(evidence, epoch_events=loads, hints=hints)


def test_the_old_id_is_back(name: str) -> None:
    outcome = judged(name, evidence_of(name))
    assert outcome.violations == ()
    assert outcome.bound["failed_write_timed_out"] >= 1


def test_only_an_outage_keeps_a_write_from_being_stored(name: str) -> None:
    assert judged(name, replace(evidence_of(name), outages=())).violations[0].searched


@pytest.mark.parametrize(
    ("after_ms", "explained"), [(500, False), (4_900, False), (5_050, True), (5_900, True)]
)
def test_no_write_times_out_before_its_time(name: str, after_ms: float, explained: bool) -> None:
    outcome = judged(name, told_later(evidence_of(name), after_ms))
    assert (outcome.violations == ()) is explained


@pytest.mark.parametrize(
    ("failed_after_ms", "explained"),
    [((5_010,), True), ((5_900,), True), ((), False), ((4_900,), False), ((7_000,), False)],
)
def test_the_coordinators_line_says_when(
    name: str, failed_after_ms: tuple[float, ...], explained: bool
) -> None:
    outcome = judged(name, with_lines(evidence_of(name), *failed_after_ms))
    assert (outcome.violations == ()) is explained


def test_a_write_that_was_stored_leaves_the_new_id(name: str) -> None:
    """The same, with the ids of the process that was given its own: a broker whose write ended."""
    evidence = evidence_of(name)
    new = rejoin(evidence).response_fields["memberId"]
    kept = [seen for seen in evidence.requests if seen.api in ("JOIN_GROUP", "SYNC_GROUP")]
    beats = [
        replace(seen, response={**seen.response_fields, "errorCode": 0})
        for seen in evidence.requests
        if seen.api == "HEARTBEAT" and seen.request["memberId"] == new
    ]
    leave = [seen for seen in evidence.requests if seen.api == "LEAVE_GROUP"]
    requests = tuple(sorted((*kept, *leave, *beats), key=lambda seen: seen.at_ms))
    assert judged(name, replace(evidence, requests=requests)).violations == ()


@pytest.mark.parametrize("broker", ["3.9.1-java", "3.9.1-scala"])
@pytest.mark.parametrize(
    ("described", "explained"),
    [("itself", True), ("fresh", False), ("old", False), ("other", False), ("of no form", False)],
)
def test_a_successor_knows_an_id_that_nobody_was_given(
    broker: str, described: str, explained: bool
) -> None:
    """It is one of the instance's form, given by no JoinGroup, and the same ever after."""
    name = f"{broker}-an-id-that-nobody-was-given-is-stored"
    evidence = evidence_of(name)
    *before, last = evidence.requests
    groups = [seen for seen in before if seen.api == "DESCRIBE_GROUPS"]
    members = groups[-1].response_fields["groups"][0]["members"]
    instance, old = last.request["groupInstanceId"], last.request["memberId"]
    stored = next(m["memberId"] for m in members if m["groupInstanceId"] == instance)
    other = next(m["memberId"] for m in members if m["groupInstanceId"] != instance)
    fresh = f"{instance}-01234567-89ab-cdef-0123-456789abcdef"
    ids = {"itself": stored, "fresh": fresh, "old": old, "other": other, "of no form": "x"}
    lie = renamed(groups[-1], stored, ids[described])
    requests = tuple(lie if seen is groups[-1] else seen for seen in evidence.requests)
    assert (judged(name, replace(evidence, requests=requests)).violations == ()) is explained
