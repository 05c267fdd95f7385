"""Compares the oracle's responses with observed ones, and shows the differences."""

from collections.abc import Mapping
from dataclasses import astuple, fields, replace
from typing import Any

from kafka_protocol.errors import name_of
from kafka_protocol.versions import (
    FIRST_DESCRIBE_WITH_INSTANCE_ID,
    FIRST_JOIN_WITH_INSTANCE_ID,
    FIRST_JOIN_WITH_PROTOCOL_TYPE,
    FIRST_JOIN_WITH_SKIP_ASSIGNMENT,
    FIRST_SYNC_WITH_PROTOCOL,
)
from reference_coordinator.classic.effects import (
    DescribedMember,
    DescribeResponse,
    JoinResponse,
    Response,
    SyncResponse,
)
from reference_coordinator.frozen import replace_fields


def as_sent(answer: Response, api_version: int) -> Response:
    """Drop from an answer what its version has no field for."""
    if isinstance(answer, JoinResponse):
        if answer.members and api_version < FIRST_JOIN_WITH_INSTANCE_ID:
            answer = replace_fields(
                answer, members=frozenset((m, None, d) for m, _, d in answer.members)
            )
        if answer.protocol_type is not None and api_version < FIRST_JOIN_WITH_PROTOCOL_TYPE:
            answer = replace_fields(answer, protocol_type=None)
        if answer.skip_assignment and api_version < FIRST_JOIN_WITH_SKIP_ASSIGNMENT:
            answer = replace_fields(answer, skip_assignment=False)
    elif isinstance(answer, DescribeResponse):
        if api_version < FIRST_DESCRIBE_WITH_INSTANCE_ID:
            nameless = (replace(member, group_instance_id=None) for member in answer.members)
            answer = replace_fields(answer, members=frozenset(nameless))
    elif isinstance(answer, SyncResponse) and api_version < FIRST_SYNC_WITH_PROTOCOL:
        answer = SyncResponse(answer.error, assignment=answer.assignment)
    return answer


def differences(expected: Response, observed: Response) -> tuple[tuple[str, str, str], ...]:
    """Compare two answers; give (field, expected, observed) for every field that differs."""
    return tuple(
        (field.name, _show(field.name, ours, theirs), _show(field.name, theirs, ours))
        for field in fields(expected)
        if (ours := getattr(expected, field.name)) != (theirs := getattr(observed, field.name))
    )


def _show(field: str, value: object, other: object) -> str:
    if field == "error" and isinstance(value, int):
        return name_of(value)
    if isinstance(value, frozenset) and isinstance(other, frozenset):
        return _show_members(_by_id(value), _by_id(other))
    if isinstance(value, tuple):  # LeaveGroup's results
        shown = (f"{member or instance}: {name_of(code)}" for member, instance, code in value)
        return f"[{', '.join(shown)}]"
    return str(value)


def _by_id(members: frozenset[tuple[Any, ...] | DescribedMember]) -> dict[str, tuple[Any, ...]]:
    """Sort members by id, each with its other fields."""
    shown = (astuple(m) if isinstance(m, DescribedMember) else m for m in members)
    return {member[0]: member[1:] for member in sorted(shown, key=lambda m: str(m[0]))}


def _show_members(members: Mapping[str, object], others: Mapping[str, object]) -> str:
    """Show ids, and a member's other fields where they differ from those of the other side."""
    shown = (
        f"{id_} {rest}" if id_ in others and rest != others[id_] else id_
        for id_, rest in members.items()
    )
    return f"[{', '.join(shown)}]"
