"""Groups that form while members die: what the tap sees of a group that the oracle coordinates.

Members are small clients in virtual time (ms). Some die a little after they have sent a request: it
has no answer, though the coordinator acts on it, or not. Another process of the same name follows.
"""

import heapq
import json
import random
import shutil
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from kafka_protocol import tap_lines
from kafka_protocol.bodies import BODIES, of_version
from kafka_protocol.errors import Error
from kafka_protocol.log_line import Event as Logged
from kafka_protocol.log_line import numbered
from kafka_protocol.request_log import LOGGER, as_json, printed
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.effects import Answer, Arm, Disarm, Persist
from reference_coordinator.classic.events import (
    Choices,
    Event,
    Loaded,
    LoadStarted,
    RecordWritten,
    Timer,
    TimerFired,
)
from reference_coordinator.classic.state import Service
from reference_coordinator.replay import ObservedRequest
from reports.judgement.recording import Recording
from selftest.mutants.wordings import body
from tests.recorded.logs import UNANSWERED

TEMPLATE = UNANSWERED["join-leader-4.3.0"]
"""The run whose small files a generated run has; one broker coordinates its group."""
BROKER, GROUP = "2", TEMPLATE.groups[0]
START_MS = 1_795_716_168_000.0
SESSION_MS, HEARTBEAT_MS, REBALANCE_MS = 10_000, 1_000, 60_000
LASTS_MS, NEVER = 45_000.0, float("inf")
VERSIONS = {"SYNC_GROUP": 3, "HEARTBEAT": 3, "LEAVE_GROUP": 3}
TWO_STEPS, ONE_STEP = 5, 3
"""Versions of JoinGroup; before v4 a dynamic member joins at once (KIP-394)."""
Json = dict[str, Any]


@dataclass(frozen=True)
class Death:
    """A process dies `after_ms` after it has sent its n-th request (from 1) of an API.

    `arrives` tells whether the coordinator acts on that request; the next process starts
    `down_ms` later, if one does.
    """

    api: str
    nth: int = 1
    after_ms: float = 100.0
    arrives: bool = True
    down_ms: float = 2_500.0


@dataclass(frozen=True)
class Member:
    """A member: when its first process starts, and how processes end, one after the other."""

    name: str
    starts_ms: float = 0.0
    static: bool = False
    deaths: tuple[Death, ...] = ()
    join_version: int = TWO_STEPS
    cooperative: bool = False
    leaves_ms: float = NEVER


@dataclass(eq=False)
class Exchange:
    """A request with its answer, if it has one, and when that came or the request was given up."""

    seen: ObservedRequest
    process: "Process"
    ended_ms: float = NEVER
    response: Json | None = None


