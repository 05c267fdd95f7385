"""Plays a trace on real brokers: its requests, in the order and at the times of the trace.

Out come what the brokers answered beside what the trace has, and the exchanges as an event file.
Ids that a broker gives out stand for those of the trace. Timers are the brokers' own; brokers are
killed, restarted, and lose the group to others as in the trace.
"""

import json
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.cluster_view import ClusterView
from chaos.clusters.process import ProcessCluster
from groupquake.fuzz.campaign import Played, event_file
from groupquake.fuzz.connections import BrokerConnections
from groupquake.fuzz.target import ready
from kafka_protocol.errors import Error, codes_in, name_of
from loadtest.timing import ARRIVES_S, UNANSWERED_S
from loadtest.wire_scripts.known_defects import await_restart
from loadtest.wire_scripts.members import HOST, Group
from reference_coordinator.classic.effects import Answer, JoinResponse
from reference_coordinator.classic.events import Loaded, RecordWritten, TimerFired, Unloaded
from reference_coordinator.driving.client import Asked
from selftest.explore.scene import GROUP, Stepped, error_of
from selftest.timing import ANSWERED_MS, EXPIRES_MS

if TYPE_CHECKING:
    from loadtest.wire import Exchange


def can_be_played(steps: Sequence[Stepped]) -> bool:
    """Tell whether no write fails: that takes replicas that stand still."""
    written = (step.event for step in steps if isinstance(step.event, RecordWritten))
    return all(event.error == Error.NONE for event in written)


def brokers_for(
    steps: Sequence[Stepped], kafka: str, coordinator: str, folder: Path
) -> ProcessCluster:
    """Return brokers, whose settings are Kafka's own: one, or three if another takes over."""
    loads = [step.event for step in steps if isinstance(step.event, Loaded)]
    size = 3 if loads and not any(event.requests_disabled for event in loads) else 1
    return ProcessCluster(
        f"explore-{time.time():.0f}", folder, version=kafka, coordinator=coordinator, brokers=size,
        config={"offsets.topic.num.partitions": 1},
    )  # fmt: skip


class Player:
    """Plays one trace on running brokers; `differs` tells whether they did otherwise."""

    def __init__(self, cluster: ProcessCluster, kafka: str, coordinator: str) -> None:
        self._cluster = cluster
        self._ports = {info.id: info.port for info in cluster.brokers}
        self._broker = self._coordinator()
        self._target = ready(HOST, self._ports[self._broker], kafka, coordinator)
        self._connections = BrokerConnections(HOST, self._target.port, GROUP)
        self._sent: dict[str, Exchange] = {}
        """What the trace has no answer to so far, by its requests."""
        self._ids: dict[str, str] = {}
        """The brokers' member ids by those of the trace."""
        self.differs = False

    def play(self, steps: Sequence[Stepped]) -> Iterator[str]:
        """Play it; yield a line for each answer of the trace, and for what never has one."""
        now, late_ms, asked = lambda: self._connections.now_ms, 0.0, dict[str, str]()
        due = {step.event.at_ms for step in steps if isinstance(step.event, TimerFired)}
        for step in steps:
            at_ms = step.event.at_ms
            at_ms -= 2 * EXPIRES_MS * (at_ms + 1 in due)  # right before a timer is safely before it
            self._connections.receive_until(at_ms + late_ms)
            if step.asked is not None:
                asked[step.asked.id] = f"{step.asked.client_id}'s {step.asked.api}"
                self._send(step.asked)
                if not step.answers:  # the next one is to come after it
                    self._connections.receive_until(now() + ARRIVES_S * 1000)
            elif isinstance(step.event, TimerFired) and not step.answers:
                self._connections.receive_until(now() + EXPIRES_MS)
            elif isinstance(step.event, Unloaded):
                to = min(self._ports.keys() - {self._broker})
                ClusterView(self._cluster.bootstrap).move_coordinator(GROUP, to)
            elif isinstance(step.event, Loaded):
                self._load(moved=isinstance(steps[steps.index(step) - 1].event, Unloaded),
                           restarts=step.event.requests_disabled)  # fmt: skip
            for answer in step.answers:
                yield f"{asked[answer.request]}: {self._compared(answer)}"
            # so no timer is awaited sooner after what armed it than the trace has it
            late_ms = max(late_ms, now() - at_ms)
        self._connections.finish(UNANSWERED_S * 1000)
        for request, exchange in self._sent.items():
            late = exchange.response is not None
            self.differs |= late
            yield f"{asked[request]}: {'was answered' if late else 'no answer, as foreseen'}"

    def events(self) -> str:
        """Return all exchanges as an event file."""
        return event_file(self._target, Played(0, GROUP, self._connections.log, 0, False), [])

    def _send(self, asked: Asked) -> None:
        body, log = json.dumps(asked.request), self._connections.log
        for foreseen, given in self._ids.items():
            body = body.replace(f'"{foreseen}"', f'"{given}"')
        waiting = {one.connection for one in self._sent.values() if one.response is None}
        names = (f"{asked.client_id}.{n}" for n in count())  # one that waits takes no request
        name = next(each for each in names if each not in waiting)
        version = min(asked.api_version, self._target.versions[asked.api][1])
        self._connections.send(
            len(log.exchanges), asked.client_id, name, asked.api, version, json.loads(body)
        )
        self._sent[asked.id] = log.exchanges[-1]

    def _compared(self, foreseen: Answer) -> str:
        """Await the answer that the trace has now, and take the member id in it."""
        exchange, expected = self._sent.pop(foreseen.request), error_of(foreseen.response)
        until_ms = self._connections.now_ms + ANSWERED_MS
        self._connections.receive_until(until_ms, lambda: exchange.response is not None)
        observed = "no answer"
        if exchange.response is not None:
            observed = name_of(next((code for code in codes_in(exchange.response) if code), 0))
            if isinstance(foreseen.response, JoinResponse) and foreseen.response.member_id:
                self._ids[foreseen.response.member_id] = exchange.response["memberId"]
        self.differs |= observed != expected
        return observed if observed == expected else f"{observed}; the trace has {expected}"

    def _load(self, *, moved: bool, restarts: bool) -> None:
        """Let a broker load the group; requests that waited at the one before get no answer."""
        if not moved:
            self._cluster.act("kill", self._broker)
        if restarts:
            self._cluster.act("start", self._broker)
        for name in {exchange.connection for exchange in self._connections.log.exchanges}:
            self._connections.close(name)
        self._sent.clear()
        self._broker = self._coordinator(() if restarts else (self._broker,))
        self._connections.port = self._ports[self._broker]

    def _coordinator(self, but: Sequence[int] = ()) -> int:
        """Await the broker that serves the group, none of some; return its id."""
        scout = Group(GROUP, {id_: port for id_, port in self._ports.items() if id_ not in but})
        await_restart(scout)
        scout.close()
        return scout.coordinator
