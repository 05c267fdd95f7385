"""A group that comes in chunk by chunk is judged as a whole one."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay import Evidence, GroupReplay, Replay, replay
from tests.recorded.logs import RECORDINGS
from tests.reference_coordinator.replay.test_sequences import NAMES, recorded

BATCH = 5
REFUSED = {"throttleTimeMs": 0, "errorCode": Error.UNKNOWN_MEMBER_ID}


def in_chunks(evidence: Evidence, profile: Profile, chunk: int) -> Replay:
    """Replay a group as it comes in, its requests in the order in which they may have begun."""
    group, checked = GroupReplay(evidence, profile, chunk=chunk), []
    requests = sorted(evidence.requests, key=lambda seen: seen.earliest_ms)
    hints = list(evidence.hints)
    for first in range(0, len(requests), BATCH):
        mine, rest = requests[first : first + BATCH], requests[first + BATCH :]
        known_ms = rest[0].earliest_ms if rest else float("inf")
        known = [hint for hint in hints if hint.at_ms < known_ms]
        hints = hints[len(known) :]
        in_time = sorted(mine, key=lambda seen: (seen.at_ms, seen.id))
        group.add(in_time, known, known_ms if rest else float("-inf"))
        checked += group.checked()
    group.add((), hints)
    result = group.finish()
    return replace(result, checked=(*checked, *result.checked))


def altered(evidence: Evidence) -> Iterator[Evidence]:
    """Refuse some heartbeats: each of four, then many at once."""
    fine = [
        number
        for number, seen in enumerate(evidence.requests)
        if seen.api == "HEARTBEAT" and seen.response_fields.get("errorCode") == 0
    ]
    for which in (*([n] for n in fine[:: max(len(fine) // 4, 1)]), fine[::7]):
        requests = list(evidence.requests)
        for number in which:
            requests[number] = replace(requests[number], response=REFUSED)
        yield replace(evidence, requests=tuple(requests))


def assert_same(evidence: Evidence, profile: Profile, *chunks: int) -> None:
    whole = replay(evidence, profile)
    for chunk in chunks:
        parts = in_chunks(evidence, profile, chunk)
        assert sorted(parts.checked) == sorted(whole.checked)
        assert replace(parts, checked=(), steps=0) == replace(whole, checked=(), steps=0)


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_groups_as_they_are_and_altered(name: str) -> None:
    recording = RECORDINGS[name]
    for group in recording.groups:
        faulty = recording.evidence_with_faults(group)
        for evidence in (recording.evidence(group), faulty):
            assert_same(evidence, recording.profile, 1, 20)
        for evidence in altered(faulty):
            assert_same(evidence, recording.profile, 1)


@pytest.mark.parametrize("name", NAMES)
def test_kept_sequences(name: str) -> None:
    sequence, profile = recorded(name)
    assert_same(sequence.evidence, profile, 1)
