"""What a leader does: it reads its group's members, watches topics, and writes assignments."""

import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping, Sequence

from kafka_protocol.errors import BrokerError, Error, name_of
from loadtest.timing import UNCLEAR_S
from loadtest.wire.member import JoinedMembers, WireMember
from reference_coordinator.assignors import ASSIGNORS, Assignment, Member, Subscription


def members_of(joined: JoinedMembers) -> list[Member]:
    """Read the members of a leader's JoinGroup response. Raises ConsumerProtocolError."""
    return [
        Member(
            str(one["memberId"]),
            Subscription.decode(b64decode(one["metadata"])),
            one.get("groupInstanceId"),
        )
        for one in joined
    ]


def shares(assignor: str, members: Sequence[Member], counts: Mapping[str, int]) -> dict[str, str]:
    """Return each member's assignment (base64), by member id; `counts` are partitions by topic."""
    assigned = ASSIGNORS[assignor](members, counts)
    return {
        member_id: b64encode(Assignment(tuple(share)).encode()).decode()
        for member_id, share in assigned.items()
    }


class Topics:
    """The partition counts that a leader saw last, asked for again once they are old.

    `on_error` gets a text for each topic whose partitions cannot be seen, for want of a permission
    for example.
    """

    def __init__(self, max_age_s: float, on_error: Callable[[str], None]) -> None:
        self._max_age_s = max_age_s
        self._on_error = on_error
        self._wanted: set[str] = set()
        self._counts: dict[str, int] = {}
        self._ask_again_s = 0.0

    def counts_of(self, topics: Collection[str], member: WireMember) -> Mapping[str, int]:
        """Ask for the partitions of all topics of a group; those that do not exist are left out."""
        self._wanted = set(topics)
        self._ask(member)
        return self._counts

    def changed(self, member: WireMember) -> bool:
        """Whether what the leader knew has changed; asks only when its knowledge is old."""
        if not self._wanted or time.monotonic() < self._ask_again_s:
            return False
        before = self._counts
        self._ask(member)
        return before != self._counts

    def _ask(self, member: WireMember) -> None:
        answer = member.ask(
            "METADATA",
            topics=[{"name": topic} for topic in sorted(self._wanted)],
            allowAutoTopicCreation=False,
            includeClusterAuthorizedOperations=False,
            includeTopicAuthorizedOperations=False,
        )
        found: dict[str, int] = {}
        age_s = self._max_age_s
        for topic in answer["topics"]:
            name, error, count = topic["name"], int(topic["errorCode"]), len(topic["partitions"])
            if error == Error.NONE or count:
                found[name] = count
            elif error != BrokerError.UNKNOWN_TOPIC_OR_PARTITION:
                self._on_error(f"topic {name}: {name_of(error)}")
                age_s = min(age_s, UNCLEAR_S)
                if name in self._counts:
                    found[name] = self._counts[name]
        self._counts, self._ask_again_s = found, time.monotonic() + age_s
