"""Sequences that real brokers answered, each of which the oracle once could not explain."""

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import profile_for
from reference_coordinator.classic.state import State
from reference_coordinator.event_files.reading import EventSequence, read
from reference_coordinator.replay import Replay, replay
from reports.judgement.collector import collector_paused

FOLDER = Path(__file__).parents[2] / "recorded" / "sequences"
NAMES = sorted(file.stem for file in FOLDER.glob("*.jsonl"))


def recorded(name: str) -> tuple[EventSequence, Profile]:
    """Read a sequence, and find the rules and settings of the broker that answered."""
    (sequence,) = read((FOLDER / f"{name}.jsonl").read_text().splitlines(), name)
    profile = profile_for(sequence.kafka, sequence.coordinator)
    assert profile is not None
    return sequence, profile.with_settings(sequence.settings)


def replayed(name: str, **rules: object) -> Replay:
    sequence, profile = recorded(name)
    return replay(sequence.evidence, replace(profile, **rules))


@pytest.mark.parametrize("name", NAMES)
def test_responses_of_a_real_broker_are_explained(name: str) -> None:
    """And the replay leaves no cycles to be collected: workers freeze the collector."""
    sequence, _ = recorded(name)
    gc.collect()
    with collector_paused():
        outcome = replayed(name)
        assert gc.collect() == 0
    assert outcome.violations == ()
    answered = {seen.id for seen in sequence.requests if seen.response}
    assert {checked.request for checked in outcome.checked} == answered


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("3.9.1-java-described-before-it-is-confirmed", "describes_committed_records"),
        ("4.3.0-java-described-when-it-was-deleted", "describes_committed_records"),
        ("2.8.1-scala-a-stale-id-takes-one-along", "stale_sync_id_stops_timer"),
        ("3.9.1-scala-dead-while-it-is-deleted", "deleted_group_is_dead_first"),
        ("3.9.1-scala-a-sign-of-life-overtakes-an-expiry", "overtaken_expiry_counts"),
        ("3.9.1-scala-an-expiry-outlasts-the-wait", "overtaken_expiry_counts"),
        ("3.9.1-java-a-join-fails-with-its-batch", "answers_wait_for_writes"),
        ("3.9.1-java-two-returns-at-once", "store_answers_latest_return"),
        (
            "3.9.1-scala-a-leader-returns-twice-while-a-write-is-under-way",
            "store_answers_latest_return",
        ),
        ("2.4.1-scala-statics-described-to-old-clients", "describes_static_to_old_clients"),
        (
            "2.4.1-scala-work-for-a-protocol-that-a-member-lacks",
            "return_makes_completing_group_rebalance",
        ),
    ],
)
def test_the_other_coordinator_would_have_answered_otherwise(name: str, rule: str) -> None:
    _, profile = recorded(name)
    outcome = replayed(name, **{rule: not getattr(profile, rule)})
    assert outcome.violations
    assert outcome.violations[0].searched


def test_a_tie_that_no_answer_decides_is_tried_both_ways() -> None:
    outcome = replayed("3.9.1-java-a-fenced-return-tips-a-tie")
    assert [row.reason for row in outcome.rows if row.reason == "protocol_change"]


def test_a_write_fails_only_during_an_outage_of_the_file() -> None:
    sequence, profile = recorded("3.9.1-java-a-join-fails-with-its-batch")
    assert sequence.outages
    evidence = replace(sequence.evidence, outages=())
    assert replay(evidence, profile).violations


def test_the_next_response_shows_a_new_leader_without_a_rebalance() -> None:
    outcome = replayed("2.4.1-scala-a-refused-leader-has-a-successor")
    later = replayed(
        "2.4.1-scala-a-refused-leader-has-a-successor", last_to_rejoin_are_refused=True
    )
    assert outcome.bound["leader"] == 1
    assert later.violations


def test_a_group_that_becomes_stable_may_show_the_new_leader() -> None:
    outcome = replayed("2.4.1-scala-a-successor-that-syncs-first")
    assert outcome.bound["leader"] == 1
    assert [move.after for move in outcome.transitions][-1] is State.STABLE
