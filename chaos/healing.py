"""Healing from the journal alone, for a run that died before it could heal its faults."""

from typing import NamedTuple

from chaos.errors import ChaosError
from chaos.faults import heal_from_journal
from chaos.journal import Entry, Journal, open_faults, read


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
