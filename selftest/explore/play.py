"""Plays a trace on a real broker: its requests, in the order and at the times of the trace.

In go a document of `itf` and brokers; out come what they answered beside what the trace has, and
the exchanges as an event file. Ids that a broker gives out stand for those of the trace. Timers are
the broker's own; brokers are killed, restarted, and lose the group to others as in the trace. A
write that fails is refused: it takes replicas that stand still.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

from chaos.cluster_view import ClusterView
from chaos.clusters.process import ProcessCluster
from groupquake.fuzz.campaign import Played, event_file
from groupquake.fuzz.connections import BrokerConnections
from groupquake.fuzz.target import ready
from kafka_protocol.errors import codes_in, name_of
from loadtest.timing import ARRIVES_S
from loadtest.wire import Exchange
from loadtest.wire_scripts.known_defects import await_restart
from loadtest.wire_scripts.members import HOST, Group
from reference_coordinator.classic.profiles import Settings
from reference_coordinator.driving.client import Client
from selftest.explore.scene import GROUP
from selftest.timing import ANSWERED_MS, EXPIRES_MS, UNANSWERED_MS

Json = Mapping[str, Any]
PLAYED = ("Init", "Request", "TimerFired", "Unloaded", "Loaded", "RequestsEnabled")
"""What can be played; a record that is written besides, a broker writes by itself."""


class TraceError(Exception):
    """A document is no trace, or cannot be played; `str()` says why in one line."""


def steps_of(document: Any) -> list[Json]:
    """Return the states that are to be played. Raises TraceError."""
    try:
        steps = list(document["states"])
        for step in steps:
            event = step["event"]
            failed = event["tag"] == "RecordWritten" and event["value"]["error"] != "NONE"
            if failed or event["tag"] not in (*PLAYED, "RecordWritten"):
                what = "a write that fails" if failed else event["tag"]
                raise TraceError(f"no broker can be made to do what it has: {what}")
            int(step["now_ms"]["#bigint"])
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"it is no trace of `explore --traces` ({error!r})") from error
    return steps


@contextmanager
def brokers(kafka: str, coordinator: str, folder: Path, count: int) -> Iterator[ProcessCluster]:
    """Start brokers with the settings of the explored scenes; stop them after the block."""
    config: dict[str, int] = {"offsets.topic.num.partitions": 1}
    for name, field in Settings.NAMES.items():
        if name.startswith("group."):
            config[name] = getattr(Settings(), field)
    with ProcessCluster(
        f"explore-{time.time():.0f}", folder, version=kafka, coordinator=coordinator, brokers=count,
        config=config,
    ) as cluster:  # fmt: skip
        yield cluster


class Player:
    """Plays one trace. `ids` are the broker's member ids by those of the trace."""

    def __init__(self, cluster: ProcessCluster, kafka: str, coordinator: str) -> None:
        self._cluster = cluster
        self._ports = {info.id: info.port for info in cluster.brokers}
        self._broker = self._coordinator()
        self._target = ready(HOST, self._ports[self._broker], kafka, coordinator)
        self._connections = BrokerConnections(HOST, self._target.port, GROUP, self._heard)
        self._answers: dict[int, Exchange] = {}
        self._waiting: dict[int, str] = {}
        """The names of the connections of requests without an answer, by their numbers."""
        self._names: set[str] = set()
        self._sent: dict[str, int] = {}
        self._asked: dict[str, str] = {}
        self._is_given_up = False
        self.ids = {"": ""}
        self.differs = False
        """Whether the broker did not do what the trace has."""

    def play(self, steps: Sequence[Json]) -> Iterator[str]:
        """Play it; yield a line for each request that the trace answers, and for what waits."""
        now, late_ms = lambda: self._connections.now_ms, 0.0
        for step, at_ms in zip(steps, _times(steps), strict=True):
            self._connections.receive_until(at_ms + late_ms)
            match step["event"]["tag"]:
                case "Request":
                    self._send(step["event"]["value"])
                    if not step["answers"]:  # the next one is to come after it
                        self._connections.receive_until(now() + ARRIVES_S * 1000)
                case "TimerFired" if not step["answers"]:
                    self._connections.receive_until(now() + EXPIRES_MS)
                case "Unloaded":
                    self._move()
                case "Loaded":
                    self._load(restarts=step["event"]["value"]["requests_disabled"])
            for answer in step["answers"]:
                yield self._compared(answer)
            # so no timer is awaited sooner after what armed it than the trace has it
            late_ms = max(late_ms, now() - at_ms)
        self._connections.finish(UNANSWERED_MS)
        for request, number in self._sent.items():
            if number in self._waiting or number in self._answers:
                late = "was answered" if number in self._answers else "has no answer, as foreseen"
                self.differs |= number in self._answers
                yield f"{self._asked[request]}: {late}"

    def events(self) -> str:
        """Return all exchanges as an event file."""
        return event_file(self._target, Played(0, GROUP, self._connections.log, 0, False), [])

    def _send(self, asked: Json) -> None:
        number, api = len(self._sent) + 1, asked["api"]
        client = Client(
            asked["client"], asked["instance"] or None, _int(asked["session_ms"]),
            _int(asked["rebalance_ms"]), member_id=self._id(asked["member_id"]),
            generation=_int(asked["generation"]), leads=tuple(map(self._id, asked["leads"])),
        )  # fmt: skip
        version = min(_int(asked["api_version"]), self._target.versions[api][1])
        more: dict[str, Any] = {}
        if asked["removes"]:
            more = {"members": [{"memberId": "", "groupInstanceId": asked["removes"]}]}
        elif api in ("DESCRIBE_GROUPS", "DELETE_GROUPS"):
            more = {"groups": [GROUP], "groupsNames": [GROUP]}
        body = client.body(api, GROUP, version, **more)
        names = (f"{client.name}.{n}" for n in range(number))  # one that waits takes no request
        name = next(each for each in names if each not in self._waiting.values())
        self._sent[asked["id"]], self._waiting[number] = number, name
        self._names.add(name)
        self._asked[asked["id"]] = f"{client.name}'s {api} v{version}"
        self._connections.send(number, client.name, name, api, version, body)

    def _id(self, name: str) -> str:
        return self.ids.get(name, name)

    def _heard(self, number: int, exchange: Exchange) -> None:
        self._answers[number] = exchange
        self._waiting.pop(number, None)

    def _compared(self, foreseen: Json) -> str:
        """Await the answer that the trace has now, and take the member id in it."""
        number = self._sent[foreseen["request"]]
        until_ms = self._connections.now_ms + ANSWERED_MS
        self._connections.receive_until(until_ms, lambda: number in self._answers)
        observed = "no answer"
        if (exchange := self._answers.pop(number, None)) is not None:
            assert exchange.response is not None
            codes = codes_in(exchange.response)
            observed = name_of(next((code for code in codes if code), 0))
            if foreseen["member_id"]:
                self.ids[foreseen["member_id"]] = str(exchange.response["memberId"])
        asked, error = self._asked[foreseen["request"]], foreseen["error"]
        self.differs |= observed != error
        return f"{asked}: {observed}{'' if observed == error else f'; the trace has {error}'}"

    def _move(self) -> None:
        """Let another broker coordinate the group; this one answers what waits."""
        others = {id_: port for id_, port in self._ports.items() if id_ != self._broker}
        ClusterView(self._cluster.bootstrap).move_coordinator(GROUP, min(others))
        self._is_given_up = True

    def _load(self, *, restarts: bool) -> None:
        """Let a broker load the group: the one that it moved to, this one again, or another one."""
        if not self._is_given_up:
            self._cluster.act("kill", self._broker)
            if restarts:
                self._cluster.act("start", self._broker)
        for name in self._names:
            self._connections.close(name)
        self._names.clear()
        self._sent = {key: number for key, number in self._sent.items() if number in self._answers}
        self._waiting.clear()
        self._broker = self._coordinator(() if restarts else (self._broker,))
        self._connections.port, self._is_given_up = self._ports[self._broker], False

    def _coordinator(self, but: Sequence[int] = ()) -> int:
        """Await the broker that serves the group, none of some; return its id."""
        ports = {id_: port for id_, port in self._ports.items() if id_ not in but}
        scout = Group(GROUP, ports)
        await_restart(scout)
        scout.close()
        return scout.coordinator


def _times(steps: Sequence[Json]) -> list[float]:
    """Return when each step is due: what comes right before a timer, safely before that."""
    due_ms, times = inf, []
    for step in reversed(steps):
        at_ms = float(_int(step["now_ms"]))
        if step["event"]["tag"] == "TimerFired":
            due_ms = at_ms
        elif due_ms - at_ms <= 1:
            at_ms -= 2 * EXPIRES_MS
        times.append(at_ms)
    return times[::-1]


def _int(number: Json) -> int:
    return int(number["#bigint"])
