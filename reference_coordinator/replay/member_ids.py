"""Members under the ids that brokers gave them, and under others until these are known.

No response may give a member's id. Its JoinGroup has no response, or one without an id, or with the
id of the return before it (`Profile.store_answers_latest_return`). The oracle keeps such a member
under an id of its own. The first response in which a matching id stands in its place (as the
leader's, in a leader's list of members, in a description) says which id the broker gave it: one
that no JoinGroup was given.

A killed coordinator may have stored an id that no log gives: a broker logs a request once its
response is sent, and the new id of a static rejoin is in the group's record before (KIP-345,
KAFKA-10284). Its successor knows the id: it answers a request with it as one of a member, or names
it as the leader's. That is bound, and a doubt: nothing shows the JoinGroup (`unlogged_returns`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Self

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import DescribeResponse, JoinResponse, Response
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.timing import SETTLING_MS


@dataclass(slots=True)
class GivenIds:
    """The member ids that a group's JoinGroups without one were given, by any broker.

    An id ends in a random UUID (`GroupMetadata.generateMemberId` from 2.4 on,
    `ClassicGroup.generateMemberId`), so none is given twice: not to the same instance, and not by
    another coordinator. `repeats` are the requests that were given an earlier one's.

    A group may be given millions, so only their hashes are kept, of 64 bits.
    """

    repeats: set[str] = field(default_factory=set)
    _known: set[int] = field(default_factory=set)

    def __contains__(self, member_id: str) -> bool:
        """Tell whether a JoinGroup was given an id."""
        return hash(member_id) in self._known

    def add(self, requests: Iterable[ObservedRequest]) -> None:
        """Take more JoinGroups, in order of time."""
        for seen in requests:
            given = seen.response_fields.get("memberId")
            if not given or seen.request.get("memberId"):
                continue
            if given in self:
                self.repeats.add(seen.id)
            self._known.add(hash(given))


UUID_LENGTH = 36
AS_MEMBER = (Error.NONE, Error.REBALANCE_IN_PROGRESS)
WHILE_LOADING = (("HEARTBEAT", Error.NONE), ("SYNC_GROUP", Error.REBALANCE_IN_PROGRESS))
"""What a coordinator that loads the group answers with whatever id (SyncGroup: Scala)."""


def unlogged_returns(
    record: GroupRecord,
    requests: Iterable[ObservedRequest],
    given_ids: GivenIds,
    loaded_ms: float,
) -> dict[str, str]:
    """Find members of a record that have new ids under its next coordinator, new by old id.

    `requests` are those of that coordinator, in order of time: the first id of an instance counts.
    It has loaded the group at `loaded_ms`.
    """
    found: dict[str, str] = {}
    statics = {m.group_instance_id: m.member_id for m in record.members if m.group_instance_id}
    for member_id in dict.fromkeys(_members_in(requests, loaded_ms + SETTLING_MS)):
        instance = member_id[: -UUID_LENGTH - 1]
        old = statics.get(instance)
        if old is not None and member_id.startswith(f"{instance}-") and old not in found:
            found[old] = old if member_id in given_ids else member_id
    return {old: new for old, new in found.items() if new != old}


def with_new_ids(record: GroupRecord, new_ids: dict[str, str]) -> GroupRecord:
    """Return a record in which members have other ids."""
    members = tuple(
        replace(member, member_id=new_ids.get(member.member_id, member.member_id))
        for member in record.members
    )
    leader = new_ids.get(record.leader or "", record.leader)
    return replace(record, members=members, leader=leader)


def _members_in(requests: Iterable[ObservedRequest], loads_until_ms: float) -> Iterator[str]:
    """Yield the ids that a coordinator's responses show to be those of members."""
    for seen in requests:
        response = seen.response_fields
        error = response.get("errorCode")
        may_load = seen.earliest_ms <= loads_until_ms and (seen.api, error) in WHILE_LOADING
        if error in AS_MEMBER and not may_load and seen.request.get("groupInstanceId"):
            yield seen.request.get("memberId") or ""
        yield response.get("leader") or ""


