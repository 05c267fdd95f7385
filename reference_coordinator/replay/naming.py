"""Ids of members whose joins were not answered, or not with an id: a leader is told them first.

The oracle keeps such a member under an id of its own; the first answer that has a matching id in
its place says what the broker's was.
"""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, replace
from typing import Any

from reference_coordinator.classic.effects import DescribeResponse, JoinResponse, Response


def named(
    ours: Response, theirs: Response, unnamed: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield (our id, the broker's) for each unnamed member of our answer that theirs names.

    `unnamed` gives the prefix that the broker's id must have, by our id.
    """
    without_member = [told for told in _members(theirs) if told not in _members(ours)]
    found: dict[str, str] = {}
    for old, *about in _members(ours):
        if old not in unnamed:
            continue
        for new, *rest in without_member:
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
    """List the members that an answer tells of, each with its id first."""
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
