"""Keeps what `groupquake dev mutants` needs of runs and of fuzzed sequences, for the repository.

python -m tests.recorded.keep runs RUNS        run folders, into one archive an experiment
python -m tests.recorded.keep traces EVENTS…   of event files, the smallest sequence that catches
                                               each mutant which none before it catches

"""

import argparse
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path

from groupquake.fuzz.judge import Verdict
from groupquake.mutants import evidence
from groupquake.mutants.table import SEEDS
from groupquake.mutants.traces import BRIEFLY, verdict
from reference_coordinator.mutants import MUTANTS
from reference_coordinator.replay.event_file import read

HERE = Path(__file__).parent


def sequences(files: Iterable[Path]) -> Iterator[str]:
    """Yield the text of each sequence in event files."""
    for file in files:
        part: list[str] = []
        for line in file.read_text().splitlines(keepends=True):
            if '"format"' in line[:12]:
                part = []
            part.append(line)
            if '"end"' in line[-20:]:
                yield "".join(part)


def keep_traces(files: list[Path], target: Path) -> None:
    """Choose sequences that the oracle explains, and together no mutant."""
    target.mkdir(exist_ok=True)
    missed = dict(MUTANTS)
    for text in sorted(sequences(files), key=len):
        (sequence,) = read(text.splitlines(), "trace")
        caught = [
            name
            for name, mutant in missed.items()
            if verdict(sequence, mutant, BRIEFLY) is Verdict.UNEXPLAINED
        ]
        if caught and verdict(sequence) is Verdict.EXPLAINED:
            name = f"{sequence.kafka}-{sequence.coordinator}-{sequence.group}"
            packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
            (target / f"{name}.jsonl.xz").write_bytes(packed)
            print(f"{name}: {', '.join(caught)}", flush=True)
            missed = {name: mutant for name, mutant in missed.items() if name not in caught}
    print(f"caught by none: {', '.join(missed) or 'all are'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("runs", "traces"))
    parser.add_argument("places", type=Path, nargs="+")
    asked = parser.parse_args()
    if asked.what == "runs":
        evidence.keep(asked.places[0], HERE / "seeds", SEEDS)
    else:
        keep_traces(asked.places, HERE / "traces")
