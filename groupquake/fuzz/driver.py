"""Drives a sequence: the requests that actions are made of, with values from earlier responses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partialmethod, wraps
from random import Random
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from groupquake.fuzz.connections import BrokerConnections
from groupquake.fuzz.process import Phase, Process
from groupquake.fuzz.timing import PATIENCE_MS, REBALANCES_MS, SESSIONS_MS
from kafka_protocol.apis import ADMIN_APIS
from kafka_protocol.versions import FIRST_WITH_INSTANCE_ID
from loadtest.wire import Exchange, Versions
from loadtest.wire_scripts.members import subscription

TOPIC = "orders"
MAX_SIZE = 4
"""The `group.max.size` of the broker under test."""
MOST = 6
"""The most running processes: more than the group takes."""
MOST_METADATA = 4_096
"""The most metadata bytes of one offset (offset.metadata.max.bytes)."""
FAR_TOO_LARGE, JUST_TOO_LARGE = 1_000, 12
"""How many bytes a record is above the log's limit: far above; or so little that the Java
coordinator notices at the write only (it does not count the 61 bytes of a batch header)."""
OFFSETS_BATCH_BYTES, OFFSET_RECORD = 61, 43
"""The bytes of a batch header, and of one offset record without the names of group and topic."""
CLOSES = 0.2
"""The probability that a crash closes the connection."""
REASONS = (None, None, None, "the fuzzer says so", "RESTART", "UPGRADE", "TOPIC_METADATA_CHANGE")
"""JoinGroup reasons (v8+). The upper-case ones are names of KIP-423, which are but text there."""

Fields = Mapping[str, Any]
Leaving = Sequence[tuple[str, str | None]]
"""Whom a LeaveGroup names, by (member id, instance id)."""
AS_IT_IS: Fields = MappingProxyType({})
"""No field of a request is other than the process's own state has it."""


class Sending(TypedDict, total=False):
    """How a request is sent; without a key as the process's own, on its own connection.

    The process applies the responses to its `own` requests only. It waits `patience_ms` for the
    response before it goes on; without the key a time of `PATIENCE_MS` is drawn.
    """

    own: bool
    connection: str
    patience_ms: int


