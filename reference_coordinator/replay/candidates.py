"""Events that may come next, each with its latest time, and contradictions to an order."""

from collections.abc import Callable, Mapping
from dataclasses import astuple, fields
from operator import attrgetter
from typing import Any, NamedTuple

from kafka_protocol.errors import name_of
from reference_coordinator.classic.effects import (
    DescribedMember,
    Response,
)
from reference_coordinator.classic.events import Timer
from reference_coordinator.frozen import frozen_dataclass
from reference_coordinator.replay.evidence import EpochEvent, ObservedRequest


class Candidate(NamedTuple):
    """Something that may happen next: a request, a timer, a write's outcome, a serving."""

    earliest_ms: float
    at_ms: float
    latest_ms: float
    cause: ObservedRequest | Timer | str | EpochEvent | None
    """An id stands for the write which that request waits for; None for the end of evidence."""
    hinted: bool = False
    protocol: str = ""
    """What a tie between protocols ends in, where no answer tells."""
    leader: str = ""
    """The member that the coordinator picked to lead, where no response shows it."""
    overtaken: bool = False
    """Whether this is a timer that was restarted, or stopped, after it had expired."""
    of_pending: bool = False
    """Whether that timer's member was pending when it was armed."""
    on_time_ms: float = float("inf")
    """The latest instant of a timer that was extended, were none of its parts late."""
    timed_out: bool = False
    """Whether this is the outcome of a write that no answer shows, and that timed out."""


LATEST_MS: Callable[[Candidate], float] = attrgetter("latest_ms")


@frozen_dataclass(frozen=True, slots=True)
class Mismatch:
    """An answer that is not the oracle's."""

    request: str
    at_ms: float
    rule: str
    expected: str
    observed: str


def wrong_time(seen: ObservedRequest, rule: str, due_ms: float) -> Mismatch:
    """Return what is wrong with an answer that was due at another time."""
    late = seen.answered_ms - due_ms
    word = "later" if late > 0 else "earlier"
    return Mismatch(
        seen.id, seen.answered_ms, rule, "an answer at its time", f"{abs(late):.0f} ms {word}"
    )


def given_again(seen: ObservedRequest) -> Mismatch:
    """Return what is wrong with an answer whose member id was given before."""
    expected = "member_id=one that was never given"
    observed = f"member_id={seen.response_fields['memberId']}, which was given before"
    return Mismatch(seen.id, seen.answered_ms, "answer", expected, observed)


class Due(NamedTuple):
    """When a timer expires: the earliest, the likeliest and the latest deadline.

    `of_pending` says whether its member was pending when it was armed. `on_time_ms` is the latest
    deadline of one that was extended, were none of its parts late.
    """

    earliest_ms: float
    at_ms: float
    latest_ms: float
    of_pending: bool = False
    on_time_ms: float = float("inf")


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
