"""Healing from the journal alone, for a run that died before it could put things right."""

from pathlib import Path
from typing import NamedTuple

from chaos.errors import ChaosError
from chaos.faults.member_restart import start_again
from chaos.journal import Entry, Journal, open_faults, read
from chaos.members import Members


class Healed(NamedTuple):
    """What became of one open fault."""

    fault_id: str
    healed: bool
    how: str


def heal(path: Path, members: Members | None) -> tuple[Healed, ...]:
    """Undo every fault that the journal leaves open, the latest first, and note it there.

    `members` is None if the load process is gone. Doing it twice does no harm. Raises ChaosError if
    the journal cannot be read or its run still goes on.
    """
    read(path)  # what is no journal must not become one
    with Journal(path) as journal:
        results = tuple(_undo(intent, members) for intent in reversed(open_faults(read(path))))
        for result in results:
            journal.write("healed", **result._asdict())
    return results


def _undo(intent: Entry, members: Members | None) -> Healed:
    fault_id = intent["fault_id"]
    match intent["undo"]:
        case {"do": "start", "member": str(member)}:
            try:
                return Healed(fault_id, True, start_again(member, members))
            except ChaosError as error:
                return Healed(fault_id, False, str(error))
        case undo:
            return Healed(fault_id, False, f"this version does not know how to undo {undo}")
