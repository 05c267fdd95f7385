"""The bundle of the classic protocol: its parts fit together, and a replay takes them from it."""

from dataclasses import fields, replace
from typing import Any

import pytest

from kafka_protocol.apis import CONFIGURE, COORDINATOR_APIS
from kafka_protocol.errors import Error
from reference_coordinator.classic import CLASSIC, ClassicProtocol
from reference_coordinator.classic.effects import Answer, HeartbeatResponse, Response, SyncResponse
from reference_coordinator.classic.events import Event, HeartbeatReceived
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.event_files.counterexample import counterexample
from reference_coordinator.replay import EpochEvent, Evidence, replay
from tests.reference_coordinator.replay.conftest import IDS, PROFILE, START, Scenario, stable


def test_the_parts_of_the_bundle_fit_together() -> None:
    assert CLASSIC.bodies.keys() == {*COORDINATOR_APIS, CONFIGURE}
    assert CLASSIC.profile_named("4.4.0") is CLASSIC.profile_for("4.4.0", "java") is NEWEST
    assert {*CLASSIC.row_key} <= {field.name for field in fields(ExpectedRebalance)}


def evidence(scenario: Scenario) -> Evidence:
    return Evidence("g", tuple(sorted(scenario.requests, key=lambda seen: seen.at_ms)))


def fences_heartbeats(group: Group, event: Event, profile: Profile) -> Any:
    """Answer each Heartbeat with FENCED_INSTANCE_ID."""
    if isinstance(event, HeartbeatReceived):
        return group, (Answer(event.request, HeartbeatResponse(Error.FENCED_INSTANCE_ID)),)
    return CLASSIC.step(group, event, profile)


def sends_heartbeats_fenced(response: Response, api_version: int) -> Response:
    """Send each Heartbeat response with FENCED_INSTANCE_ID."""
    sent = CLASSIC.as_sent(response, api_version)
    fenced = isinstance(sent, HeartbeatResponse)
    return HeartbeatResponse(Error.FENCED_INSTANCE_ID) if fenced else sent


def without_assignment(response: Response, api_version: int) -> Response:
    """Drop the assignment of a SyncGroup response as well."""
    sent = CLASSIC.as_sent(response, api_version)
    return replace(sent, assignment="") if isinstance(sent, SyncResponse) else sent


def heartbeats(error: int = 0) -> Scenario:
    scenario = stable()
    scenario.heartbeats("a", 1_200, 2_200, error)
    return scenario


def alone(generation: int = 1) -> Scenario:
    """One member forms the group; its first generation is given."""
    scenario = Scenario()
    scenario.join("a", 0, 501, generation=generation, members="a")
    scenario.sync("a", 510, 518, generation=generation, gives="a")
    return scenario


def unassigned() -> Scenario:
    """No SyncGroup response has an assignment."""
    scenario = stable()
    for name, at in (("a", 1_015), ("b", 1_010)):
        scenario.change(f"SYNC_GROUP:{name}:{at}", assignment="")
    return scenario


FENCED = heartbeats(Error.FENCED_INSTANCE_ID)
IN_GENERATION_41 = replace(CLASSIC, new_group=lambda name: Group(name, generation=41))
OTHERS = {
    "step": (replace(CLASSIC, step=fences_heartbeats), FENCED, heartbeats()),
    "new_group": (IN_GENERATION_41, alone(generation=42), alone()),
    "as_sent": (replace(CLASSIC, as_sent=without_assignment), unassigned(), stable()),
    "as_sent of heartbeats": (
        replace(CLASSIC, as_sent=sends_heartbeats_fenced), FENCED, heartbeats(),
    ),
}  # fmt: skip
"""Bundles with another part, what they alone explain, and what the classic one alone explains."""


@pytest.mark.parametrize(("protocol", "its_own", "classic"), OTHERS.values(), ids=OTHERS)
def test_a_replay_takes_each_part_from_its_bundle(
    protocol: ClassicProtocol, its_own: Scenario, classic: Scenario
) -> None:
    for right, wrong, bundle in ((its_own, classic, protocol), (classic, its_own, CLASSIC)):
        assert replay(evidence(right), PROFILE, protocol=bundle).violations == ()
        assert replay(evidence(wrong), PROFILE, protocol=bundle).proven


PING = "PING"


def pings(code: int = 0, **fields: Any) -> Evidence:
    """Requests of an API that the classic protocol does not have, with the body of a Heartbeat."""
    scenario = stable()
    for at in (1_200, 1_700, 2_200):
        scenario.ask(PING, "a", at, {"generationId": 1}, {"errorCode": code})
    scenario.requests[-2] = replace(scenario.requests[-2], **fields)
    return evidence(scenario)


PINGED = replace(CLASSIC, bodies={**CLASSIC.bodies, PING: CLASSIC.bodies["HEARTBEAT"]})


def test_a_replay_reads_the_bodies_that_its_bundle_has() -> None:
    outcome = replay(pings(), PROFILE, protocol=PINGED)
    assert outcome.violations == ()
    assert len(outcome.checked) == 7
    assert replay(pings(Error.UNKNOWN_MEMBER_ID), PROFILE, protocol=PINGED).proven
    with pytest.raises(KeyError, match=PING):
        replay(pings(), PROFILE)
    outcome = replay(pings(response=None, answered_ms=float("inf")), PROFILE, protocol=PINGED)
    assert (outcome.violations, len(outcome.checked)) == ((), 6)


def test_the_error_of_a_loading_coordinator_is_read_by_the_bundle() -> None:
    scenario = Scenario()
    request = {"members": [{"memberId": IDS["a"], "groupInstanceId": "a"}]}
    loading = {"errorCode": Error.COORDINATOR_LOAD_IN_PROGRESS}
    scenario.ask(PING, "a", -1, request, loading, answered=5)
    epoch_events = (EpochEvent(START, "1", "loading"), EpochEvent(START + 20, "1", "loaded"))
    seen = replace(evidence(scenario), epoch_events=epoch_events)
    bodies = {PING: CLASSIC.bodies["LEAVE_GROUP"]}
    assert replay(seen, PROFILE, protocol=replace(CLASSIC, bodies=bodies)).violations == ()


def test_a_counterexample_is_reduced_under_the_bundle() -> None:
    seen = pings(Error.UNKNOWN_MEMBER_ID)
    found = counterexample(seen, PROFILE, protocol=PINGED)
    assert found is not None
    assert found.violation.request == f"{PING}:a:1200"
    assert IDS["a"] in str(found.evidence.requests[0].response)
    assert counterexample(pings(), PROFILE, protocol=PINGED) is None
