"""Actions without a broker: each repeats for its seed, and its requests can be encoded."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest

from groupquake.fuzz.actions import BEFORE_GROUP_EXISTS, TABLE
from groupquake.fuzz.broker_connections import BrokerConnections
from groupquake.fuzz.process import Phase
from groupquake.fuzz.script import CLOSE, Ref, Step, resolve
from groupquake.fuzz.sequence_driver import SequenceDriver
from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.kio_bodies import to_entity
from loadtest.wire import NO_TOPIC_ID
from loadtest.wire.schemas import known, request_schema

JOINED = 1
"""The step with the only response, which all processes refer to."""
ANSWER = {
    "memberId": "i1-x",
    "generationId": 1,
    "protocolName": "range",
    "members": [{"memberId": "i1-x"}],
}


@dataclass
class Silent(BrokerConnections):
    """Records steps and responds to none; time is the time waited."""

    clock_ms: float = 0.0

    @property
    def now_ms(self) -> float:
        return self.clock_ms

    def send_step(self, step: Step) -> None:
        self.steps.append(step)

    def receive_until(self, until_ms: float, enough: Callable[[], bool] = lambda: False) -> None:
        self.clock_ms = max(self.clock_ms, until_ms)


def played(action: Callable[[SequenceDriver], bool], phase: Phase, seed: int) -> list[Step]:
    """Play one action of a seed, with all processes of the group in a phase."""
    connections = Silent("nowhere", 0, "group")
    connections.answers[JOINED] = ANSWER
    versions = {api: known(api) for api in COORDINATOR_APIS}
    driver = SequenceDriver(
        connections, Random(seed), versions, NO_TOPIC_ID, 0.7, 0.3, largest_record=8_000
    )
    for number in range(3):
        process = driver.start_process("i1" if number == 0 else None)
        if phase is not Phase.OUT:
            process.phase, process.joined, process.leader_step = phase, True, JOINED * (number == 0)
            process.member_id, process.generation = Ref(JOINED, "memberId"), 1
            process.protocol = Ref(JOINED, "protocolName")
    action(driver)
    return connections.steps


ACTIONS = {action.__name__: action for action in (*(a for _, a in TABLE), *BEFORE_GROUP_EXISTS)}
in_every_phase = pytest.mark.parametrize("phase", Phase)
with_every_action = pytest.mark.parametrize("name", ACTIONS)


@in_every_phase
@with_every_action
def test_an_action_is_the_same_again_from_its_seed(name: str, phase: Phase) -> None:
    assert played(ACTIONS[name], phase, 7) == played(ACTIONS[name], phase, 7)


@in_every_phase
@with_every_action
def test_every_action_can_be_sent(name: str, phase: Phase) -> None:
    for seed in range(5):
        for step in played(ACTIONS[name], phase, seed):
            if step.api != CLOSE:
                body = resolve(step.body, {0: {"groupId": "group"}, JOINED: ANSWER})
                to_entity(request_schema(step.api, step.version), {"groupId": "group", **body})


@with_every_action
def test_every_action_does_something_in_some_phase(name: str) -> None:
    idle = {
        "pause",
        "wait_for_timer",
        "repeat_waiting_request",
    }  # time passes, or somebody waits for an answer
    assert name in idle or any(
        played(ACTIONS[name], phase, seed) for phase in Phase for seed in range(20)
    )
