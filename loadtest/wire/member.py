"""The requests of one member of a group, in any versions, and what it keeps of the answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_protocol.errors import Error, name_of
from kafka_protocol.join_reason import JoinReason
from loadtest.timing import REQUEST_S
from loadtest.wire.connection import Connection, WireError

JoinedMembers = Sequence[Mapping[str, Any]]
"""Members in a leader's JoinGroup response: `memberId`, `groupInstanceId`, `metadata` (base64)."""
Assign = Callable[[str, JoinedMembers], Mapping[str, str]]
"""A leader's assignor: from protocol name and members to assignments (base64) by member id."""


class FencedError(WireError):
    """Another process uses the instance id now."""


class UnexpectedResponse(Exception):  # noqa: N818 (the broker's response, no error of ours)
    """A broker's response differs from the script's, so its group does not show the rule."""


def nothing(_: str, members: JoinedMembers) -> Mapping[str, str]:
    """Assign nothing to every member."""
    return {str(member["memberId"]): "" for member in members}


@dataclass(kw_only=True)
class WireMember:
    """One client process in a group, with one request at a time; it sends what its caller asks for.

    `versions` are the API versions, by API; `protocols` are (name, metadata as base64) in the
    order of preference. A member with an `instance_id` is static. Methods return error codes. With
    `expect`, which is by default what the member `expects`, they raise UnexpectedResponse for
    another one.
    """

    group: str
    name: str
    connection: Connection | None = None
    versions: Mapping[str, int] = field(default_factory=dict)
    protocols: Sequence[tuple[str, str]] = ()
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 60_000
    reason: str | None = None
    join_reason: JoinReason = JoinReason.UNKNOWN
    assign: Assign = nothing
    expects: tuple[int, ...] = ()
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: JoinedMembers = ()
    assignment: str = ""

    @property
    def is_leader(self) -> bool:
        """Whether it is the leader of its group, by its last JoinGroup response."""
        return bool(self.leader) and self.leader == self.member_id

    def disconnect(self) -> None:
        """Close the socket, as the crash of a process does."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def ask(self, api: str, within_s: float = REQUEST_S, **body: Any) -> dict[str, Any]:
        """Send a request with this member's identity; return the response.

        `body` adds fields or overrides them. Raises WireError if no response comes in time.
        """
        if self.connection is None:
            raise WireError(f"{self.name}: there is no connection")
        who = {
            "groupId": self.group,
            "generationId": self.generation,
            "generationIdOrMemberEpoch": body.get("generationId", self.generation),
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
        }
        return self.connection.ask(api, self.versions[api], who | body, within_s)

    def join(self, *expect: int) -> int:
        """Join; after MEMBER_ID_REQUIRED (KIP-394) join again with the new id, unless expected."""
        error = self._join()
        if error == Error.MEMBER_ID_REQUIRED and error not in expect:
            error = self._join()
        return self._checked("join", error, expect)

    def _join(self) -> int:
        # the coordinator may hold it until both timeouts are over
        held_s = (self.rebalance_timeout_ms + self.session_timeout_ms) / 1000
        answer = self.ask(
            "JOIN_GROUP",
            REQUEST_S + held_s,
            sessionTimeoutMs=self.session_timeout_ms,
            rebalanceTimeoutMs=self.rebalance_timeout_ms,
            protocolType="consumer",
            protocols=[{"name": name, "metadata": data} for name, data in self.protocols],
            reason=self.reason,
            joinReason=self.join_reason,
        )
        error = int(answer["errorCode"])
        if error == Error.MEMBER_ID_REQUIRED:
            self.member_id = answer["memberId"]
        elif error == Error.NONE:
            self.member_id, self.generation = answer["memberId"], answer["generationId"]
            self.protocol, self.leader = answer["protocolName"], answer["leader"]
            self.skip_assignment = bool(answer.get("skipAssignment"))
            self.members = answer["members"]
        return error

    def sync(self, *expect: int, **body: Any) -> int:
        """Sync, as the leader with all assignments."""
        assigns = self.is_leader and not self.skip_assignment
        shares = self.assign(self.protocol or "", self.members) if assigns else {}
        answer = self.ask(
            "SYNC_GROUP",
            protocolType="consumer",
            protocolName=self.protocol,
            assignments=[
                {"memberId": member_id, "assignment": share} for member_id, share in shares.items()
            ],
            **body,
        )
        self.assignment = answer["assignment"]
        return self._checked("sync", int(answer["errorCode"]), expect)

    def heartbeat(self, *expect: int, **body: Any) -> int:
        """Send a heartbeat."""
        return self._checked("heartbeat", int(self.ask("HEARTBEAT", **body)["errorCode"]), expect)

    def commit(self, offsets: Mapping[tuple[str, int], int], *expect: int, **body: Any) -> int:
        """Commit offsets by (topic, partition); return the first error of a partition."""
        by_topic: dict[str, list[dict[str, Any]]] = {}
        for (topic, partition), offset in offsets.items():
            by_topic.setdefault(topic, []).append(
                {"partitionIndex": partition, "committedOffset": offset, "committedMetadata": ""}
            )
        topics = [{"name": name, "partitions": parts} for name, parts in by_topic.items()]
        answer = self.ask("OFFSET_COMMIT", topics=topics, retentionTimeMs=-1, **body)
        parts = (part for topic in answer["topics"] for part in topic["partitions"])
        return self._checked("commit", _first(part["errorCode"] for part in parts), expect)

    def committed(
        self, partitions: Sequence[tuple[str, int]], within_s: float
    ) -> tuple[int, dict[tuple[str, int], int]]:
        """Return the first error and the committed offsets of partitions that have one.

        OffsetFetch up to v7.
        """
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        topics = [{"name": name, "partitionIndexes": parts} for name, parts in by_topic.items()]
        answer = self.ask("OFFSET_FETCH", within_s, topics=topics, requireStable=False)
        parts = [
            (topic["name"], part) for topic in answer["topics"] for part in topic["partitions"]
        ]
        errors = (answer.get("errorCode", 0), *(part["errorCode"] for _, part in parts))
        return _first(errors), {
            (topic, part["partitionIndex"]): part["committedOffset"]
            for topic, part in parts
            if part["committedOffset"] >= 0
        }

    def leave(self, *expect: int, reason: str | None = None, within_s: float = REQUEST_S) -> int:
        """Leave the group, static or not, by member id and instance id."""
        me = (self.member_id, self.instance_id)
        error, *errors = self.remove([me], reason, within_s)
        return self._checked("leave", error or errors[0], expect)

    def remove(
        self,
        members: Iterable[tuple[str, str | None]],
        reason: str | None = None,
        within_s: float = REQUEST_S,
    ) -> list[int]:
        """Send one LeaveGroup for several members, by (member id, instance id).

        Returns the error of the request, then that of each member; before v3 there is one for all.
        """
        who = [
            {"memberId": member_id, "groupInstanceId": instance_id, "reason": reason}
            for member_id, instance_id in members
        ]
        answer = self.ask("LEAVE_GROUP", within_s, members=who)
        results = answer.get("members") or [answer]
        return [int(answer["errorCode"]), *(int(result["errorCode"]) for result in results)]

    def _checked(self, what: str, error: int, expect: tuple[int, ...]) -> int:
        wanted = expect or self.expects
        if wanted and error not in wanted:
            names = " or ".join(map(name_of, wanted))
            raise UnexpectedResponse(
                f"{self.group}: {what} of {self.name}: {name_of(error)}, not {names}"
            )
        return error


def _first(errors: Iterable[int]) -> int:
    """Return the first error code that is one."""
    return next((int(error) for error in errors if error != Error.NONE), Error.NONE)
