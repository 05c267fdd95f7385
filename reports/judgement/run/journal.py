"""Reads the fault journal: every entry is checked for the fields that are read of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import inf
from types import UnionType
from typing import Any, TypeVar

import msgspec

from reports.judgement.errors import EvidenceError
from reports.judgement.log.log_bytes import shortened
from reports.timing import JOURNAL_BACK_MS

Form = Mapping[str, type | UnionType]
"""Fields and their types; a field that may be null may be missing."""
Entry = dict[str, Any]
T = TypeVar("T")
LARGEST = 1e300  # of numbers: with larger ones Python cannot compute
_LAST_MS = 253_402_300_799_000  # the end of the year 9999, the last valid time


def parse(text: str | bytes) -> Any:
    """Parse a JSON text. Raises ValueError where it is not JSON: NaN and infinities are not."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON ({error})") from error


def lacks(content: Any, form: Form) -> str | None:
    """Say in words how parsed JSON differs from a form; None if it does not."""
    if not isinstance(content, dict):
        return "no JSON object"
    for name, kind in form.items():
        value = content.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            fault = "is of the wrong type" if name in content else "is missing"
            return f"{name!r} {fault}"
        if isinstance(value, int | float) and abs(value) > LARGEST:
            return f"{name!r} is too large"
    return None


def entry(line: bytes, every: Form, forms: Mapping[str, Form]) -> Entry:
    """Parse a line that has the fields of `every` one, and those of its `event`.

    Raises ValueError, in words.
    """
    content: Entry = parse(line)
    wrong = lacks(content, every) or lacks(content, forms.get(content["event"], {}))
    if wrong is None and not 0 <= content["at_ms"] <= _LAST_MS:
        wrong = "'at_ms' is no time"
    if wrong is not None:
        raise ValueError(wrong)
    return content


class Account(msgspec.Struct):
    """Counts the lines of a file or of a part of it, and names the first one not understood."""

    lines: int = 0
    damaged: int = 0
    first: int = 0
    why: str = ""

    def entries(self, lines: Iterable[bytes], read: Callable[[bytes], T]) -> Iterator[T]:
        """Yield what is understood; `read` raises ValueError for any other line, in words."""
        for line in lines:
            self.lines += 1
            try:
                yield read(shortened(line))
            except (ValueError, RecursionError) as error:
                why = "invalid UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
                self.first, self.why = self.first or self.lines, self.why or why
                self.damaged += 1

    def merge(self, later: "Account") -> None:
        """Add the account of the part that follows."""
        if later.damaged and not self.damaged:
            self.first, self.why = self.lines + later.first, later.why
        self.lines += later.lines
        self.damaged += later.damaged

    def doubts(self, name: str) -> list[str]:
        """Say, in one doubt, what of the file of that name is not understood."""
        more = f"; {self.damaged} such lines" if self.damaged > 1 else ""
        return [f"{name}:{self.first} not understood ({self.why}){more}"] if self.damaged else []


Fault = dict[str, Any]
"""A fault as the verdict lists it, but for `OF_PLAN`; times in ms, None for what the journal does
not have."""
OF_PLAN = ("id", "args")
"""What of a fault stands in the plan alone."""
PHASES = ("formation", "impact", "recovery", "teardown")
"""The phases of a run, in their order."""

_EVERY: Form = {"at_ms": int | float, "event": str, "fault_id": str | None}
_FORMS: dict[str, Form] = {
    "phase": {"phase": str},
    "steady_state": {"ok": bool},
    "intent": {
        "fault_id": str,
        "fault": str,
        "target": str,
        "cause": str | None,
        "group": str | None,
        "args": dict | None,
    },
    "injected": {"fault_id": str, "log_lines": int | None},
    "verified": {"fault_id": str, "verified": bool, "witness": str},
    "healed": {"fault_id": str, "healed": bool},
    "skipped": {"fault_id": str},
    "failed": {"error": str},
    "borrowed": {"offsets_leaders": list},
    "cut_short": {"broker": int, "log_bytes": int},
    "ended": {"member": str, "group": str, "error": str, "seen_at_ms": int | float},
}  # the fields that are read, by event; of other events none is


def read(name: str, content: bytes) -> tuple[Entry, ...]:
    """Return a journal's entries; a last line without an end is dropped, its writer died.

    Raises EvidenceError, with `name` and line number, for an entry in another form.
    """
    *lines, _cut_off = content.split(b"\n")
    account = Account()
    found = tuple(account.entries(lines, partial(entry, every=_EVERY, forms=_FORMS)))
    for number, (before, after) in enumerate(pairwise(found), 1):
        if after["at_ms"] < before["at_ms"] - JOURNAL_BACK_MS and not account.damaged:
            account.damaged, account.first, account.why = 1, number, "'at_ms' is after the next one"
    if account.damaged:
        raise EvidenceError(
            f"{name}:{account.first}: no journal entry: {account.why}; the journal was altered"
        )
    return found


def span(journal: Sequence[Entry], off_ms: float = 0.0, *, completed: bool) -> tuple[float, float]:
    """Return between when a run's evidence was written, by clocks that are off by so much."""
    times, about_ms = [entry["at_ms"] for entry in journal], JOURNAL_BACK_MS + off_ms
    last_ms = max(times, default=inf) if completed else inf
    return min(times, default=-inf) - about_ms, last_ms + about_ms


def phase_of(phases: Iterable[tuple[str, float]], at_ms: float) -> str:
    """Return the phase of a time; `phases` tells which began, and when, in their order."""
    name = PHASES[0]
    for phase, began_ms in phases:
        if began_ms <= at_ms:
            name = phase
    return name


def healed_ms(fault: Fault) -> float:
    """Return when a fault was healed, in ms; infinity if it was not."""
    return float(fault["healed_at_ms"]) if fault["healed"] else inf
