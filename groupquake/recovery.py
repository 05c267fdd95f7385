"""What a killed run left: open faults, members, brokers, topics; all is found by its run folder.

Recovering twice does no harm: the second time there is nothing left to do.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chaos.clusters import ClusterError
from chaos.clusters.factory import end_left_over
from chaos.errors import ChaosError
from chaos.healing import Healed, heal
from chaos.journal import Journal, read
from groupquake.borrowed import give_back_from, has_given_back
from groupquake.exits import NotHealedError
from groupquake.load_process import end_members

RECOVERED = "recovered"
"""The event of the journal after which nothing is left of a run."""
_TAIL = 4096


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was undone (`faults`), ended (processes, containers, networks) and deleted."""

    faults: tuple[Healed, ...]
    ended: tuple[str, ...]
    deleted: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is left broken."""
        return all(fault.healed for fault in self.faults)


def recover(folder: Path) -> Recovery:
    """Undo what the run of a folder left, and note that in its journal.

    Raises ChaosError if it is no run folder or its run still goes on, and NotHealedError if the
    rest of its cluster cannot be ended.
    """
    journal = folder / "journal.jsonl"
    ended: list[str] = []

    def end_all() -> None:
        ended.extend(f"process {pid}" for pid in end_members(folder))
        ended.extend(end_left_over(folder / "brokers"))

    try:
        faults = heal(journal, None, end_all)
    except ClusterError as error:
        raise NotHealedError(f"NOT HEALED: the rest of the cluster: {error}") from error
    found = Recovery(faults, tuple(ended), tuple(give_back_from(journal)))
    if found.ok and not _is_over(journal):
        with Journal(journal) as open_journal:
            open_journal.write(RECOVERED)
    return found


def recover_all(runs: Path, progress: Callable[[str], None]) -> None:
    """Recover every run of a folder that was killed, and say so."""
    for journal in sorted(runs.glob("*/journal.jsonl")):
        folder = journal.parent
        if folder.is_symlink() or _is_over(journal) or _goes_on(journal):
            continue
        progress(f"{folder} was killed before its end; healing it first")
        try:
            found = recover(folder)
        except (ChaosError, NotHealedError) as error:
            progress(f"{folder} cannot be healed: {error}")
            continue
        for fault in found.faults:
            progress(f"{fault.fault_id}: {'healed' if fault.healed else 'NOT healed'}: {fault.how}")
        if found.ended or found.deleted:
            progress(f"ended or deleted: {', '.join((*found.ended, *found.deleted))}")


def _is_over(journal: Path) -> bool:
    """Return whether the last entry says that nothing is left of the run."""
    with suppress(OSError, ValueError), journal.open("rb") as file:
        file.seek(max(0, journal.stat().st_size - _TAIL))
        last = json.loads(file.read().rstrip(b"\n").rpartition(b"\n")[2])
        over = last.get("event") == RECOVERED or last.get("phase") == "end"
        return over and _is_undone(journal)
    return False


def _is_undone(journal: Path) -> bool:
    """Return whether each fault that a heal was tried for is healed, and all is given back."""
    with suppress(ChaosError):
        entries = read(journal)
        tries = {e["fault_id"]: e["healed"] for e in entries if e["event"] == "healed"}
        return all(tries.values()) and has_given_back(entries)
    return False


def _goes_on(journal: Path) -> bool:
    """Return whether the run goes on: it has the journal open."""
    try:
        Journal(journal).close()
    except ChaosError:
        return True
    return False
