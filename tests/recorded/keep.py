"""Keeps what `make mutants` needs of runs and of fuzzed sequences, for the repository.

python -m tests.recorded.keep runs RUNS        run folders, into one archive an experiment
python -m tests.recorded.keep traces EVENTS…   of event files, the smallest sequence that catches
                                               each mutant which none before it catches
python -m tests.recorded.keep defects RUN…     of runs that a fail was expected for, the group in
                                               which a promise of KIP-345 is broken
"""

import argparse
import json
import lzma
import tarfile
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

from groupquake.fuzz.judge import Verdict
from reference_coordinator.event_files.reading import read
from reference_coordinator.event_files.writing import event_lines
from reports.judgement.recording import Recording
from reports.judgement.run.run_folder import MACHINE
from selftest.broken_rules import MUTANTS
from selftest.mutants.evidence import runs_in
from selftest.mutants.judging import BRIEFLY, explains
from selftest.mutants.table import SEEDS

HERE = Path(__file__).parent
KEPT = ("experiment.yaml", "journal.jsonl", "plan.json")
"""The files needed to judge a run again, beside its environment and its brokers' logs."""
OF_THE_MACHINE = ("platform", "python_version", "machine")
"""Keys of the environment that are not stored."""


def keep_runs(runs: Path, target: Path, seeds: int) -> None:
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
            if explains(sequence, mutant, BRIEFLY) is Verdict.UNEXPLAINED
        ]
        if caught and explains(sequence) is Verdict.EXPLAINED:
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
        keep_runs(asked.places[0], HERE / "seeds", SEEDS)
    elif asked.what == "defects":
        keep_defects(asked.places, HERE / "defects")
    else:
        keep_traces(asked.places, HERE / "traces")
