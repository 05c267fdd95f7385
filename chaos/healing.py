"""Healing from the journal alone, for a run that died before it could heal its faults."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from chaos.clusters.hooks import run_again
from chaos.errors import ChaosError, LoadGoneError
from chaos.journal import Entry, Journal, open_faults, read
from chaos.tap import TapGoneError, has_ended
from scenarios.faults import FAULTS

_TAP_ENDS_S = 10.0
"""How long the tap may take to end after its run."""


class Healed(NamedTuple):
    """Whether one open fault was healed, and how, or why not."""

    fault_id: str
    healed: bool
    how: str


def heal(journal: Journal) -> tuple[Healed, ...]:
    """Undo every fault that the journal leaves open, the latest first, and note it there.

    The load and our brokers have ended by then: nothing of them is healed one by one. Calling
    `heal` twice does no harm. Raises ChaosError if the journal cannot be read.
    """
    results = tuple(map(_undo, reversed(open_faults(read(journal.path)))))
    for result in results:
        journal.write("healed", **result._asdict())
    return results


def _undo(intent: Entry) -> Healed:
    fault_id, undo = intent["fault_id"], intent.get("undo")
    try:
        how = heal_from_journal(undo or {})
    except ChaosError as error:
        return Healed(fault_id, False, str(error))
    if how is None:
        return Healed(fault_id, False, f"this version does not know how to undo {undo}")
    return Healed(fault_id, True, how)


def heal_from_journal(undo: Mapping[str, Any]) -> str | None:
    """Carry out an `undo` of the journal of a run that died; return how, None if no fault has it.

    Members are gone with the load, rules with the tap, and our brokers end with their cluster. What
    a user's hook did to a broker is undone by another. Raises ChaosError if it fails.
    """
    if undo.get("do") not in {kind.undo_name for kind in FAULTS.values() if not kind.one_shot}:
        return None
    match undo:
        case {"broker": int(broker), "hook": dict(hook)}:
            return run_again(broker, hook)
        case {"broker": int(broker)}:
            return f"nothing to undo: broker {broker} ends with all that is left of its cluster"
        case {"member": str()} | {"instance_ids": dict()}:
            return LoadGoneError.left
        case {"pid": int(pid), "started_at_ms": int(started_ms)}:
            if has_ended(pid, started_ms, _TAP_ENDS_S):
                return TapGoneError.left
            raise ChaosError(
                f"the tap (process {pid}) still runs, with its rules; end it, then heal again"
            )
    return None