@dataclass(frozen=True, slots=True)
class UnnamedMembers:
    """What is known of such members, by the ids that the oracle made for them.

    `prefixes` say how their real ids begin (the client id or instance id), `names` hold the real
    ids that are found out.
    """

    prefixes: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_record(cls, record: GroupRecord | None) -> Self:
        """Return the static members of a record that the coordinator before could not name."""
        members = () if record is None else record.members
        named = ((member.member_id, f"{member.group_instance_id}-") for member in members)
        return cls({made: prefix for made, prefix in named if made.startswith(f"{prefix}?")})

    def with_member(self, made_id: str, prefix: str) -> "UnnamedMembers":
        """Add a member."""
        return UnnamedMembers({**self.prefixes, made_id: prefix}, self.names)

    def with_name(self, made_id: str, member_id: str) -> "UnnamedMembers":
        """Note the real id of a member."""
        return UnnamedMembers(self.prefixes, {**self.names, made_id: member_id})

    def names_another(self, request: str) -> bool:
        """Tell whether the response to a request does not give the id of its own member."""
        return any(made == f"{prefix}?{request}" for made, prefix in self.prefixes.items())

    def leader_in(self, group: Group, leader: str) -> str:
        """Return the id under which the group knows a leader that a response names."""
        if not self.prefixes or leader in group.members:
            return leader
        alike = (made for made, prefix in self.prefixes.items() if leader.startswith(prefix))
        return next((made for made in alike if made in group.members), leader)


def named(
    ours: Response, theirs: Response, unnamed: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield (our id, the broker's) for each unnamed member of our response that theirs names.

    `unnamed` are the prefixes that the brokers' ids must have, by our ids.
    """
    theirs_alone = [one for one in _members(theirs) if one not in _members(ours)]
    found: dict[str, str] = {}
    for old, *about in _members(ours):
        if old not in unnamed:
            continue
        for new, *rest in theirs_alone:
            fits = rest == about and new.startswith(unnamed[old])
            if fits and new not in found.values():
                found[old] = new
                break
    if isinstance(ours, JoinResponse) and isinstance(theirs, JoinResponse):
        leader = ours.leader
        if leader in unnamed and leader not in found and theirs.leader.startswith(unnamed[leader]):
            found[leader] = theirs.leader
    yield from found.items()


def _members(answer: Response) -> list[tuple[Any, ...]]:
    """List the members that a response names, each with its id first."""
    if isinstance(answer, JoinResponse):
        return sorted(answer.members, key=lambda member: member[0])
    if isinstance(answer, DescribeResponse):
        return sorted(map(astuple, answer.members), key=lambda member: str(member[0]))
    return []


def renamed(answer: Response, names: Mapping[str, str]) -> Response:
    """Put known names into an answer."""
    if isinstance(answer, JoinResponse):
        return replace(
            answer,
            member_id=names.get(answer.member_id, answer.member_id),
            leader=names.get(answer.leader, answer.leader),
            members=frozenset((names.get(m, m), i, d) for m, i, d in answer.members),
        )
    if isinstance(answer, DescribeResponse):
        known = (replace(m, member_id=names.get(m.member_id, m.member_id)) for m in answer.members)
        return replace(answer, members=frozenset(known))
    return answer


def rename(group: Group, ours: Response, theirs: Response) -> Group:
    """Give a member the id that the broker gave it, where that alone was wrong."""
    if not isinstance(ours, JoinResponse) or not isinstance(theirs, JoinResponse):
        return group
    old, new = ours.member_id, theirs.member_id
    if old not in group.members or not new or new == old or new in group.members:
        return group
    return with_member_id(group, old, new)


def with_member_id(group: Group, old: str, new: str) -> Group:
    """Replace a member id everywhere in a group."""
    member = replace(group.members[old], member_id=new)
    other = {old: new}
    return replace(
        group,
        members=group.members.without(old).put(member),
        static_ids={i: other.get(m, m) for i, m in group.static_ids.items()},
        leader=other.get(group.leader or "", group.leader),
        open_leaders=frozenset(other.get(m, m) for m in group.open_leaders),
        pending_syncs=frozenset(other.get(m, m) for m in group.pending_syncs),
        writes={
            request: replace(write, member_id=other.get(write.member_id or "", write.member_id))
            for request, write in group.writes.items()
        },
    )
