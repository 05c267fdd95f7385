"""Members whose broker-given ids are not known: no response to their JoinGroup gives it.

It has no response, or one without an id, or with the id of the return before it
(`Profile.store_answers_latest_return`). The oracle keeps such a member under an id of its own. The
first response in which a matching id stands in its place (as the leader's, in a leader's list of
members, in a description) says which id the broker gave it: one that no JoinGroup was given.
"""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Self

from reference_coordinator.classic.effects import DescribeResponse, JoinResponse, Response
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group


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
