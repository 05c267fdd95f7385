"""Recorded fuzz sequences of real brokers, replayed by the oracle or by a mutant in its place."""

import lzma
from collections.abc import Iterator
from pathlib import Path

from groupquake.fuzz.judge import Verdict, replay_of, verdict_of
from reference_coordinator.classic.releases import profile_for
from reference_coordinator.classic.step import Step, step
from reference_coordinator.event_files.reading import EventSequence, read
from reference_coordinator.replay import Tolerance

BRIEFLY = Tolerance(search=100)
"""The search limit for a mutant: a sequence counts only if a short search shows the difference."""


def read_all(folder: Path) -> list[EventSequence]:
    """Read every event file in a folder (`*.jsonl`, `*.jsonl.xz`)."""
    return [
        sequence
        for file in sorted(folder.glob("*.jsonl*"))
        for sequence in read(_lines(file), file.name)
    ]


def _lines(file: Path) -> Iterator[str]:
    content = file.read_bytes()
    text = lzma.decompress(content) if file.suffix == ".xz" else content
    yield from text.decode().splitlines()


def verdict(
    sequence: EventSequence, coordinator: Step = step, tolerance: Tolerance | None = None
) -> Verdict:
    """Replay a sequence by a coordinator under the rules of the release; return the verdict."""
    rules = profile_for(sequence.kafka, sequence.coordinator)
    assert rules is not None, f"no rules for Kafka {sequence.kafka}, {sequence.coordinator}"
    return verdict_of(replay_of(sequence, rules, tolerance, coordinator))
