"""A second replay that redoes only what other rules change, compared with two whole ones."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import cast

import pytest

from reference_coordinator.classic.noted_rules import NotedRules
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROMISES, promised_by
from reference_coordinator.replay import Evidence, GroupReplay, Replay, Tolerance, replay
from reports.judgement.promises import differing
from tests.recorded.logs import HISTORIES, RECORDINGS
from tests.reference_coordinator.replay.steady_groups import steady_group
from tests.reference_coordinator.replay.test_sequences import NAMES, recorded

GROUPS = [
    (recording, group)
    for recordings in (RECORDINGS, HISTORIES)
    for recording in recordings.values()
    for group in recording.groups
]
TOLERANCE = Tolerance(search=100)


def first_by(evidence: Evidence, rules: Profile, other: Profile) -> tuple[GroupReplay, Replay]:
    """Replay by some rules, and note where rules are read in which others differ."""
    noted = NotedRules(rules, differing(rules, other))
    first = GroupReplay(evidence, cast(Profile, noted), TOLERANCE)
    first.add(evidence.requests, evidence.hints)
    return first, first.finish()


def second_by(evidence: Evidence, other: Profile, first: GroupReplay) -> Replay:
    second = GroupReplay(evidence, other, TOLERANCE, first=first)
    second.add(evidence.requests, evidence.hints)
    return second.finish()


def assert_same(evidence: Evidence, rules: Profile, other: Profile) -> int:
    """Compare both replays with whole ones in every field; return how much was taken over."""
    first, found = first_by(evidence, rules, other)
    assert found == replay(evidence, rules, TOLERANCE)
    second, whole = second_by(evidence, other, first), replay(evidence, other, TOLERANCE)
    for field in fields(Replay):
        assert getattr(second, field.name) == getattr(whole, field.name), field.name
    return sum(len(trail.starts) for trail in first.trails.values() if trail.end is not None)


def each_promise(rules: Profile) -> Iterator[Profile]:
    """Yield rules that keep one more promise, each in turn, and rules that keep them all."""
    for name in differing(rules, promised_by(rules)):
        yield replace(rules, **{name: PROMISES[name]})
    yield promised_by(rules)


def test_recorded_groups_by_rules_that_keep_more_promises() -> None:
    redone = 0
    for recording, group in GROUPS:
        evidence = recording.evidence(group)
        for other in each_promise(recording.profile):
            redone += assert_same(evidence, recording.profile, other)
    assert redone > 50


@pytest.mark.parametrize("name", NAMES)
def test_sequences_by_rules_that_keep_all_promises(name: str) -> None:
    sequence, rules = recorded(name)
    assert_same(sequence.evidence, rules, promised_by(rules))


def test_generated_groups_by_rules_that_keep_all_promises() -> None:
    for seed in range(60):
        evidence, rules = steady_group(seed)
        assert_same(evidence, rules, promised_by(rules))
