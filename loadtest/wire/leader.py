"""What a leader does: it reads the members of its group, and writes their assignments."""

from base64 import b64decode
from collections.abc import Mapping, Sequence

from loadtest.wire.member import JoinedMembers
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


def shares(assignor: str, members: Sequence[Member], counts: Mapping[str, int]) -> dict[str, bytes]:
    """Return the assignment of each member, by member id; `counts` are partitions by topic."""
    assigned = ASSIGNORS[assignor](members, counts)
    return {member_id: Assignment(tuple(share)).encode() for member_id, share in assigned.items()}
