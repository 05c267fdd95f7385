"""What may happen next, and by when; and how it shows that it did not."""

from dataclasses import dataclass
from typing import NamedTuple

from reference_coordinator.events import Timer
from reference_coordinator.replay.evidence import Observed, Serving


class Candidate(NamedTuple):
    """Something that may happen next: a request, a timer, a write's outcome, a serving."""

    earliest_ms: float
    at_ms: float
    latest_ms: float
    cause: Observed | Timer | str | Serving | None
    """An id stands for the write which that request waits for; None for the end of evidence."""
    hinted: bool = False
    protocol: str = ""
    """What a tie between protocols ends in, where no answer tells."""
    leader: str = ""
    """Whom the coordinator picked to lead, where no answer tells."""
    overtaken: bool = False
    """Whether this is a timer that was started anew, or stopped, after it had run out."""
    of_pending: bool = False
    """Whether that timer's member was pending when it was armed."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An answer that is not the oracle's."""

    request: str
    at_ms: float
    rule: str
    expected: str
    observed: str


class Due(NamedTuple):
    """When a timer runs out: the earliest, the likeliest and the latest deadline.

    `of_pending` says whether its member was pending when it was armed.
    """

    earliest_ms: float
    at_ms: float
    latest_ms: float
    of_pending: bool = False
