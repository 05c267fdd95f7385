"""Recorded sequences of real brokers, explained by the oracle or by a mutant in its place."""

import lzma
from collections.abc import Iterator
from pathlib import Path

from groupquake.selftest.fuzz.judge import Verdict, replay_of, verdict_of
from reference_coordinator.classic.releases import profile_for
from reference_coordinator.classic.step import Step, step
from reference_coordinator.event_files.reading import EventSequence, read
from reference_coordinator.replay import Tolerance

BRIEFLY = Tolerance(search=100)
"""What a mutant is given to explain itself: a sequence counts only if it shows at once."""


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
    """Say whether a coordinator explains a sequence, under the release's rules."""
    rules = profile_for(sequence.kafka, sequence.coordinator)
    assert rules is not None, f"no rules for Kafka {sequence.kafka}, {sequence.coordinator}"
    return verdict_of(replay_of(sequence, rules, tolerance, coordinator))
