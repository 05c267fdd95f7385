"""Compares the oracle's responses with observed ones, and shows the differences."""

from collections.abc import Mapping
from dataclasses import astuple, fields
from typing import Any

from kafka_protocol.errors import name_of
from reference_coordinator.classic.effects import (
    DescribedMember,
    Response,
)


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