@dataclass(eq=False)
class Process:
    """One process of a member, as a client of Kafka."""

    broker: "Broker"
    member: Member
    number: int
    port: int
    member_id: str = ""
    generation: int = -1
    owned: str = "-"
    sent: list[Exchange] = field(default_factory=list)
    dead: bool = False

    @property
    def death(self) -> Death | None:
        """How it ends, if it dies."""
        return self.member.deaths[self.number] if self.number < len(self.member.deaths) else None

    def send(self, api: str, **fields: Any) -> None:
        """Send a request, and die of it if its time has come."""
        if self.dead:
            return
        instance = self.member.name if self.member.static else None
        version = VERSIONS.get(api, self.member.join_version)
        of_all = {"groupId": GROUP, "memberId": self.member_id, "groupInstanceId": instance,
                  "generationId": self.generation}  # fmt: skip
        request = of_version(BODIES[api].request, of_all | fields, version)
        exchange = self.broker.receive(self, api, version, request)
        self.sent.append(exchange)
        death, nth = self.death, sum(one.seen.api == api for one in self.sent)
        if death is not None and (death.api, death.nth) == (api, nth):
            if not death.arrives:
                self.broker.lost.add(exchange.seen.id)
            self.broker.after(death.after_ms, self.die)

    def die(self) -> None:
        """End, with the requests that have no answer, and let the next process start."""
        self.dead = True
        for exchange in self.sent:
            if exchange.response is None:
                exchange.ended_ms = self.broker.now_ms
        if self.death is not None:
            self.broker.after(self.death.down_ms, self.broker.start(self.member, self.number + 1))

    def join(self) -> None:
        """Send JoinGroup; a cooperative member says what it owns."""
        metadata = f"bQ{self.owned if self.member.cooperative else '-'}="
        self.send(
            "JOIN_GROUP",
            sessionTimeoutMs=SESSION_MS,
            rebalanceTimeoutMs=REBALANCE_MS,
            protocolType="consumer",
            protocols=[{"name": "range", "metadata": metadata.replace("-", "A")}],
        )

    def heartbeat(self) -> None:
        """Send a Heartbeat, or LeaveGroup if it is time."""
        if self.broker.now_ms < self.member.leaves_ms:
            self.send("HEARTBEAT")
            return
        about = self.member_id, self.member.name if self.member.static else None
        fields = dict(zip(("memberId", "groupInstanceId"), about, strict=True))
        self.send("LEAVE_GROUP", members=[fields])

    def hear(self, exchange: Exchange) -> None:
        """Go on after an answer."""
        assert exchange.response is not None
        response, api = exchange.response, exchange.seen.api
        error = response["errorCode"]
        if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            self.member_id, self.generation = "", -1
            self.join()
        elif error == Error.MEMBER_ID_REQUIRED:
            self.member_id = response["memberId"]
            self.join()
        elif error == Error.REBALANCE_IN_PROGRESS:
            self.join()
        elif error in (Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS):
            self.broker.after(100.0, self.join)
        elif error == Error.FENCED_INSTANCE_ID or api == "LEAVE_GROUP":
            self.dead = True
        elif api == "JOIN_GROUP":
            self.member_id, self.generation = response["memberId"], response["generationId"]
            shares = [one["memberId"] for one in response["members"]]
            given = [{"memberId": one, "assignment": f"c2{one[-2:]}"} for one in shares]
            self.send("SYNC_GROUP", assignments=given)
        elif api == "SYNC_GROUP" and self.member.cooperative and self.owned == "-":
            self.owned = "s"  # it has to give up partitions, and joins again
            self.join()
        else:
            self.broker.after(HEARTBEAT_MS, self.heartbeat)


