"""Keeps what `groupquake dev mutants` needs of runs and of fuzzed sequences, for the repository.

python -m tests.recorded.keep runs RUNS        run folders, into one archive an experiment
python -m tests.recorded.keep traces EVENTS…   of event files, the smallest sequence that catches
                                               each mutant which none before it catches
python -m tests.recorded.keep defects RUN…     of runs that a fail was expected for, the group in
                                               which a promise of KIP-345 is broken
"""

import argparse
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path

from groupquake.selftest.fuzz.judge import Verdict
from groupquake.selftest.mutants import evidence
from groupquake.selftest.mutants.table import SEEDS
from groupquake.selftest.mutants.traces import BRIEFLY, verdict
from reference_coordinator.classic.mutants import MUTANTS
from reference_coordinator.event_files.reading import read
from reference_coordinator.event_files.writing import event_lines
from reports.judgement.recording import Recording

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


def keep_defects(runs: Iterable[Path], target: Path) -> None:
    """Write down what a group asked and was answered, and what its broker logged besides."""
    target.mkdir(exist_ok=True)
    for folder in runs:
        recording = Recording(folder)
        expected, environment = recording.run.experiment.expected_verdict, recording.environment
        assert expected is not None
        assert expected.group is not None, f"{folder} expects no fail"
        header = {
            "kafka": environment["kafka_version"],
            "coordinator": environment["coordinator"],
            "config": environment["broker_config"],
        }
        lines = event_lines(header, recording.evidence_with_faults(expected.group))
        name = f"{expected.because}-{header['kafka']}-{header['coordinator']}.jsonl"
        (target / name).write_text("".join(f"{line}\n" for line in lines))
        print(name, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("runs", "traces", "defects"))
    parser.add_argument("places", type=Path, nargs="+")
    asked = parser.parse_args()
    if asked.what == "runs":
        evidence.keep(asked.places[0], HERE / "seeds", SEEDS)
    elif asked.what == "defects":
        keep_defects(asked.places, HERE / "defects")
    else:
        keep_traces(asked.places, HERE / "traces")
