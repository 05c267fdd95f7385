"""Recorded runs from which logs of mutants are synthesized: seeds of the library's experiments.

They are stored as one archive for each experiment (`NAME.tar.xz`, a run folder for each seed), or
as run folders.
"""

import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from reports.judgement.recording import Recording

Runs = Mapping[str, tuple[Recording, ...]]
"""The runs of each experiment, in the order of seeds."""


@contextmanager
def runs_in(folder: Path) -> Iterator[Runs]:
    """Open every run in a folder; archives stay unpacked until the block ends."""
    with TemporaryDirectory(prefix="groupquake-") as scratch:
        for archive in sorted(folder.glob("*.tar.xz")):
            _unpack(archive, Path(scratch) / archive.name.partition(".")[0])
        found = defaultdict(list)
        for place in (folder, Path(scratch)):
            for file in sorted(place.rglob("environment.json")):
                if not file.parent.is_symlink() and any(file.parent.glob("brokers/*/group.log*")):
                    run = Recording(file.parent)
                    found[run.run.experiment.name].append(run)
        in_order = {
            name: tuple(sorted(mine, key=lambda run: int(run.environment["seed"])))
            for name, mine in sorted(found.items())
        }
        yield in_order


def _unpack(archive: Path, target: Path) -> None:
    """Unpack the files of an archive inside `target` only (tarfile checks this since 3.11.4)."""
    with tarfile.open(archive) as packed:
        for entry in packed:
            file = (target / entry.name).resolve()
            content = packed.extractfile(entry)
            if content is not None and file.is_relative_to(target.resolve()):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.read())