class Broker:
    """The oracle as a coordinator that takes up to `busy_ms` for a request."""

    def __init__(
        self,
        members: Iterable[Member],
        seed: int = 0,
        *,
        busy_ms: float = 30.0,
        loads_ms: tuple[float, float] | None = None,
    ) -> None:
        """Let the members' group live for `LASTS_MS`.

        `loads_ms` is when the broker begins to load the group, and when it has; it had before if
        that is None.
        """
        self.random, self.busy_ms = random.Random(seed), busy_ms
        self.now_ms = START_MS
        self.exchanges: dict[str, Exchange] = {}
        self.lost: set[str] = set()
        self.group, self.profile = CLASSIC.new_group(GROUP), TEMPLATE.profile
        self._timers: dict[Timer, float] = {}
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count(1)
        if loads_ms is not None:
            self.group = replace(self.group, service=Service.ABSENT)
            begins_ms, ends_ms = loads_ms
            self.after(begins_ms, lambda: self._step(LoadStarted(self.now_ms)))
            self.after(ends_ms, lambda: self._step(Loaded(self.now_ms, None)))
        for member in members:
            self.after(member.starts_ms, self.start(member, 0))
        while self._queue and self._queue[0][0] <= START_MS + LASTS_MS:
            self.now_ms, _, what = heapq.heappop(self._queue)
            what()

    def after(self, ms: float, what: Callable[[], None]) -> None:
        """Let something happen."""
        heapq.heappush(self._queue, (self.now_ms + ms, next(self._numbers), what))

    def start(self, member: Member, number: int) -> Callable[[], None]:
        """Return what starts a process of a member."""
        return lambda: Process(self, member, number, 40_000 + next(self._numbers)).join()

    def receive(self, process: Process, api: str, version: int, request: Json) -> Exchange:
        """Take a request that the tap forwards."""
        at_ms, name, number = self.now_ms, process.member.name, next(self._numbers)
        seen = ObservedRequest(
            f"{api}:{name}:{number}", BROKER, api, version, name,
            f"127.0.0.1:9092-127.0.0.1:{process.port}-0-{process.port}", at_ms, at_ms, NEVER,
            NEVER, request, None, len(process.sent) + 1,
        )  # fmt: skip
        exchange = self.exchanges[seen.id] = Exchange(seen, process)
        self.after(self.random.uniform(0.2, self.busy_ms), lambda: self._take_up(exchange))
        return exchange

    def _take_up(self, exchange: Exchange) -> None:
        seen = exchange.seen
        if seen.id in self.lost:
            return
        given = f"{seen.request.get('groupInstanceId') or seen.client_id}-"
        given += str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        event = CLASSIC.bodies[seen.api].event(seen, self.now_ms, self._choices(given))
        self._step(event)

    def _choices(self, member_id: str = "") -> Choices:
        members = sorted(self.group.members)
        return Choices(member_id, self.random.choice(members) if members else "", "")

    def _step(self, event: Event) -> None:
        self.group, effects = CLASSIC.step(self.group, event, self.profile)
        for effect in effects:
            match effect:
                case Answer():
                    self._answer(self.exchanges[effect.request], effect)
                case Arm(timer=timer, deadline_ms=deadline_ms):
                    self._timers[timer] = deadline_ms
                    late_ms = self.random.uniform(0.0, 10.0)
                    expire = self._expiry(timer, deadline_ms)
                    self.after(deadline_ms - self.now_ms + late_ms, expire)
                case Disarm(timer=timer):
                    self._timers.pop(timer, None)
                case Persist(request=str(request)):
                    self.after(self.random.uniform(1.0, 8.0), self._written(request))

    def _expiry(self, timer: Timer, deadline_ms: float) -> Callable[[], None]:
        def expire() -> None:
            if self._timers.get(timer) == deadline_ms:
                del self._timers[timer]
                self._step(TimerFired(self.now_ms, timer, self._choices()))

        return expire

    def _written(self, request: str) -> Callable[[], None]:
        return lambda: self._step(RecordWritten(self.now_ms, request, Error.NONE, self._choices()))

    def _answer(self, exchange: Exchange, answer: Answer) -> None:
        response = body(answer.response, exchange.seen)

        def arrive() -> None:
            if not exchange.process.dead:
                exchange.response, exchange.ended_ms = response, self.now_ms
                exchange.process.hear(exchange)

        self.after(self.random.uniform(0.1, 1.0), arrive)

    def write_run(self, folder: Path) -> Recording:
        """Write the run folder that the tap would have left of it."""
        left_out = shutil.ignore_patterns("tap", "history.jsonl", "machine.jsonl")
        shutil.copytree(TEMPLATE.folder, folder, ignore=left_out)
        of_run = {"client_history": False, "machine_samples": False}
        environment = TEMPLATE.environment | of_run
        (folder / "environment.json").write_text(json.dumps(environment))
        lines = sorted(map(self._line, self.exchanges.values()), key=lambda line: line[0])
        end = Logged("tap", "DEBUG", tap_lines.ENDED, tap_lines.LOGGER)
        lines.append((START_MS + LASTS_MS + 1.0, end))
        log = folder / "tap" / BROKER / "group.log"
        log.parent.mkdir(parents=True)
        log.write_text("".join(
            f"{numbered(number, int(at_ms), round(at_ms * 1e6), event)}\n"
            for number, (at_ms, event) in enumerate(lines, 1)
        ))  # fmt: skip
        return Recording(folder)

    def _line(self, exchange: Exchange) -> tuple[float, Logged]:
        seen = exchange.seen
        ended_ms = min(exchange.ended_ms, START_MS + LASTS_MS)
        took_ms = round(ended_ms - seen.at_ms, 3)
        content: Json = {
            "isForwarded": False,
            "requestHeader": {
                "requestApiKey": 0, "requestApiVersion": seen.api_version,
                "correlationId": seen.serial, "clientId": seen.client_id,
                "requestApiKeyName": seen.api,
            },
            "request": seen.request,
            "connection": seen.connection,
            "totalTimeMs": took_ms,
        }  # fmt: skip
        if exchange.response is None:
            content["tap"] = {"forwarded": True, "why": "the client closed the connection"}
            text = tap_lines.UNANSWERED + as_json(content)
            return ended_ms, Logged("tap", "DEBUG", text, tap_lines.LOGGER)
        content |= {"response": exchange.response, "remoteTimeMs": took_ms}
        content |= dict.fromkeys(
            ("requestQueueTimeMs", "localTimeMs", "responseQueueTimeMs", "sendTimeMs"), 0.0
        )
        return ended_ms, Logged("tap", "DEBUG", printed(content), LOGGER)

    def alter(self, exchange: Exchange, *, earlier_ms: float = 0.0, **response: Any) -> None:
        """Let an answer be another one, or come earlier."""
        exchange.response = (exchange.response or {}) | response
        exchange.ended_ms -= earlier_ms
