"""A second replay that redoes only what other rules change, compared with two whole ones."""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import cast

import pytest

from reference_coordinator.classic.members import Members
from reference_coordinator.classic.noted_rules import NotedRules
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord, StoredMembers
from reference_coordinator.classic.releases import PROMISES, profile_for, promised_by
from reference_coordinator.classic.state import Group, Member
from reference_coordinator.event_files.reading import read
from reference_coordinator.replay import (
    EpochEvent,
    Evidence,
    GroupReplay,
    Hint,
    HintKind,
    Replay,
    Tolerance,
    replay,
)
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.other_rules import Place, Trail, is_same
from reference_coordinator.replay.result import Output
from reference_coordinator.replay.stretches import Stretches
from reports.judgement.group import differing
from tests.recorded.logs import HERE, HISTORIES, RECORDINGS, recordings
from tests.reference_coordinator.replay import test_unlogged_returns as unlogged
from tests.reference_coordinator.replay.conftest import IDS, LOADS, PROFILE, START, stable
from tests.reference_coordinator.replay.steady_groups import steady_group
from tests.reference_coordinator.replay.test_sequences import NAMES, recorded

GROUPS = [
    (recording, group)
    for recording in (*RECORDINGS.values(), *HISTORIES.values())
    for group in recording.groups
]
TOLERANCE = Tolerance(search=100)


def whole(replayed: GroupReplay, evidence: Evidence) -> Replay:
    replayed.add(evidence.requests, evidence.hints)
    return replayed.finish()


def noting(rules: Profile, other: Profile) -> Profile:
    """Return rules that note where they are read and others differ."""
    return cast(Profile, NotedRules(rules, differing(rules, other)))


def assert_same(evidence: Evidence, rules: Profile, *others: Profile) -> int:
    """Compare both replays with whole ones in every field; return how much was taken over."""
    unchanged, taken_over = replay(evidence, rules, TOLERANCE), 0
    for other in others:
        first = GroupReplay(evidence, noting(rules, other), TOLERANCE)
        assert whole(first, evidence) == unchanged
        second = whole(GroupReplay(evidence, other, TOLERANCE, first=first), evidence)
        expected = replay(evidence, other, TOLERANCE)
        for field in fields(Replay):
            assert getattr(second, field.name) == getattr(expected, field.name), field.name
        trails = [trail for trail in first.trails.values() if trail.end is not None]
        taken_over += sum(len(trail.starts) for trail in trails)
    return taken_over


def each_promise(rules: Profile) -> Iterator[Profile]:
    """Yield rules that keep one more promise, each in turn, and rules that keep them all."""
    for name in differing(rules, promised_by(rules)):
        yield replace(rules, **{name: PROMISES[name]})
    yield promised_by(rules)


def test_recorded_groups_by_rules_that_keep_more_promises() -> None:
    redone = 0
    for recording, group in GROUPS:
        rules = recording.profile
        redone += assert_same(recording.evidence(group), rules, *each_promise(rules))
    assert redone > 50


@pytest.mark.parametrize("name", NAMES)
def test_sequences_by_rules_that_keep_all_promises(name: str) -> None:
    sequence, rules = recorded(name)
    assert_same(sequence.evidence, rules, promised_by(rules))


def test_generated_groups_by_rules_that_keep_all_promises() -> None:
    for seed in range(60):
        evidence, rules = steady_group(seed)
        assert_same(evidence, rules, promised_by(rules))


def test_what_reactions_remember_is_not_taken_over() -> None:
    """Before 2.5 every heartbeat reads whether its instance id has to be known."""
    recording = recordings(HERE / "before-2.8")["protocol-corners-2.4.1"]
    for group in recording.groups:
        rules = recording.profile
        other = replace(rules, unknown_instance_is_refused=True)
        assert_same(recording.evidence(group), rules, other)


DEFECTS = sorted((HERE / "defects").glob("*.jsonl"))


@pytest.mark.parametrize("file", DEFECTS, ids=lambda file: file.stem)
def test_a_violation_by_the_first_rules_leaves_nothing(file: Path) -> None:
    (sequence,) = read(file.read_text().splitlines(), file.stem)
    profile = profile_for(sequence.kafka, sequence.coordinator)
    assert profile is not None
    rules = profile.with_settings(sequence.settings)
    assert replay(sequence.evidence, promised_by(rules), TOLERANCE).violations
    assert_same(sequence.evidence, promised_by(rules), rules)
    assert_same(sequence.evidence, rules, promised_by(rules))


