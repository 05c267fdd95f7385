"""The journals of runs that are not undone yet, in a folder where this user alone writes.

What they say is undone. A run folder may come from anybody: the journal in it is a copy, and
undoes nothing unless the user trusts it.
"""

import os
import platform
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from chaos.errors import ChaosError
from chaos.journal import Entry, Journal, open_faults, read
from groupquake.exits import NotHealedError
from groupquake.external_resources import not_deleted
from scenarios.regular_files import replace_file

JOURNAL = "journal.jsonl"
STARTED, RECOVERED = "started", "recovered"
"""The first event of a journal, and the one after which nothing is left of a run."""
_RUN_ID = re.compile(r"\w[\w.-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run, by the first entry of the journal that it is healed from.

    `run_id` marks what it started, `cluster` is the kind of its cluster, `host` its machine. What
    the journal lacks is None.
    """

    journal: Path
    run_id: str | None = None
    folder: Path | None = None
    cluster: str | None = None
    host: str | None = None

    @classmethod
    def of(cls, journal: Path) -> Self:
        """Read who wrote a journal. Raises ChaosError if it is none."""
        match read(journal)[:1]:
            case [{"event": "started", "run_id": str(run_id), **rest}] if _RUN_ID.fullmatch(run_id):
                match rest:
                    case {"folder": str(folder), "cluster": str(cluster), "host": str(host)}:
                        return cls(journal, run_id, Path(folder), cluster, host)
        return cls(journal)

    @property
    def trusted(self) -> bool:
        """Whether this user wrote the journal, on this machine."""
        return self.journal.parent == _directory() and self.host in (None, platform.node())

    @contextmanager
    def opened(self) -> Iterator[Journal]:
        """Open its journal, to heal it; remove it after the block if nothing is left of the run.

        Its folder gets a copy of what was noted. Raises RunGoesOnError if the run still goes on.
        """
        with closing(Journal(self.journal)) as journal, _forgotten_if_over(self):
            yield journal
            if self.trusted and self.folder is not None:
                with suppress(OSError):  # it was deleted, or its disk is full: it is a copy
                    replace_file(self.folder / JOURNAL, self.journal.read_bytes())


@contextmanager
def begun(folder: Path, cluster: str) -> Iterator[tuple[str, Journal]]:
    """Begin the journal of a run of a kind of cluster; yield it with the run's id.

    Its own place keeps it after the block only if something is left to undo. Raises ChaosError if
    it cannot be written.
    """
    folder = folder.resolve()
    # marks all that this run starts: another run's folder may have the same name
    run_id = f"{folder.name}-{secrets.token_hex(8)}"
    run = OpenRun(_directory() / f"{run_id}.jsonl", run_id, folder, cluster, platform.node())
    with closing(Journal(run.journal, folder / JOURNAL)) as journal, _forgotten_if_over(run):
        journal.write(STARTED, run_id=run_id, folder=str(folder), cluster=cluster, host=run.host)
        try:
            yield run_id, journal
        finally:
            journal.phase("end")


@contextmanager
def _forgotten_if_over(run: OpenRun) -> Iterator[None]:
    """Remove the user's own journal of a run after the block, if nothing is left of the run."""
    left = False
    try:
        yield
    except NotHealedError:
        left = True
        raise
    finally:
        if run.trusted and not left and is_over(read(run.journal)):
            run.journal.unlink(missing_ok=True)


def find(folder: Path) -> OpenRun:
    """Return the run of a folder, from the user's own journal, if that is there.

    Raises ChaosError if it is not the folder of a run.
    """
    place = folder.resolve()
    own = [run for run in map(OpenRun.of, own_journals()) if run.trusted]
    for run in own:
        if run.folder == place:
            return run
    found = replace(OpenRun.of(folder / JOURNAL), folder=place)  # it may name another one
    return next((run for run in own if run.run_id == found.run_id is not None), found)


def own_journals() -> tuple[Path, ...]:
    """Return the journals of the runs of this user that are not undone, or go on."""
    return tuple(sorted(_directory().glob("*.jsonl")))


def is_over(entries: Sequence[Entry]) -> bool:
    """Return whether nothing is left of a run: it has ended or was recovered, and all is undone."""
    if not entries:
        return True  # it was killed before it began
    last = entries[-1]
    ended = last["event"] == RECOVERED or last.get("phase") == "end"
    return ended and not open_faults(entries) and not not_deleted(entries)


def _directory() -> Path:
    """Return the folder of the journals, which this user alone can open. Raises ChaosError."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        folder = (given if given.is_absolute() else Path.home() / ".local/state") / "groupquake"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except (OSError, RuntimeError) as error:
        raise ChaosError(
            f"what a run must undo cannot be noted ({error}); set XDG_STATE_HOME to a folder of"
            " yours"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise ChaosError(
            f"{folder} must be a folder that only you can open; mend that (chmod 700), or set"
            " XDG_STATE_HOME to a folder of yours"
        )
    return folder
