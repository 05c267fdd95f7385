"""Which promises a release breaks, named by what it takes to explain a group."""

from pathlib import Path

import pytest

from reference_coordinator.classic.noted_rules import NotedRules
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROFILES, PROMISES, profile_for, promised_by
from reference_coordinator.event_files.reading import read
from reference_coordinator.replay import replay
from reports.judgement.group import broken_promises, differing

DEFECTS = Path(__file__).parents[2] / "recorded" / "defects"
RULES = PROFILES["2.8.1"]
PROMISED = promised_by(RULES)


def named(*needed: str, in_vain: bool = False) -> tuple[str, ...]:
    """Name what is broken where a group is explained by rules that are not kept."""

    def explained(profile: Profile) -> bool:
        assert {n for n in PROMISES if getattr(profile, n) not in kept_or_not[n]} == set()
        off = {n for n in PROMISES if getattr(profile, n) != getattr(PROMISED, n)}
        return not in_vain and off >= set(needed)

    kept_or_not = {n: (getattr(RULES, n), getattr(PROMISED, n)) for n in PROMISES}
    return broken_promises(explained, RULES, PROMISED, {})


def test_exactly_the_broken_promises_are_named():
    """None where all promises explain it, and where the release does not explain it either."""
    for broken in (
        (),
        ("joins_update_timeouts",),
        ("every_return_is_stored", "joins_update_timeouts"),
    ):
        assert named(*broken) == broken
    assert named(in_vain=True) == ()


@pytest.mark.parametrize("name", sorted(file.stem for file in DEFECTS.glob("*.jsonl")))
def test_promises_that_real_brokers_broke_are_named(name):
    """Runs of the library's experiments: each broke the promise that its file names."""
    (sequence,) = read((DEFECTS / f"{name}.jsonl").read_text().splitlines(), name)
    profile = profile_for(sequence.kafka, sequence.coordinator)
    assert profile is not None
    rules = profile.with_settings(sequence.settings)
    explained = lambda profile: not replay(sequence.evidence, profile).violations
    assert explained(rules)
    assert broken_promises(explained, rules, promised_by(rules), {}) == (name.partition("-")[0],)


def test_a_rule_that_was_not_read_is_not_tried():
    tries = 0

    def explained(profile: Profile) -> bool:
        nonlocal tries
        tries += 1
        return not profile.joins_update_timeouts

    assert broken_promises(explained, RULES, PROMISED, {}) == ("joins_update_timeouts",)
    assert tries == 2  # with every rule of the release, and without this one


def test_what_is_known_is_not_tried():
    def explained(profile: Profile) -> bool:
        raise AssertionError(profile)

    read = {"joins_update_timeouts", "write_timeout"}
    known = {frozenset(): None, differing(RULES, PROMISED): frozenset(read)}
    assert broken_promises(explained, RULES, PROMISED, known) == ("joins_update_timeouts",)
    known = {frozenset(): None, differing(RULES, PROMISED): None}
    assert broken_promises(explained, RULES, PROMISED, known) == ()


def test_a_rule_that_a_method_reads_is_noted():
    noted = NotedRules(RULES)
    assert noted.failed_writes == RULES.failed_writes
    within = {name for name in noted.read if hasattr(RULES, name)}
    assert within, "it reads a rule"
    assert all(getattr(noted, name) == getattr(RULES, name) for name in within)
