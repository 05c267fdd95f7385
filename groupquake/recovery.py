"""What a killed run left: open faults, members, brokers, topics; all is found by its journal.

Recovering twice does no harm: the second time there is nothing left to do.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from chaos.clusters import ClusterError
from chaos.clusters.factory import end_left_over
from chaos.errors import ChaosError, RunGoesOnError
from chaos.fault_runner import Healed, heal
from chaos.journal import open_faults, read
from groupquake import open_runs
from groupquake.exits import NotHealedError
from groupquake.external_resources import delete, not_deleted
from groupquake.load_process import end_members
from groupquake.open_runs import RECOVERED, OpenRun


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

    def lines(self) -> Iterator[str]:
        """Tell it."""
        for fault in self.faults:
            state = "healed" if fault.healed else "NOT healed"
            yield f"fault {fault.fault_id}: {state}: {fault.how}"
        if self.ended:
            yield f"ended the rest of the run: {', '.join(self.ended)}"
        if self.deleted:
            yield f"deleted: {', '.join(self.deleted)}"


def recover(run: OpenRun, begins: Callable[[], None] = lambda: None) -> Recovery:
    """Undo what a run left, and note that in its journal; `begins` is called if the run is dead.

    Raises RunGoesOnError if the run still goes on, other ChaosErrors if its journal was altered,
    and NotHealedError if something is left that cannot be ended or deleted.
    """
    with run.opened() as journal:
        begins()
        read(journal.path)  # of a run whose journal was altered, nothing is ended
        try:
            ended = tuple(_end(run))
        except ClusterError as error:
            raise NotHealedError(f"NOT HEALED: the rest of the cluster: {error}") from error
        found = Recovery(heal(journal), ended, delete(journal))
        if found.ok:
            journal.write(RECOVERED)
    return found


def _end(run: OpenRun) -> Iterator[str]:
    """End what still runs of a run; yield its names."""
    if run.folder is None or run.run_id is None:
        return  # nothing tells what it would have started
    brokers = run.folder / "brokers"
    if brokers.resolve() != brokers:
        raise ChaosError(f"{brokers} leads over a link, perhaps to another run; remove the link")
    yield from (f"process {pid}" for pid in end_members(run.folder))
    yield from end_left_over(brokers, run.cluster, run.run_id)


def to_undo(run: OpenRun) -> tuple[str, ...]:
    """Say what `recover` would do for a run, one thing a line; nothing if the run is over."""
    entries = read(run.journal)
    if open_runs.is_over(entries):
        return ()
    lines = [f"{one['fault_id']}: {json.dumps(one.get('undo'))}" for one in open_faults(entries)]
    lines += [f"delete: {json.dumps(dict(entry))}" for entry in not_deleted(entries)]
    if run.run_id is not None:
        lines.append(f"end what carries the mark of {run.run_id} on this machine")
    return tuple(lines)


def recover_all(progress: Callable[[str], None]) -> bool:
    """Recover every run of this user on this machine that was killed, and say so.

    Returns whether nothing is left of any.
    """
    ok = True
    for journal in open_runs.own_journals():
        try:
            run = OpenRun.of(journal)
            if not run.trusted:
                continue  # of another machine, with the same home
            name = run.folder or journal
            found = recover(run, partial(progress, f"{name} was killed; healing it"))
        except RunGoesOnError:
            continue
        except (ChaosError, NotHealedError) as error:
            progress(f"{journal.stem} cannot be healed: {error}")
            ok = False
            continue
        for line in found.lines():
            progress(line)
        ok = ok and found.ok
    return ok
