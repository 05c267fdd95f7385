"""Drives a sequence: the requests that actions are made of, with values from earlier responses."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from groupquake.fuzz.broker_connections import BrokerConnections
from groupquake.fuzz.process import Phase, Process
from groupquake.fuzz.script import CLOSE, GROUP, Assignments, Ref, Step
from kafka_protocol.versions import FIRST_WITH_INSTANCE_ID
from loadtest.wire import Exchange, Versions
from loadtest.wire_scripts.members import subscription

TOPIC = "orders"
MAX_SIZE = 4
"""The `group.max.size` of the broker under test."""
PATIENCE_MS = (0, 4, 25, 25, 25, 60, 60, 120)
"""How long a process waits for a response before the next request; with 0, requests overlap."""

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
"""JoinGroup reasons (v8+). The upper-case ones are the names of KIP-423, which Kafka never used."""


@dataclass
class SequenceDriver:
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
    _senders: dict[int, Process] = field(default_factory=dict)
    _steps: int = 0

    def __post_init__(self) -> None:
        """Subscribe to responses."""
        self.connections.on_response = self._on_response

    def _on_response(self, number: int, exchange: Exchange) -> None:
        process = self._senders.pop(number, None)
        if process is not None:
            process.apply(number, exchange, exchange.answered_ms)

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
    def too_large(self) -> int:
        """The size of a record far above the limit, if some are to exceed it; else 0."""
        return self.largest_record and self.largest_record + FAR_TOO_LARGE

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
            session_ms=session_ms or self.rng.choice((350, 600, 600, 1000, 1500, 3000, 5000)),
            rebalance_ms=rebalance_ms or self.rng.choice((500, 900, 900, 1500, 2500)),
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
            self._do(process, process.connection, CLOSE, {})

    # Requests.

    def send(
        self,
        process: Process,
        api: str,
        body: dict[str, Any],
        *,
        connection: str = "",
        own: bool = True,
        patience_ms: int | None = None,
    ) -> None:
        """Send a request, and wait for its response for `patience_ms`, or a drawn time.

        The process applies the responses to its `own` requests only.
        """
        number = self._do(process, connection or process.connection, api, body)
        if own:
            self._senders[number] = process
            process.waiting[number] = api
        patience_ms = self.rng.choice(PATIENCE_MS) if patience_ms is None else patience_ms
        self.connections.receive_until(
            self.connections.now_ms + patience_ms, lambda: number in self.connections.answers
        )

    def _do(self, process: Process, connection: str, api: str, body: dict[str, Any]) -> int:
        self._steps += 1
        spoken = process.versions.get(api, 0)
        at_ms = self.connections.now_ms
        self.connections.send_step(
            Step(self._steps, at_ms, process.client_id, connection, api, spoken, body)
        )
        return self._steps

    def join(
        self,
        process: Process,
        *,
        connection: str = "",
        own: bool = True,
        patience_ms: int | None = None,
        **other: Any,
    ) -> None:
        """Join with the current member id; `other` overrides fields."""
        self.rebalance_ms = self.connections.now_ms
        body = self.join_body(process) | other
        self.send(
            process,
            "JOIN_GROUP",
            body,
            connection=connection,
            own=own,
            patience_ms=patience_ms,
        )

    def join_body(self, process: Process) -> dict[str, Any]:
        """Return the body of a process's JoinGroup."""
        return {
            "sessionTimeoutMs": process.session_ms,
            "rebalanceTimeoutMs": process.rebalance_ms,
            "memberId": process.member_id,
            "groupInstanceId": process.instance_id,
            "protocolType": process.protocol_type,
            "protocols": [{"name": name, "metadata": data} for name, data in process.protocols],
            "reason": self.rng.choice(REASONS),
        }

    def identity(self, process: Process) -> dict[str, Any]:
        """Return the identity fields of SyncGroup, Heartbeat and OffsetCommit."""
        return {
            "generationId": process.generation,
            "generationIdOrMemberEpoch": process.generation,
            "memberId": process.member_id,
            "groupInstanceId": process.instance_id,
        }

    def sync(
        self,
        process: Process,
        *,
        own: bool = True,
        patience_ms: int | None = None,
        too_large: bool | None = None,
        **other: Any,
    ) -> None:
        """Sync, as the leader with all assignments; None for `too_large` draws it."""
        body = {
            **self.identity(process),
            "protocolType": process.protocol_type,
            "protocolName": process.protocol,
            "assignments": self._shares(process, too_large=too_large),
        }
        self.send(process, "SYNC_GROUP", body | other, own=own, patience_ms=patience_ms)

    def _shares(self, process: Process, *, too_large: bool | None) -> Assignments | list[Any]:
        if not process.leader_step:
            return []
        if self._bulk(0.3) if too_large is None else too_large:
            return Assignments(process.leader_step, size=4 * (self.too_large // 3))
        return Assignments(process.leader_step)

    def heartbeat(
        self, process: Process, *, own: bool = True, patience_ms: int | None = None, **other: Any
    ) -> None:
        """Send a heartbeat."""
        body = self.identity(process) | other
        self.send(process, "HEARTBEAT", body, own=own, patience_ms=patience_ms)

    def commit(
        self,
        process: Process,
        *,
        own: bool = True,
        patience_ms: int | None = None,
        just_too_large: bool = False,
        **other: Any,
    ) -> None:
        """Commit an offset, or a record that is too large, with `just_too_large` by a few bytes."""
        parts = [
            {
                "partitionIndex": number,
                "committedOffset": self._steps,
                "committedLeaderEpoch": -1,
                "committedMetadata": "a" * length,
            }
            for number, length in enumerate(self._metadata(just_too_large=just_too_large))
        ]
        topic = {"name": TOPIC, "topicId": self.topic_id, "partitions": parts}
        body = {**self.identity(process), "retentionTimeMs": -1, "topics": [topic]}
        self.send(process, "OFFSET_COMMIT", body | other, own=own, patience_ms=patience_ms)

    def _metadata(self, *, just_too_large: bool) -> list[int]:
        """Draw the metadata length of each offset in a commit.

        It is not too large before a member has joined: after the log has refused a batch, the Java
        coordinator up to 3.9 fails again over the empty batch ("New last written offset 0 … must be
        greater than 4", tried on 3.9.1), and loses a group that was created meanwhile.
        """
        if just_too_large:
            named = OFFSET_RECORD + len(self.connections.group) + len(TOPIC)
            overhead = OFFSETS_BATCH_BYTES + 2 * named
            return [MOST_METADATA, self.largest_record + JUST_TOO_LARGE - overhead - MOST_METADATA]
        if self._bulk(0.4) and any(process.joined for process in self.processes):
            return (self.too_large // MOST_METADATA + 1) * [MOST_METADATA]
        return [0]

    def leave(
        self,
        process: Process,
        who: Sequence[tuple[Ref | str, str | None]],
        *,
        own: bool,
        connection: str = "",
    ) -> None:
        """Send LeaveGroup for members by (member id, instance id); old versions have one member."""
        reason = self.rng.choice((None, "the fuzzer says so"))
        members = [{"memberId": m, "groupInstanceId": i, "reason": reason} for m, i in who]
        body = {"memberId": who[0][0], "members": members}
        self.send(process, "LEAVE_GROUP", body, own=own, connection=connection)

    def describe(self, process: Process, *, patience_ms: int | None = None) -> None:
        """Send DescribeGroups."""
        body = {"groups": [GROUP], "includeAuthorizedOperations": False}
        self.send(process, "DESCRIBE_GROUPS", body, own=False, patience_ms=patience_ms)

    def delete(self, process: Process, *, connection: str = "") -> None:
        """Send DeleteGroups, which deletes empty groups; with a `connection`, do not wait."""
        body, patience_ms = {"groupsNames": [GROUP]}, 0 if connection else None
        self.send(
            process,
            "DELETE_GROUPS",
            body,
            own=False,
            connection=connection,
            patience_ms=patience_ms,
        )

    # Well-behaved clients, and time.

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

    def wait_with_heartbeats(self, until_ms: float, beating: Sequence[Process]) -> None:
        """Wait; those of `beating` that are in the group send heartbeats meanwhile."""
        while self.connections.now_ms < until_ms:
            due = [
                (process.alive_ms + process.session_ms / 3, number)
                for number, process in enumerate(beating)
                if process.phase is Phase.IN and not process.waiting
            ]
            beat_ms, number = min(due, default=(until_ms, 0))
            if beat_ms >= until_ms:
                self.connections.receive_until(until_ms)
                return
            self.connections.receive_until(max(beat_ms, self.connections.now_ms + 5))
            beating[number].alive_ms = self.connections.now_ms
            self.heartbeat(beating[number])
