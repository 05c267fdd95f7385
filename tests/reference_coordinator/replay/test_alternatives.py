"""What Kafka leaves open: choices that responses show, and candidates for those that none shows."""

from dataclasses import replace
from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.state import Group, State
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.member_ids import UnnamedMembers
from reference_coordinator.replay.options import other_leaders, other_protocols, tied_protocols
from reference_coordinator.replay.pending_requests import PendingRequests, choices_of
from tests.reference_coordinator.replay.conftest import IDS, Scenario
from tests.reference_coordinator.replay.test_armed_timers import member

BOTH = (("range", "bQ=="), ("sticky", "bQ=="))
OTHER_WAY = tuple(reversed(BOTH))
TIED = Group(
    "g",
    state=State.STABLE,
    generation=1,
    protocol="range",
    members=Members.of(
        [replace(member("a", "a"), protocols=BOTH), replace(member("b", "b"), protocols=OTHER_WAY)]
    ),
    static_ids={"a": "a", "b": "b"},
)


def joined(error: int = 0) -> ObservedRequest:
    scenario = Scenario()
    scenario.join("a", 0, 900, error=error)
    return scenario.requests[0]


def rejoined(**response: Any) -> ObservedRequest:
    seen = joined(error=Error.FENCED_INSTANCE_ID)
    protocols = [{"name": name, "metadata": metadata} for name, metadata in BOTH]
    request = {**seen.request, "protocols": protocols}
    return replace(seen, request=request, response={**seen.response_fields, **response})


def test_a_pending_join_shows_leader_and_protocol_and_a_join_its_own_id() -> None:
    pending, seen = PendingRequests(), joined()
    pending.add(seen)
    offered = choices_of(TIED, pending, UnnamedMembers(), seen)
    assert (offered.new_member_id, offered.leader, offered.protocol) == (
        IDS["a"],
        IDS["a"],
        "range",
    )
    assert choices_of(TIED, pending, UnnamedMembers()).new_member_id == ""


def test_alternatives_of_the_candidate_precede_those_of_responses() -> None:
    pending, seen = PendingRequests(), joined()
    pending.add(seen)
    candidate = Candidate(0, 0, 0, seen, protocol="sticky", leader="b")
    offered = choices_of(TIED, pending, UnnamedMembers(), seen, candidate)
    assert (offered.leader, offered.protocol) == ("b", "sticky")


def test_a_rejoin_that_leaves_a_tie_may_turn_the_group_to_the_other_protocol() -> None:
    assert tied_protocols(TIED, rejoined()) == ["sticky"]
    (other,) = other_protocols(TIED, Candidate(0, 0, 0, rejoined()))
    assert other.protocol == "sticky"


def test_a_response_that_shows_that_the_generation_stays_leaves_nothing_open() -> None:
    assert tied_protocols(TIED, rejoined(errorCode=0, generationId=1)) == []
    assert tied_protocols(replace(TIED, state=State.EMPTY), rejoined()) == []


def test_a_member_that_may_lead_shows_it_by_its_sync() -> None:
    group = replace(TIED, leader=None, open_leaders=frozenset({IDS["a"]}))
    scenario = Scenario()
    scenario.sync("a", 10, 20, gives="a")
    candidate = Candidate(0, 0, 0, scenario.requests[0])
    assert [other.leader for other in other_leaders(group, candidate)] == [IDS["a"]]
    assert not list(other_leaders(replace(group, leader="b"), candidate))
    assert not list(other_leaders(replace(group, open_leaders=frozenset("b")), candidate))
