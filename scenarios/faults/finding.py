"""What a witness says of a fault, and waiting for it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from scenarios.timing import FIRST_LOOK_S, SLOWEST_LOOK_S


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a claim holds, and the evidence, as part of a sentence."""

    holds: bool
    evidence: str


def await_finding(
    look: Callable[[], Finding | None], within_ms: int, missing: str, stop: threading.Event
) -> Finding:
    """Call `look` until it returns a finding, time is up or `stop` is set.

    `missing` says what is missing when time is up. It is looked for less and less often: hundreds
    of threads may look at once.
    """
    deadline = time.monotonic() + within_ms / 1000
    wait_s = FIRST_LOOK_S
    while True:
        if found := look():
            return found
        if time.monotonic() >= deadline:
            return Finding(False, f"{missing} within {grouped(within_ms)} ms")
        if stop.wait(wait_s):
            return Finding(False, "its coming back was not waited for, as the run was ended")
        wait_s = min(wait_s + FIRST_LOOK_S, SLOWEST_LOOK_S)


def grouped(number: int) -> str:
    """Return a number as people read it: `12 345`."""
    return f"{number:,}".replace(",", " ")
