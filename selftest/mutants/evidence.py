"""What is kept of real brokers: runs of the library's experiments, sequences of the fuzzer.

Runs are stored as one archive for each experiment (`NAME.tar.xz`, a run folder for each seed), or
as run folders; sequences as event files.
"""

import lzma
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from reference_coordinator.event_files.reading import EventSequence, read
from reports.judgement.recording import Recording

KEPT = Path(__file__).parents[2] / "tests" / "recorded"
"""What the repository keeps: `seeds/`, `traces/`, and a folder for each other recording."""
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
        yield {
            name: tuple(sorted(mine, key=lambda run: int(run.environment["seed"])))
            for name, mine in sorted(found.items())
        }


def _unpack(archive: Path, target: Path) -> None:
    """Unpack the files of an archive inside `target` only (tarfile checks this since 3.11.4)."""
    with tarfile.open(archive) as packed:
        for entry in packed:
            file = (target / entry.name).resolve()
            content = packed.extractfile(entry)
            if content is not None and file.is_relative_to(target.resolve()):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.read())


def sequences_in(folder: Path) -> list[EventSequence]:
    """Read every event file in a folder (`*.jsonl`, `*.jsonl.xz`)."""
    return [
        sequence
        for file in sorted(folder.glob("*.jsonl*"))
        for sequence in read(_text(file).splitlines(), file.name)
    ]


def _text(file: Path) -> str:
    content = file.read_bytes()
    return (lzma.decompress(content) if file.suffix == ".xz" else content).decode()
