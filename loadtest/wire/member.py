"""A well-behaved member of a group, static or dynamic, in any versions of its requests."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_protocol.errors import Error
from kafka_protocol.kio_bodies import NO_TOPIC_ID
from loadtest.wire.connection import Connection, Exchange, WireError
from loadtest.wire.schemas import Versions

JOIN_AGAIN = frozenset(
    {Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS}
)

JoinedMembers = Sequence[Mapping[str, Any]]
"""Members in a leader's JoinGroup response: `memberId`, `groupInstanceId`, `metadata` (base64)."""
Assign = Callable[[str, JoinedMembers], Mapping[str, str]]
"""A leader's assignor: from protocol name and members to assignments (base64) by member id."""


class FencedError(WireError):
    """Another process uses the instance id now."""


def nothing(_: str, members: JoinedMembers) -> Mapping[str, str]:
    """Assign nothing to every member."""
    return {str(member["memberId"]): "" for member in members}


@dataclass(kw_only=True)
class WireMember:
    """One client process in a group, with one request at a time.

    `versions` are the API versions, by API; `protocols` are (name, metadata as base64) in the
    order of preference. A member with an `instance_id` is static. Methods return error codes.
    """

    connection: Connection
    group: str
    versions: Mapping[str, int]
    protocols: Sequence[tuple[str, str]]
    protocol_type: str = "consumer"
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 3_000
    reason: str | None = None
    assign: Assign = nothing
    answer_s: float | None = None
    """How long an answer may take, but for JoinGroup; by default as long as JoinGroup's."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Topic ids by topic, for OffsetCommit v10 and later."""
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: JoinedMembers = field(default_factory=tuple)
    assignment: str = ""

    @staticmethod
    def newest(versions: Versions) -> dict[str, int]:
        """Return the newest version of each API that the broker and kio share."""
        return {api: highest for api, (_, highest) in versions.items()}

    @property
    def is_leader(self) -> bool:
        """Whether it is the leader of its group, by its last JoinGroup response."""
        return bool(self.leader) and self.leader == self.member_id

    @property
    def leads(self) -> bool:
        """Whether the group waits for this member's assignment."""
        return self.is_leader and not self.skip_assignment

    def send(self, api: str, **body: Any) -> Exchange:
        """Send a request with this member's identity; `body` adds fields or overrides them."""
        who = {
            "groupId": self.group,
            "generationId": self.generation,
            "generationIdOrMemberEpoch": self.generation,
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
        }
        return self.connection.send(api, self.versions[api], who | body)

    def send_join(self) -> Exchange:
        """Send JoinGroup with the current member id, without waiting."""
        return self.send(
            "JOIN_GROUP",
            sessionTimeoutMs=self.session_timeout_ms,
            rebalanceTimeoutMs=self.rebalance_timeout_ms,
            protocolType=self.protocol_type,
            protocols=[{"name": name, "metadata": data} for name, data in self.protocols],
            reason=self.reason,
        )

    def joined(self, sent: Exchange) -> int:
        """Wait for a JoinGroup response and apply it; return its error code."""
        answer = self._wait(sent, self._longest_s)
        error = int(answer["errorCode"])
        if error == Error.MEMBER_ID_REQUIRED:
            self.member_id = answer["memberId"]
        elif error == Error.NONE:
            self.member_id, self.generation = answer["memberId"], answer["generationId"]
            self.protocol, self.leader = answer["protocolName"], answer["leader"]
            self.skip_assignment = bool(answer.get("skipAssignment"))
            self.members = answer["members"]
        return error

    def join(self) -> int:
        """Join; after MEMBER_ID_REQUIRED (KIP-394) join again with the new member id."""
        error = self.joined(self.send_join())
        return self.joined(self.send_join()) if error == Error.MEMBER_ID_REQUIRED else error

    def sync(self) -> int:
        """Sync, as the leader with all assignments."""
        shares = self.assign(self.protocol or "", self.members) if self.leads else {}
        answer = self._wait(
            self.send(
                "SYNC_GROUP",
                protocolType=self.protocol_type,
                protocolName=self.protocol,
                assignments=[
                    {"memberId": member_id, "assignment": share}
                    for member_id, share in shares.items()
                ],
            )
        )
        self.assignment = answer["assignment"]
        return int(answer["errorCode"])

    def heartbeat(self, within_s: float | None = None) -> int:
        """Send a heartbeat. Raises WireError if no answer comes in time."""
        return int(self._wait(self.send("HEARTBEAT"), within_s)["errorCode"])

    def commit(self, offsets: Mapping[tuple[str, int], int], within_s: float | None = None) -> int:
        """Commit offsets by (topic, partition); return the first error of a partition."""
        by_topic: dict[str, list[dict[str, Any]]] = {}
        for (topic, partition), offset in offsets.items():
            by_topic.setdefault(topic, []).append(
                {"partitionIndex": partition, "committedOffset": offset, "committedMetadata": ""}
            )
        topics = [
            {"name": name, "topicId": self.topic_ids.get(name, NO_TOPIC_ID), "partitions": parts}
            for name, parts in by_topic.items()
        ]
        sent = self.send("OFFSET_COMMIT", topics=topics, retentionTimeMs=-1)
        answer = self._wait(sent, within_s)
        return _first(
            part["errorCode"] for topic in answer["topics"] for part in topic["partitions"]
        )

    def committed(
        self, partitions: Sequence[tuple[str, int]], within_s: float | None = None
    ) -> tuple[int, dict[tuple[str, int], int]]:
        """Return the first error and the committed offsets of partitions that have one.

        OffsetFetch up to v7.
        """
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        topics = [{"name": name, "partitionIndexes": parts} for name, parts in by_topic.items()]
        sent = self.send("OFFSET_FETCH", topics=topics, requireStable=False)
        answer = self._wait(sent, within_s)
        parts = [
            (topic["name"], part) for topic in answer["topics"] for part in topic["partitions"]
        ]
        errors = (answer.get("errorCode", 0), *(part["errorCode"] for _, part in parts))
        return _first(errors), {
            (topic, part["partitionIndex"]): part["committedOffset"]
            for topic, part in parts
            if part["committedOffset"] >= 0
        }

    def leave(self, reason: str | None = None, within_s: float | None = None) -> int:
        """Leave the group, static or not. Raises WireError if no answer comes in time."""
        me = {
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
            "reason": reason,
        }
        answer = self._wait(self.send("LEAVE_GROUP", members=[me]), within_s)
        results = answer.get("members") or [answer]
        self.member_id, self.generation = "", -1
        return int(answer["errorCode"] or results[0]["errorCode"])

    def rejoin_group(self) -> None:
        """Join and sync until there is an assignment. Raises FencedError or WireError."""
        while True:
            error = self.join() or self.sync()
            if error == Error.NONE:
                return
            self._refused(error)

    def live(self, until: Callable[[], bool]) -> None:
        """Send heartbeats and join rebalances, until `until` returns True."""
        due = time.monotonic()
        while not until():
            if time.monotonic() >= due:
                error = self.heartbeat()
                if error != Error.NONE:
                    self._refused(error)
                    self.rejoin_group()
                due = time.monotonic() + self.heartbeat_interval_ms / 1000
            time.sleep(min(0.05, self.heartbeat_interval_ms / 1000))

    def _refused(self, error: int) -> None:
        """Prepare to join again if the error allows it, as a client does."""
        if error == Error.FENCED_INSTANCE_ID:
            raise FencedError(
                f"{self.group}: {self.instance_id} is used by another process; end one of the two"
            )
        if error not in JOIN_AGAIN:
            raise WireError(f"{self.group}: {self.connection.name} is refused with error {error}")
        if error == Error.UNKNOWN_MEMBER_ID:
            self.member_id, self.generation = "", -1

    def _wait(self, sent: Exchange, within_s: float | None = None) -> dict[str, Any]:
        return self.connection.wait(sent, within_s or self.answer_s or self._longest_s)

    @property
    def _longest_s(self) -> float:
        """How long the coordinator may hold a request, and 30 s."""
        return 30 + (self.rebalance_timeout_ms + self.session_timeout_ms) / 1000


def _first(errors: Iterable[int]) -> int:
    """Return the first error code that is one."""
    return next((int(error) for error in errors if error != Error.NONE), Error.NONE)
