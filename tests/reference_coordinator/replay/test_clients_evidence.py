"""What clients saw is explained without any line of the broker's; what a broker lied about is not.

The recorded runs as their clients would have written them down: when they sent and were answered,
and nothing of when the coordinator acted.
"""

import pytest

from reference_coordinator.classic.step import step
from reference_coordinator.event_files.reading import EventSequence
from reference_coordinator.replay import replay
from reports.judgement.recording import Recording
from selftest.broken_rules import MUTANTS
from selftest.mutants.judging import synthesized_run_of
from tests.recorded.logs import RECORDINGS
from tests.reference_coordinator.event_files.event_lines import from_log, one

WHERE = {
    "absent": ("expires_the_waiting", "drops_absent_static", "keeps_absent_dynamic",
               "waits_for_ever", "waits_too_briefly"),
    "dynamic": ("heartbeats_do_not_keep_alive",),
    "fencing": ("does_not_fence_heartbeats", "does_not_fence_syncs", "does_not_fence_commits",
                "does_not_fence_joins", "does_not_tell_returning_leader", "has_no_initial_delay",
                "tells_leader_of_itself_alone"),
    "forming": ("does_not_extend_initial_delay",),
    "full": ("has_no_max_size", "counts_one_too_many", "gives_everyone_the_leaders_share"),
    "leading": ("does_not_tell_of_rebalances", "rebalances_for_unchanged_follower",
                "lets_leader_rejoin_quietly", "keeps_generation", "picks_another_leader",
                "answers_follower_before_leader"),
    "mixed": ("gives_no_id_first",),
    "pending": ("does_not_wait_for_the_pending",),
    "removal": ("does_not_fence_leaves", "accepts_unknown_members_heartbeat",
                "reports_unknown_member_removed", "knows_no_instances",
                "rebalances_though_nobody_left",
                "does_not_rebalance_on_leave", "removes_no_sooner_than_sessions_end"),
    "returning": ("calls_the_replaced_unknown", "replaces_without_rebalance_while_completing",
                  "takes_commits_while_completing"),
    "sessions": ("never_expires", "commits_do_not_keep_alive", "stores_strangers_commits",
                 "takes_heartbeats_of_old_generations", "takes_commits_of_old_generations"),
    "silent": ("never_evicts_the_unsynced", "evicts_the_unsynced_early"),
    "static": ("rebalances_on_static_replacement", "takes_returning_static_for_new",
               "keeps_old_member_id", "expires_early"),
}  # fmt: skip
"""The group whose recorded requests show each mutant."""

INVISIBLE = {
    # answers come late, and a request may have been late to reach the coordinator as well
    "removes_the_first_alone": "removal",
    "waits_for_the_pending_for_ever": "pending",
}
"""Mutants that the evidence of clients alone does not show."""

NOT_OF_ONE_EPOCH = {
    "forgets_the_group", "forgets_instance_ids", "forgets_assignments", "forgets_dynamic_members",
    "forgets_the_generation", "starts_no_sessions", "rebalances_what_it_loads",
    "does_not_store_new_id", "answers_when_not_coordinator",
}  # fmt: skip
"""Mutants of a failover, or of a broker that does not coordinate the group."""


def synthesized(recording: Recording, group: str, mutant: str) -> EventSequence:
    """Return what the clients of a mutant would have written down."""
    run = synthesized_run_of(MUTANTS.get(mutant, step), recording, group)
    return one(from_log(recording, group, (line for line in run.lines if line.group == group)))


@pytest.mark.parametrize("name", RECORDINGS)
def test_client_evidence_of_a_recording_is_explained(name: str) -> None:
    recording = RECORDINGS[name]
    for group in recording.groups:
        lines = [line for line in recording.lines if line.group == group]
        sequence = one(from_log(recording, group, lines))
        outcome = replay(sequence.evidence, recording.profile)
        assert outcome.violations == ()
        assert len(outcome.checked) == len(sequence.requests)


def test_every_mutant_is_replayed() -> None:
    mutants = {mutant for of_group in WHERE.values() for mutant in of_group}
    assert (
        MUTANTS.keys()
        == mutants | {"syncs_do_not_keep_alive"} | INVISIBLE.keys() | NOT_OF_ONE_EPOCH
    )


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.parametrize("group", WHERE)
def test_a_mutant_has_no_explanation(group: str, name: str) -> None:
    recording = RECORDINGS[name]
    for mutant in WHERE[group]:
        evidence = synthesized(recording, group, mutant).evidence
        outcome = replay(evidence, recording.profile, first_alone=True)
        assert [violation.searched for violation in outcome.violations] == [True], mutant


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_sync_keeps_alive_as_clients_see_it_in_scala_alone(name: str) -> None:
    """In Java a SyncGroup does so before Stable alone, and it may have come later than it seems."""
    recording = RECORDINGS[name]
    sequence = synthesized(recording, "sessions", "syncs_do_not_keep_alive")
    outcome = replay(sequence.evidence, recording.profile)
    assert bool(outcome.violations) is recording.profile.sync_in_stable_restarts_session


@pytest.mark.parametrize("name", RECORDINGS)
def test_some_mutants_are_seen_by_no_client(name: str) -> None:
    recording = RECORDINGS[name]
    for mutant, group in INVISIBLE.items():
        evidence = synthesized(recording, group, mutant).evidence
        assert replay(evidence, recording.profile).violations == ()
