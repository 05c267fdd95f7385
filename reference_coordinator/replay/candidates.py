"""Events that may come next, each with its latest time, and contradictions to an order."""

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

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
