"""Groups that form while members die: what the tap sees of a group that the oracle coordinates.

Members are small clients in virtual time (ms). Some die a little after they have sent a request: it
has no answer, though the coordinator acts on it, or not. Another process of the same name follows.
"""

import json
import random
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kafka_protocol import tap_lines
from kafka_protocol.errors import Error
from kafka_protocol.request_log import LOGGER, as_json, printed
from reference_coordinator.classic.effects import Response
from reference_coordinator.classic.events import Choices, Loaded, LoadStarted
from reference_coordinator.classic.state import Group, Service
from reference_coordinator.driving.bodies import response_body
from reference_coordinator.driving.client import IN, JOINED, OUT, Client
from reference_coordinator.driving.driver import Agenda
from reference_coordinator.driving.simulation import Exchange, Process, Simulation
from reports.judgement.recording import Recording
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


@dataclass
class Ending:
    """The response of a request, if it has one, and when that came or the request was given up."""

    response: Json | None = None
    ended_ms: float = NEVER


@dataclass(eq=False)
class MemberProcess(Process):
    """One process of a member, as a client of Kafka; `number` counts them."""

    member: Member = field(kw_only=True)
    number: int = field(kw_only=True)
    port: int = field(kw_only=True)
    owned: str = "-"
    exchanges: list[Exchange] = field(default_factory=list)
    dead: bool = False

    def dies_of(self, api: str) -> Death | None:
        """How it ends, if it does after the request of an API that it has just sent."""
        deaths = self.member.deaths[self.number : self.number + 1]
        nth = sum(one.api == api for one in self.exchanges)
        return next((death for death in deaths if (death.api, death.nth) == (api, nth)), None)

    @property
    def connection(self) -> str:
        """Its connection to the broker."""
        return f"127.0.0.1:9092-127.0.0.1:{self.port}-0-{self.port}"


