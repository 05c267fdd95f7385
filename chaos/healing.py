"""Healing from the journal alone, for a run that died before it could put things right."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

from chaos.errors import ChaosError
from chaos.faults.duplicate_instance import end_duplicate
from chaos.faults.member_restart import start_again
from chaos.journal import Entry, Journal, open_faults, read
from chaos.members import Identity, Members


class Healed(NamedTuple):
    """What became of one open fault."""

    fault_id: str
    healed: bool
    how: str


def heal(
    path: Path, members: Members | None, end_cluster: Callable[[], object] = lambda: None
) -> tuple[Healed, ...]:
    """Undo every fault that the journal leaves open, the latest first, and note it there.

    `members` is None if the load process is gone. `end_cluster` is called first, once it is certain
    that the run is gone: that ends what is left of its brokers, so nothing of them is undone one by
    one. Doing it twice does no harm. Raises ChaosError if the journal cannot be read or its run
    still goes on.
    """
    read(path)  # what is no journal must not become one
    with Journal(path) as journal:
        end_cluster()
        results = tuple(_undo(intent, members) for intent in reversed(open_faults(read(path))))
        for result in results:
            journal.write("healed", **result._asdict())
    return results


def _undo(intent: Entry, members: Members | None) -> Healed:
    fault_id = intent["fault_id"]
    try:
        match intent.get("undo"):
            case {"do": "start", "member": str(member), **identity}:
                return Healed(
                    fault_id, True, start_again(member, members, cast(Identity, identity))
                )
            case {"do": "end-duplicate", "member": str(member)}:
                return Healed(fault_id, True, end_duplicate(member, members))
            case {"do": "start-broker" | "resume-broker", "broker": int(broker)}:
                how = f"nothing to undo: broker {broker} ends with all that is left of its cluster"
                return Healed(fault_id, True, how)
            case undo:
                return Healed(fault_id, False, f"this version does not know how to undo {undo}")
    except ChaosError as error:
        return Healed(fault_id, False, str(error))
