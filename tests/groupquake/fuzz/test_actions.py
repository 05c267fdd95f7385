"""Actions without a broker: each repeats for its seed, and its requests can be encoded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from groupquake.fuzz.actions import BEFORE_GROUP_EXISTS, TABLE
from groupquake.fuzz.connections import BrokerConnections
from groupquake.fuzz.driver import Action, Driver, assignments
from groupquake.fuzz.process import Phase
from kafka_protocol.apis import COORDINATOR_APIS, ApiKey
from kafka_protocol.kio_bodies import Body, to_entity
from kafka_protocol.schemas import schema_of
from loadtest.wire import NO_TOPIC_ID, Exchange
from loadtest.wire.connection import known

ACTIONS = {action.__name__: action for action in (*(a for _, a in TABLE), *BEFORE_GROUP_EXISTS)}
CLOSE = "close"
Sent = list[tuple[str, str, int, Body]]
"""Connection, API, version and body of each request; `CLOSE` stands for the end of a connection."""
IDLE = {"pause", "wait_for_timer", "repeat_waiting_request"}
"""Actions that send nothing here: time passes, or somebody has to wait for a response."""


@dataclass
class Silent(BrokerConnections):
    """Records requests, and responds to each with `answer`, if there is one; time is waited."""

    answer: dict[str, Any] | None = None
    clock_ms: float = 0.0
    sent: Sent = field(default_factory=list)
    unread: list[Exchange] = field(default_factory=list)

    @property
    def now_ms(self) -> float:
        return self.clock_ms

    def send(
        self, number: int, client_id: str, name: str, api: str, version: int, body: Body
    ) -> None:
        self.sent.append((name, api, version, body))
        self.unread.append(Exchange(name, client_id, api, version, {}, number, self.clock_ms))

    def close(self, name: str) -> None:
        self.sent.append((name, CLOSE, 0, {}))

    def receive_until(self, until_ms: float, enough: Callable[[], bool] = lambda: False) -> None:
        while self.answer is not None and self.unread and not enough():
            exchange = self.unread.pop()
            self.clock_ms += 1
            exchange.response, exchange.answered_ms = self.answer, self.clock_ms
            self.on_response(exchange.correlation_id, exchange)
        if not enough():
            self.clock_ms = max(self.clock_ms, until_ms)


def driver_of(connections: Silent, seed: int) -> Driver:
    versions = {api: known(api) for api in COORDINATOR_APIS}
    return Driver(connections, Random(seed), versions, NO_TOPIC_ID, 0.7, 0.3, largest_record=8_000)


def sent(action: Action, phase: Phase, seed: int) -> Sent:
    """Play one action of a seed, with all processes of the group in a phase."""
    connections = Silent("nowhere", 0, "group")
    driver = driver_of(connections, seed)
    for number in range(3):
        process = driver.start_process("i1" if number == 0 else None)
        if phase is not Phase.OUT:
            process.phase, process.joined, process.protocol = phase, True, "range"
            process.member_id, process.generation = f"m{number}", 1
            process.led = ("m0", "m1", "m2") if number == 0 else ()
    action(driver)
    return connections.sent


def test_an_action_is_the_same_again_from_its_seed() -> None:
    for action in ACTIONS.values():
        for phase in Phase:
            assert sent(action, phase, 7) == sent(action, phase, 7)


def test_every_action_sends_what_can_be_encoded() -> None:
    idle = set(ACTIONS)
    for name, action in ACTIONS.items():
        for phase in Phase:
            for seed in range(5):
                for _, api, version, body in sent(action, phase, seed):
                    idle.discard(name)
                    if api != CLOSE:
                        to_entity(schema_of(ApiKey[api], version), {"groupId": "group", **body})
    assert idle <= IDLE


JOINED = {
    "errorCode": 0,
    "memberId": "m",
    "generationId": 3,
    "protocolName": "range",
    "leader": "m",
    "members": [{"memberId": "m"}],
}


def test_a_process_goes_on_once_it_is_answered_and_applies_its_own_responses() -> None:
    connections = Silent("nowhere", 0, "group", answer=JOINED)
    driver = driver_of(connections, 1)
    own, other = driver.start_process(), driver.start_process()
    driver.join(own, patience_ms=100)
    driver.join(other, own=False, patience_ms=100)
    assert connections.clock_ms == 2.0
    assert (own.member_id, own.joined, own.busy) == ("m", True, False)
    assert (other.member_id, other.joined, other.busy) == ("", False, False)


def test_a_process_that_is_not_answered_waits_as_long_as_it_is_patient() -> None:
    connections = Silent("nowhere", 0, "group")
    driver = driver_of(connections, 1)
    process = driver.start_process()
    driver.join(process, {"memberId": "x"}, connection="other", patience_ms=100)
    assert (connections.clock_ms, process.busy) == (100.0, True)
    ((name, api, _, body),) = connections.sent
    assert (name, api, body["memberId"]) == ("other", "JOIN_GROUP", "x")


def test_those_who_wait_send_heartbeats_three_times_a_session() -> None:
    connections = Silent("nowhere", 0, "group", answer={"errorCode": 0})
    driver = driver_of(connections, 1)
    process = driver.start_process(session_ms=300)
    process.phase = Phase.IN
    driver.wait_with_heartbeats(1_000.0, [process])
    assert {api for _, api, _, _ in connections.sent} == {"HEARTBEAT"}
    assert 8 <= len(connections.sent) <= 10
    assert connections.clock_ms >= 1_000.0


def test_a_leader_assigns_to_its_members_and_may_leave_one_out() -> None:
    shares = assignments(("m-1", "m-2"), 4)
    assert shares == [
        {"memberId": "m-1", "assignment": "0001"},
        {"memberId": "m-2", "assignment": "0002"},
    ]
    ((*_, body),) = sent(ACTIONS["incomplete_assignment"], Phase.JOINED, 1)
    assert [share["memberId"] for share in body["assignments"]] == ["m0", "m1"]


def test_a_leave_group_of_an_old_version_names_the_member_too() -> None:
    ((_, api, _, body),) = sent(ACTIONS["leave"], Phase.IN, 1)
    assert api == "LEAVE_GROUP"
    assert [member["memberId"] for member in body["members"]] == [body["memberId"]]
