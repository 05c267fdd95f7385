"""Reads the fault journal: every entry is checked for the fields that are read of it."""

from collections.abc import Iterable
from typing import Any, cast

from reports.judgement.errors import EvidenceError
from reports.judgement.run.json_form import Form, lacks, parse

Entry = dict[str, Any]
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
}
"""The fields that are read, by event; of other events none is."""
_LAST_MS = 253_402_300_799_000
"""The end of the year 9999, the last valid time."""


def read(name: str, text: str) -> tuple[Entry, ...]:
    """Return a journal's entries; a last line without an end is dropped, its writer died.

    Raises EvidenceError, with `name` and line number, for an entry in another form.
    """
    *lines, _cut_off = text.split("\n")
    return tuple(_entry(f"{name}:{number}", line) for number, line in enumerate(lines, 1))


def phase_of(phases: Iterable[tuple[str, float]], at_ms: float) -> str:
    """Return the phase of a time; `phases` tells which began, and when, in their order."""
    name = PHASES[0]
    for phase, began_ms in phases:
        if began_ms <= at_ms:
            name = phase
    return name


def _entry(place: str, line: str) -> Entry:
    try:
        entry = parse(line)
    except ValueError as error:
        raise EvidenceError(f"{place}: no JSON; the journal was altered") from error
    wrong = lacks(entry, _EVERY) or lacks(entry, _FORMS.get(entry["event"], {}))
    if wrong is None and not 0 <= entry["at_ms"] <= _LAST_MS:
        wrong = "'at_ms' is no time"
    if wrong is not None:
        raise EvidenceError(f"{place}: no journal entry: {wrong}; the journal was altered")
    return cast(Entry, entry)
