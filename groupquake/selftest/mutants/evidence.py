"""Recorded runs from which logs of mutants are synthesized: seeds of the library's experiments.

They are stored as one archive for each experiment (`NAME.tar.xz`, a run folder for each seed), or
as run folders.
"""

import json
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from reports.judgement.recording import Recording
from reports.judgement.run.run_folder import MACHINE

Runs = Mapping[str, tuple[Recording, ...]]
"""The runs of each experiment, in the order of seeds."""
KEPT = ("experiment.yaml", "journal.jsonl", "plan.json")
"""The files needed to judge a run again, beside its environment and its brokers' logs."""
OF_THE_MACHINE = ("platform", "python_version")
"""Keys of the environment that are not stored."""


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


def keep(runs: Path, target: Path, seeds: int) -> None:
    """Pack the runs in a folder, one archive for each experiment.

    Only seeds up to `seeds` are packed; of several runs with one seed, the latest.
    """
    target.mkdir(parents=True, exist_ok=True)
    with runs_in(runs) as found:
        for name, mine in found.items():
            latest = {
                int(run.environment["seed"]): run
                for run in sorted(mine, key=lambda run: str(run.environment.get("started_at")))
                if run.run.completed
                and not run.run.failures
                and int(run.environment["seed"]) <= seeds
            }
            with tarfile.open(target / f"{name}.tar.xz", "w:xz", preset=9) as archive:
                for seed, run in sorted(latest.items()):
                    place = f"{name}-{seed}"
                    _add(archive, f"{place}/environment.json", _elsewhere(run))
                    for file in (*KEPT, *_files(run.folder)):
                        _add(archive, f"{place}/{file}", (run.folder / file).read_bytes())


def _files(folder: Path) -> list[str]:
    """List the logs of the brokers and of their JVMs, and the samples of the machine."""
    patterns = ("brokers/*/group.log", "brokers/*/jvm-*.log", MACHINE)
    found = (file for pattern in patterns for file in sorted(folder.glob(pattern)))
    return [str(file.relative_to(folder)) for file in found]


def _elsewhere(run: Recording) -> bytes:
    """Return a run's environment without the keys about its machine."""
    kept = {key: value for key, value in run.environment.items() if key not in OF_THE_MACHINE}
    return json.dumps(kept, indent=2).encode()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)  # without owner and time
    entry.size = len(content)
    archive.addfile(entry, BytesIO(content))