class Broker(Simulation):
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
        service = Service.ACTIVE if loads_ms is None else Service.ABSENT
        super().__init__(Group(GROUP, service=service), TEMPLATE.profile, agenda=Agenda(START_MS))
        self.random, self.busy_ms = random.Random(seed), busy_ms
        self.exchanges: dict[str, Exchange] = {}
        self._started = 0
        if loads_ms is not None:
            begins_ms, ends_ms = loads_ms
            self.agenda.after(begins_ms, lambda: self.take(LoadStarted(self.agenda.now_ms)))
            self.agenda.after(ends_ms, lambda: self.take(Loaded(self.agenda.now_ms, None)))
        for member in members:
            self.agenda.after(member.starts_ms, partial(self._start, member, 0))
        self.agenda.run(START_MS + LASTS_MS)

    # Times and choices.

    def picks(self, new_member_id: str = "") -> Choices:
        """Let any member lead."""
        members = sorted(self.group.members)
        return Choices(new_member_id, self.random.choice(members) if members else "")

    def new_id(self, _: Exchange) -> str:
        """Draw a UUID."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def expires_ms(self, deadline_ms: float) -> float:
        """Let timers expire a little late."""
        return deadline_ms + self.random.uniform(0.0, 10.0)

    def write_ms(self) -> float:
        """Let a write take some ms."""
        return self.random.uniform(1.0, 8.0)

    # Clients.

    def _start(self, member: Member, number: int) -> None:
        """Start a process of a member."""
        instance = member.name if member.static else None
        self._started += 1
        self._join(MemberProcess(
            Client(member.name, instance, SESSION_MS, REBALANCE_MS),
            VERSIONS | {"JOIN_GROUP": member.join_version},
            member=member, number=number, port=40_000 + self._started,
        ))  # fmt: skip

    def _join(self, process: MemberProcess) -> None:
        """Send JoinGroup; a cooperative member says what it owns."""
        owned = process.owned if process.member.cooperative else "-"
        metadata = f"bQ{owned}=".replace("-", "A")
        process.client = replace(process.client, metadata=metadata)
        self._ask(process, "JOIN_GROUP")

    def _ask(self, process: MemberProcess, api: str, **more: Any) -> None:
        """Let a process send a request, and die of it if its time has come."""
        if process.dead:
            return
        exchange = self.send(process, api, **more)
        exchange.note = Ending()
        self.exchanges[exchange.id] = exchange
        process.exchanges.append(exchange)
        death = process.dies_of(api)
        if death is None or death.arrives:
            self.agenda.after(
                self.random.uniform(0.2, self.busy_ms), lambda: self.receive(exchange)
            )
        if death is not None:
            self.agenda.after(death.after_ms, partial(self._die, process, death))

    def _die(self, process: MemberProcess, death: Death) -> None:
        """End it, with the requests that have no answer, and let the next process start."""
        process.dead = True
        for exchange in process.exchanges:
            if exchange.note.response is None:
                exchange.note.ended_ms = self.agenda.now_ms
        self.agenda.after(death.down_ms, partial(self._start, process.member, process.number + 1))

    def answered(self, exchange: Exchange, response: Response) -> None:
        """Bring a response to a process, unless it is dead by then."""
        self.agenda.after(self.random.uniform(0.1, 1.0), partial(self._arrive, exchange, response))

    def _arrive(self, exchange: Exchange, response: Response) -> None:
        process = exchange.process
        assert isinstance(process, MemberProcess)
        if not process.dead:
            body = response_body(response, exchange)
            exchange.note = Ending(dict(body), self.agenda.now_ms)
            process.client = process.client.hearing(response)
            self._go_on(process, Error(response.error))

    def _go_on(self, process: MemberProcess, error: Error) -> None:
        phase, leaves_ms = process.client.phase, process.member.leaves_ms
        if phase is OUT:
            away = error in (Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS)
            self.agenda.after(100.0 if away else 0.0, lambda: self._join(process))
        elif phase is JOINED:
            given = [{"memberId": m, "assignment": f"c2{m[-2:]}"} for m in process.client.leads]
            self._ask(process, "SYNC_GROUP", assignments=given)
        elif phase is IN and process.member.cooperative and process.owned == "-":
            process.owned = "s"  # it has to give up partitions, and joins again
            self._join(process)
        elif phase is IN:
            at_ms = self.agenda.now_ms + HEARTBEAT_MS
            api = "LEAVE_GROUP" if at_ms >= leaves_ms else "HEARTBEAT"
            self.agenda.at(at_ms, lambda: self._ask(process, api))

    def write_run(self, folder: Path) -> Recording:
        """Write the run folder that the tap would have left of it."""
        left_out = shutil.ignore_patterns("tap", "history.jsonl", "machine.jsonl")
        shutil.copytree(TEMPLATE.folder, folder, ignore=left_out)
        of_run = {"client_history": False, "machine_samples": False}
        environment = TEMPLATE.environment | of_run
        (folder / "environment.json").write_text(json.dumps(environment))
        lines = sorted(map(self._line, self.exchanges.values()), key=lambda line: line[0])
        end = f"{tap_lines.ENDED} ({tap_lines.LOGGER})"
        lines.append((START_MS + LASTS_MS + 1.0, end))
        log = folder / "tap" / BROKER / "group.log"
        log.parent.mkdir(parents=True)
        log.write_text("".join(
            f"{number} {int(at_ms)} {round(at_ms * 1e6)} tap DEBUG {text}\n"
            for number, (at_ms, text) in enumerate(lines, 1)
        ))  # fmt: skip
        return Recording(folder)

    def _line(self, exchange: Exchange) -> tuple[float, str]:
        ended_ms = min(exchange.note.ended_ms, START_MS + LASTS_MS)
        took_ms = round(ended_ms - exchange.at_ms, 3)
        assert isinstance(exchange.process, MemberProcess)
        header = {
            "requestApiKey": 0, "requestApiVersion": exchange.api_version,
            "correlationId": exchange.serial, "clientId": exchange.client_id,
            "requestApiKeyName": exchange.api,
        }  # fmt: skip
        content: Json = {
            "isForwarded": False, "requestHeader": header, "request": exchange.request,
            "connection": exchange.process.connection, "totalTimeMs": took_ms,
        }  # fmt: skip
        if exchange.note.response is None:
            content["tap"] = {"forwarded": True, "why": "the client closed the connection"}
            return ended_ms, f"{tap_lines.UNANSWERED}{as_json(content)} ({tap_lines.LOGGER})"
        parts = ("requestQueueTimeMs", "localTimeMs", "responseQueueTimeMs", "sendTimeMs")
        content |= {"response": exchange.note.response, "remoteTimeMs": took_ms}
        return ended_ms, f"{printed(content | dict.fromkeys(parts, 0.0))} ({LOGGER})"

    def alter(self, exchange: Exchange, *, earlier_ms: float = 0.0, **response: Any) -> None:
        """Let an answer be another one, or come earlier."""
        exchange.note.response = (exchange.note.response or {}) | response
        exchange.note.ended_ms -= earlier_ms