@dataclass
class Driver:
    """One sequence in progress. `versions` are those that the broker and the client share."""

    connections: BrokerConnections
    rng: Random
    versions: Versions
    topic_id: str
    static_share: float
    oldness: float
    """The probability that a process uses old API versions."""
    largest_record: int = 0
    """The log's record limit in bytes, if some records are to exceed it; else 0."""
    dynamic_alone: bool = False
    """Whether all processes are dynamic members."""
    first_join: int = 0
    """The lowest JoinGroup version of all processes."""
    processes: list[Process] = field(default_factory=list)
    rebalance_ms: float = 0.0
    """When the latest join phase may have begun, in ms of the sequence."""
    _open: dict[int, Process | None] = field(default_factory=dict)
    """The requests without a response, and the processes that apply it."""
    _requests: int = 0

    def __post_init__(self) -> None:
        """Subscribe to responses."""
        self.connections.on_response = self._on_response

    def _on_response(self, number: int, exchange: Exchange) -> None:
        process = self._open.pop(number)
        if process is not None:
            process.apply(number, exchange)

    @property
    def living(self) -> list[Process]:
        """The processes that have not ended."""
        return [process for process in self.processes if not process.gone]

    @property
    def free(self) -> list[Process]:
        """The processes that do not wait in JoinGroup or SyncGroup."""
        return [process for process in self.living if not process.busy]

    def having(self, phase: Phase) -> list[Process]:
        """The free processes in a phase."""
        return [process for process in self.free if process.phase is phase]

    @property
    def leaders(self) -> list[Process]:
        """The free processes that have joined as leaders and have not sent an assignment."""
        return [process for process in self.having(Phase.JOINED) if process.led]

    @property
    def too_large(self) -> int:
        """The size of a record far above the limit, if some are to exceed it; else 0."""
        return self.largest_record and self.largest_record + FAR_TOO_LARGE

    # Time.

    @property
    def now_ms(self) -> float:
        """The ms since the sequence began."""
        return self.connections.now_ms

    def wait(self, for_ms: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Receive responses for a time, or until `enough` returns True."""
        self.connections.receive_until(self.now_ms + for_ms, enough)

    def settle(self, within_ms: float) -> None:
        """Receive responses until nobody waits for one, or until a time is over."""
        self.wait(within_ms, lambda: not any(process.waiting for process in self.living))

    def wait_with_heartbeats(self, until_ms: float, beating: Sequence[Process]) -> None:
        """Wait; those of `beating` that are in the group send heartbeats meanwhile."""
        while self.now_ms < until_ms:
            due = [
                (process.alive_ms + process.session_ms / 3, number)
                for number, process in enumerate(beating)
                if process.phase is Phase.IN and not process.waiting
            ]
            beat_ms, number = min(due, default=(until_ms, 0))
            if beat_ms >= until_ms:
                self.connections.receive_until(until_ms)
                return
            self.connections.receive_until(max(beat_ms, self.now_ms + 5))
            beating[number].alive_ms = self.now_ms
            self.heartbeat(beating[number])

    # Processes.

    def start_process(
        self,
        instance_id: str | None = None,
        *,
        dynamic: bool = False,
        session_ms: int = 0,
        rebalance_ms: int = 0,
    ) -> Process:
        """Make a process, static or dynamic, and draw its versions and timeouts."""
        number = len(self.processes) + 1
        if dynamic or self.dynamic_alone:
            instance_id = None
        elif instance_id is None and self.rng.random() < self.static_share:
            instance_id = f"i{number}"
        process = Process(
            client_id=f"c{number}",
            instance_id=instance_id,
            versions=self._versions(static=instance_id is not None),
            session_ms=session_ms or self.rng.choice(SESSIONS_MS),
            rebalance_ms=rebalance_ms or self.rng.choice(REBALANCES_MS),
            protocols=self.protocols(),
        )
        self.processes.append(process)
        return process

    def _versions(self, *, static: bool) -> dict[str, int]:
        old = self.rng.random() < self.oldness
        chosen = {}
        for api, (lowest, highest) in self.versions.items():
            first = max(lowest, FIRST_WITH_INSTANCE_ID.get(api, lowest)) if static else lowest
            if self.rng.random() < 0.1:
                first = lowest
            newest = self.rng.random() < 0.5 and not old
            if api == "JOIN_GROUP":
                first = max(first, self.first_join)
            chosen[api] = highest if newest else self.rng.randint(min(first, highest), highest)
        return chosen

    def protocols(self) -> tuple[tuple[str, str], ...]:
        """Draw the protocols of a process; mostly some that others support too."""
        names = self.rng.choice(6 * (("range",), ("range", "rr"), ("rr", "range")) + (("rr",),))
        if self._bulk(0.03):
            data = subscription(b"a" * self.too_large)
        else:
            also = self.rng.choice("   ab").strip()
            data = subscription(topics=(TOPIC, also) if also else (TOPIC,))
        return tuple((name, data) for name in names)

    def _bulk(self, likely: float) -> bool:
        """Draw whether a record is to be too large."""
        return self.too_large > 0 and self.rng.random() < likely

    def fall_silent(self, process: Process) -> None:
        """Let a process crash. Mostly its socket stays open, so that responses to it are seen.

        The coordinator cannot tell the difference.
        """
        if self.rng.random() < CLOSES:
            self._requests += 1
            self.connections.close(process.connection)

    def restart(self, process: Process) -> None:
        """Let a process crash and come back at once, with its instance id alone."""
        self.fall_silent(process)
        process.restart()

    # Requests.

    def send(
        self, api: str, process: Process, fields: Fields = AS_IT_IS, **how: Unpack[Sending]
    ) -> None:
        """Send a request with the process's own values but for some fields; await its response."""
        if api == "JOIN_GROUP":
            self.rebalance_ms = self.now_ms
        body = {**self._body(api, process, fields), **fields}
        self._requests += 1
        number, name = self._requests, how.get("connection") or process.connection
        self.connections.send(
            number, process.client_id, name, api, process.versions.get(api, 0), body
        )
        own = how.get("own", api not in ADMIN_APIS)
        self._open[number] = process if own else None
        if own:
            process.waiting[number] = api
        patience_ms = how["patience_ms"] if "patience_ms" in how else self.rng.choice(PATIENCE_MS)
        self.wait(patience_ms, lambda: number not in self._open)

    # Each takes what `send` takes behind the API; operators' requests change no process.
    join = partialmethod(send, "JOIN_GROUP")
    sync = partialmethod(send, "SYNC_GROUP")
    heartbeat = partialmethod(send, "HEARTBEAT")
    commit = partialmethod(send, "OFFSET_COMMIT")
    describe = partialmethod(send, "DESCRIBE_GROUPS")
    delete = partialmethod(send, "DELETE_GROUPS")

    def _body(self, api: str, process: Process, given: Fields) -> dict[str, Any]:
        """Return the fields of all versions of a request, as the process has them.

        Whether a record is to be too large is drawn, unless its field is `given`.
        """
        group = self.connections.group
        body: dict[str, Any] = {
            "generationId": process.generation,
            "generationIdOrMemberEpoch": process.generation,
            "memberId": process.member_id,
            "groupInstanceId": process.instance_id,
            "protocolType": "consumer",
            "protocolName": process.protocol,
            "groups": [group],
            "groupsNames": [group],
            "includeAuthorizedOperations": False,
        }
        match api:
            case "JOIN_GROUP":
                protocols = [{"name": name, "metadata": data} for name, data in process.protocols]
                body |= {
                    "sessionTimeoutMs": process.session_ms,
                    "rebalanceTimeoutMs": process.rebalance_ms,
                    "protocols": protocols,
                    "reason": self.rng.choice(REASONS),
                }
            case "SYNC_GROUP" if "assignments" not in given:
                bulky = bool(process.led) and self._bulk(0.3)
                body |= self.shares(process, too_large=bulky)
            case "OFFSET_COMMIT" if "topics" not in given:
                bulky = self._bulk(0.4) and any(one.joined for one in self.processes)
                many = self.too_large // MOST_METADATA + 1
                body |= self.offsets(*(many * [MOST_METADATA] if bulky else [0]))
        return body

    def shares(self, process: Process, *, too_large: bool) -> Fields:
        """Return the field of SyncGroup that has a share for each member that a process leads."""
        size = 4 * (self.too_large // 3) if too_large else 8
        return {"assignments": assignments(process.led, size)}

    def offsets(self, *lengths: int) -> Fields:
        """Return the fields of OffsetCommit with an offset for each length of its metadata.

        It is not too large before a member has joined: after the log has refused a batch, the Java
        coordinator up to 3.9 fails again over the empty batch ("New last written offset 0 … must be
        greater than 4", tried on 3.9.1), and loses a group that was created meanwhile.
        """
        parts = [
            {
                "partitionIndex": number,
                "committedOffset": self._requests,
                "committedLeaderEpoch": -1,
                "committedMetadata": "a" * length,
            }
            for number, length in enumerate(lengths)
        ]
        topic = {"name": TOPIC, "topicId": self.topic_id, "partitions": parts}
        return {"retentionTimeMs": -1, "topics": [topic]}

    def offsets_just_too_large(self) -> Fields:
        """Return the fields of an OffsetCommit that is too large by a few bytes."""
        named = OFFSET_RECORD + len(self.connections.group) + len(TOPIC)
        overhead = OFFSETS_BATCH_BYTES + 2 * named
        rest = self.largest_record + JUST_TOO_LARGE - overhead - MOST_METADATA
        return self.offsets(MOST_METADATA, rest)

    def join_without_waiting(self, process: Process) -> None:
        """Join (after MEMBER_ID_REQUIRED again), without waiting for the join phase."""
        self.join(process, patience_ms=20)
        if process.member_id and not process.joined and not process.busy:
            self.join(process, patience_ms=0)

    def beat(self, without: Process | None = None) -> None:
        """Let everybody who is in the group send a heartbeat."""
        for process in self.having(Phase.IN):
            if process is not without:
                self.heartbeat(process)

    def leave(self, process: Process, who: Leaving, **how: Unpack[Sending]) -> None:
        """Send LeaveGroup; old versions name one member."""
        reason = self.rng.choice((None, "the fuzzer says so"))
        members = [{"memberId": m, "groupInstanceId": i, "reason": reason} for m, i in who]
        fields = {"memberId": who[0][0], "members": members}
        self.send("LEAVE_GROUP", process, fields, **how)

    def remove(self, who: Leaving, connection: str) -> None:
        """Remove members by the process with the newest LeaveGroup version."""
        speaker = max(self.processes, key=lambda process: process.versions["LEAVE_GROUP"])
        self.leave(speaker, who, own=False, connection=f"{speaker.client_id}.{connection}")

    def well_behaved_step(self, process: Process) -> None:
        """Send the next request of a well-behaved client."""
        if process.phase is Phase.OUT:
            self.join(process)
        elif process.phase is Phase.JOINED:
            self.sync(process)
        elif self.rng.random() < 0.8:
            self.heartbeat(process)
        else:
            self.commit(process)


def assignments(members: Sequence[str], size: int = 8) -> list[Fields]:
    """Return an assignment for each member; `size` is its length in base64."""
    return [
        {"memberId": member, "assignment": f"{number:0>{size}}"}
        for number, member in enumerate(members, 1)
    ]


Action = Callable[[Driver], bool]
"""Carries an action out and returns True; returns False if no process can do it."""


def one_of(
    candidates: Callable[[Driver], list[Process]],
) -> Callable[[Callable[[Driver, Process], object]], Action]:
    """Make an action of what one of some processes does."""

    def decorate(act: Callable[[Driver, Process], object]) -> Action:
        @wraps(act)
        def action(driver: Driver) -> bool:
            able = candidates(driver)
            if able:
                act(driver, driver.rng.choice(able))
            return bool(able)

        return action

    return decorate
