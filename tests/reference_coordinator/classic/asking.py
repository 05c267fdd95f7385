"""The requests of a play, with what most of them say, and what becomes of them."""

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from kafka_protocol.errors import Error
from kafka_protocol.group_configs import DELETE, EXPECTED, SET, TARGET_SIZE, TIMEOUT
from kafka_protocol.join_reason import JoinReason
from reference_coordinator.classic.effects import (
    Bound,
    DeleteResponse,
    DescribeResponse,
    JoinResponse,
    LeaveResponse,
    Response,
    SyncResponse,
)
from reference_coordinator.classic.events import (
    Choices,
    CommitReceived,
    ConfigureReceived,
    DeleteReceived,
    DescribeReceived,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    Request,
    SyncReceived,
)
from reference_coordinator.classic.state import Group, State

SESSION_MS = 10_000
REBALANCE_MS = 30_000
BOTH = ("range", "roundrobin")
"""What most members of a play support: `range` is then the selected protocol."""


R = TypeVar("R", bound=Response)


@dataclass(slots=True)
class Call(Generic[R]):
    """One request, with its answer once there is one."""

    request: str
    response: R | None = None

    @property
    def pending(self) -> bool:
        """Whether the answer is still out."""
        return self.response is None

    @property
    def answer(self) -> R:
        """The answer; there must be one."""
        assert self.response is not None, f"{self.request} is not answered yet"
        return self.response

    @property
    def error(self) -> Error:
        """The answer's error."""
        return Error(self.answer.error)


class Requests(ABC):
    """What clients send; a play keeps the rest."""

    group: Group
    now_ms: float
    choices: Choices
    calls: dict[str, Call]
    bound: list[Bound]

    def __init__(self) -> None:
        self._drawn: Counter[str] = Counter()

    @abstractmethod
    def _ask(self, event: Request) -> Call:
        """Hand a request to the coordinator."""

    def _send(self, kind: type[Request], who: str, **fields: Any) -> Call:
        """Send a request, of the current generation unless another is given."""
        if fields.get("generation", 0) is None:
            fields["generation"] = self.group.generation
        api = kind.__name__.removesuffix("Received").lower()
        name = f"{api} {len(self.calls) + 1} of {who}"
        return self._ask(kind(at_ms=self.now_ms, request=name, **fields))

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        client: str = "client",
        version: int = 9,
        protocols: tuple[str, ...] = BOTH,
        subscription: str = "orders",
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        reason: str | None = None,
        join_reason: JoinReason = JoinReason.UNKNOWN,
        host: str = "/127.0.0.1",
        drawn: str | None = None,
    ) -> Call[JoinResponse]:
        """Send JoinGroup; a new member id, if it gets one, is `<instance or client>-<n>`.

        `drawn` is offered in its place.
        """
        prefix = instance or client
        offered = f"{prefix}-{self._drawn[prefix] + 1}" if drawn is None else drawn
        call = self._send(
            JoinReceived,
            member_id or prefix,
            api_version=version,
            client_id=client,
            member_id=member_id,
            group_instance_id=instance,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=tuple((name, f"{name}:{subscription}") for name in protocols),
            reason=reason,
            join_reason=join_reason,
            choices=replace(self.choices, new_member_id=offered),
            client_host=host,
        )
        if any(b.kind == "member_id" and b.value == offered for b in self.bound):
            self._drawn[prefix] += 1
        return call

    def join_dynamic(self, client: str, *, session_ms: int = SESSION_MS) -> Call[JoinResponse]:
        """Join as today's clients do, in two steps (KIP-394); return the second."""
        first = self.join(client=client, session_ms=session_ms)
        assert first.error is Error.MEMBER_ID_REQUIRED
        return self.join(first.answer.member_id, client=client, session_ms=session_ms)

    def sync(
        self,
        member_id: str,
        *,
        instance: str | None = None,
        generation: int | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
        version: int = 4,
        **assignments: str,
    ) -> Call[SyncResponse]:
        """Send SyncGroup."""
        return self._send(
            SyncReceived, member_id, generation=generation, member_id=member_id,
            group_instance_id=instance, protocol_type=protocol_type, protocol=protocol,
            assignments=tuple(assignments.items()), api_version=version,
        )  # fmt: skip

    def sync_everyone(self) -> None:
        """Let the leader give each member `work of <member id>`, and the followers fetch it."""
        work = {member_id: f"work of {member_id}" for member_id in self.group.members}
        leader = self.group.leader or ""
        assert self.sync(leader, **work).error is Error.NONE
        for follower in sorted(set(work) - {leader}):
            assert self.sync(follower).answer.assignment == work[follower]
        assert self.group.state is State.STABLE

    def heartbeat(
        self, member_id: str, *, instance: str | None = None, generation: int | None = None
    ) -> Error:
        """Send Heartbeat."""
        return self._send(
            HeartbeatReceived, member_id, generation=generation, member_id=member_id,
            group_instance_id=instance,
        ).error  # fmt: skip

    def leave(self, *members: tuple[str, str | None], version: int = 5) -> LeaveResponse:
        """Send LeaveGroup for (member id, instance id)s."""
        return self._send(
            LeaveReceived, str(len(members)), api_version=version, members=members,
            choices=self.choices,
        ).answer  # fmt: skip

    def commit(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        generation: int | None = None,
        version: int = 9,
        transactional: bool = False,
    ) -> Error:
        """Send OffsetCommit or TxnOffsetCommit."""
        return self._send(
            CommitReceived, member_id, api_version=version, generation=generation,
            member_id=member_id, group_instance_id=instance, transactional=transactional,
        ).error  # fmt: skip

    def describe(
        self, *, version: int = 5, confirmed: tuple[str, str] = ("", "")
    ) -> DescribeResponse:
        """Send DescribeGroups; `confirmed` offers state and protocol type on disk."""
        choices = Choices(described=confirmed)
        call = self._send(DescribeReceived, "an operator", api_version=version, choices=choices)
        return call.answer

    def ask_to_delete(self) -> Call[DeleteResponse]:
        """Send DeleteGroups, whose answer may wait for a write."""
        return self._send(DeleteReceived, "an operator")

    def configure(self, **configs: str | None) -> Error:
        """Send IncrementalAlterConfigs: the names short, None to delete."""
        names = {"expected": EXPECTED, "timeout_ms": TIMEOUT, "target_size": TARGET_SIZE}
        changes = tuple(
            (names.get(key, key), DELETE if value is None else SET, value)
            for key, value in configs.items()
        )
        return self._send(ConfigureReceived, "an operator", changes=changes).error

    def delete(self) -> Error:
        """Send DeleteGroups, which is answered at once."""
        return self.ask_to_delete().error