@pytest.mark.parametrize("name", unlogged.NAMES)
def test_a_rule_that_is_read_when_a_record_is_loaded(name: str) -> None:
    evidence, killed_ms, old = unlogged.recorded(name)
    lie = unlogged.renamed(evidence, old, unlogged.NEW_ID, killed_ms)
    rules = RECORDINGS[name].profile
    assert_same(lie, rules, replace(rules, return_is_stored=False))


@pytest.mark.parametrize("spared", [True, False])
def test_a_rule_that_is_read_for_the_line_that_is_overdue(*, spared: bool) -> None:
    """The static leader syncs never, and its session is longer than all members rejoin in."""
    scenario = stable()
    del scenario.requests[-2:]
    scenario.hints = [Hint(START + 1_000, HintKind.JOIN_PHASE_ENDED, generation=1)]
    scenario.epoch_events = [*LOADS, EpochEvent(START + 60_000, "1", "ended")]
    evidence = scenario.evidence()
    rules, other = (
        replace(PROFILE, sync_timer_spares_statics=spares) for spares in (spared, not spared)
    )
    assert replay(evidence, rules) != replay(evidence, other)
    assert_same(evidence, rules, other)


def in_pieces(replayed: GroupReplay, evidence: Evidence) -> Replay:
    """Replay evidence that comes in piece by piece, whatever comes next later by 4 s."""
    requests, hints = list(evidence.requests), list(evidence.hints)
    size = max(len(requests) // 4, 1)
    while requests:
        piece, requests = requests[:size], requests[size:]
        end_ms = requests[0].at_ms if requests else float("inf")
        known = [hint for hint in hints if hint.at_ms < end_ms]
        hints = hints[len(known) :]
        replayed.add(piece, known, end_ms - 1_500 if requests else float("-inf"))
    return replayed.finish()


def test_groups_that_come_in_piece_by_piece() -> None:
    """What was carried over from one piece to the next is in no trail."""
    for recording, group in GROUPS:
        evidence, rules = recording.evidence(group), recording.profile
        other = promised_by(rules)
        for feed_second in (whole, in_pieces):
            expected = feed_second(GroupReplay(evidence, other, chunk=5), evidence)
            for feed_first in (whole, in_pieces):
                first = GroupReplay(evidence, noting(rules, other), chunk=5)
                feed_first(first, evidence)
                second = GroupReplay(evidence, other, chunk=5, first=first)
                assert feed_second(second, evidence) == expected


def test_a_remembered_reaction_that_read_such_a_rule_leaves_nothing() -> None:
    """It may be looked up again in a stretch that reads nothing."""
    for reads in (0, 1):
        end = hypothesis()
        end.reactions.reads = reads
        place = Place(0, end, Output().mark(), 0, 0)
        trail = Trail(Stretches.none(), end.conditions, Output(), [], place)
        trail.ended(place, 0)
        assert (trail.end is None) == (reads > 0)


def hypothesis(order: str = "ab", stored: str = "ab", **fields: object) -> Hypothesis:
    """Return a hypothesis of a group with two members, which stand in an order, as they do stored.

    Other fields of the group are changed.
    """
    members, kept = (
        Members.of(Member(IDS[n], n, 3_000, 8_000, "consumer", (("range", "bQ=="),)) for n in names)
        for names in (order, stored)
    )
    record = GroupRecord(1, "consumer", "range", IDS["a"], StoredMembers(kept, "range"))
    group = Group("g", exists=True, members=members, stored=record)
    return Hypothesis.of(Conditions(PROFILE, Tolerance()), replace(group, **fields))


def test_what_is_equal_but_not_the_same() -> None:
    """Times of groups and the order of members are no part of `==`, and show in what comes."""
    old = Group("g", created_ms=1.0)
    same = hypothesis(removed=old)
    assert is_same(hypothesis(), hypothesis())
    assert is_same(same, hypothesis(removed=replace(old)))
    for changed in (
        hypothesis(created_ms=1.0),
        hypothesis(removed_ms=1.0),
        hypothesis(order="ba"),
        hypothesis(stored="ba"),
    ):
        assert changed.group == hypothesis().group
        assert not is_same(hypothesis(), changed)
    assert not is_same(same, hypothesis(removed=replace(old, created_ms=2.0)))
