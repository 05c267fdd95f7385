"""Reads the fault journal: every entry is checked for the fields that are read of it."""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from math import inf
from typing import Any

from reports.judgement.errors import EvidenceError
from reports.judgement.run.json_form import Account, Entry, Form, entry
from reports.timing import JOURNAL_BACK_MS

Fault = dict[str, Any]
"""A fault as the verdict lists it; times in ms, None for what the journal does not have."""
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
}
"""The fields that are read, by event; of other events none is."""


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
