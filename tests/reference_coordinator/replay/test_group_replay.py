"""A group that comes in chunk by chunk is judged as a whole one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay import (
    Checked,
    Evidence,
    GroupReplay,
    ObservedRequest,
    Replay,
    replay,
)
from tests.recorded.logs import RECORDINGS
from tests.reference_coordinator.replay.test_sequences import NAMES, recorded

BATCH = 5


def in_chunks(evidence: Evidence, profile: Profile, chunk: int) -> tuple[Replay, int]:
    """Replay a group as it comes in; return the result, and how many requests waited at most."""
    group = GroupReplay(evidence, profile, chunk=chunk)
    checked: list[Checked] = []
    requests = sorted(evidence.requests, key=lambda seen: seen.earliest_ms)
    hints = list(evidence.hints)
    most = 0
    for first in range(0, len(requests), BATCH):
        mine, rest = requests[first : first + BATCH], requests[first + BATCH :]
        known_ms = rest[0].earliest_ms if rest else float("inf")
        known = [hint for hint in hints if hint.at_ms < known_ms]
        hints = hints[len(known) :]
        group.add(_in_time(mine), known, known_ms if rest else float("-inf"))
        checked += group.checked()
        most = max(most, len(list(group.waiting)))
    group.add((), hints)
    result = group.finish()
    return replace(result, checked=(*checked, *result.checked)), most


def _in_time(requests: Iterable[ObservedRequest]) -> list[ObservedRequest]:
    return sorted(requests, key=lambda seen: (seen.at_ms, seen.id))


def altered(evidence: Evidence) -> Iterable[Evidence]:
    """Make some responses wrong."""
    fine = [n for n, seen in enumerate(evidence.requests) if _is_fine(seen)]
    for number in fine[:: max(len(fine) // 4, 1)]:
        yield replace(evidence, requests=_refused(evidence.requests, {number}))
    yield replace(evidence, requests=_refused(evidence.requests, set(fine[::7])))


def _is_fine(seen: ObservedRequest) -> bool:
    return seen.api == "HEARTBEAT" and seen.response_fields.get("errorCode") == 0


def _refused(requests: Sequence[ObservedRequest], which: set[int]) -> tuple[ObservedRequest, ...]:
    wrong = {"throttleTimeMs": 0, "errorCode": Error.UNKNOWN_MEMBER_ID}
    return tuple(
        replace(seen, response=wrong) if number in which else seen
        for number, seen in enumerate(requests)
    )


def assert_same(evidence: Evidence, profile: Profile, chunk: int) -> int:
    whole = replay(evidence, profile)
    parts, most = in_chunks(evidence, profile, chunk)
    assert sorted(parts.checked) == sorted(whole.checked)
    assert replace(parts, checked=(), steps=0) == replace(whole, checked=(), steps=0)
    return most


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_groups_as_they_are_and_altered(name: str) -> None:
    recording = RECORDINGS[name]
    for group in recording.groups:
        faulty = recording.evidence_with_faults(group)
        for evidence, chunk in product((recording.evidence(group), faulty), (1, 20)):
            assert_same(evidence, recording.profile, chunk)
        for evidence in altered(faulty):
            assert_same(evidence, recording.profile, 1)


@pytest.mark.parametrize("name", NAMES)
def test_kept_sequences(name: str) -> None:
    sequence, profile = recorded(name)
    assert_same(sequence.evidence, profile, 1)
