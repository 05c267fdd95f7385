"""Which experiment catches which mutant, and the source of the rule that the mutant breaks.

The log of one group of one library experiment is synthesized with the mutant.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CatchingExperiment:
    """The experiment and group that catch a mutant, and the source of the rule that it breaks."""

    experiment: str
    group: str
    source: str


CLASSIC = "the classic protocol"
"""The source of rules as old as the coordinator, which have no KIP."""

CATCHING_EXPERIMENTS: dict[str, CatchingExperiment] = {
    mutant: CatchingExperiment(experiment, group, source)
    for (experiment, group), mutants in {
        ("duplicate-instance-id", "static"): {
            "rebalances_on_static_replacement": "KIP-345",
            "takes_returning_static_for_new": "KIP-345",
            "keeps_old_member_id": "KIP-345",
            "does_not_fence_heartbeats": "KIP-345",
            "has_no_initial_delay": "KIP-134",
            "tells_leader_of_itself_alone": CLASSIC,
        },
        ("batch-removal", "static"): {
            "removes_the_first_alone": "KIP-345",
            "calls_ghosts_removed": "KIP-345",
            "knows_no_instances": "KIP-345",
            "rebalances_though_nobody_left": "KIP-345",
            "does_not_rebalance_on_leave": CLASSIC,
            "removes_no_sooner_than_sessions_end": "KIP-345",
        },
        ("coordinator-failover", "static"): {
            "forgets_the_group": CLASSIC,
            "forgets_instance_ids": "KIP-345",
            "forgets_assignments": CLASSIC,
            "forgets_the_generation": CLASSIC,
            "rebalances_what_it_loads": CLASSIC,
        },
        ("failover-with-losses", "mixed"): {
            "forgets_dynamic_members": CLASSIC,
            "starts_no_sessions": CLASSIC,
            "does_not_store_new_id": "KAFKA-10284",
        },
        ("protocol-corners", "fencing"): {
            "does_not_fence_syncs": "KIP-345",
            "does_not_fence_commits": "KIP-345",
            "does_not_fence_joins": "KIP-345",
            "does_not_tell_returning_leader": "KIP-814",
        },
        ("protocol-corners", "removal"): {
            "does_not_fence_leaves": "KIP-345",
            "answers_strangers_heartbeats": CLASSIC,
        },
        ("protocol-corners", "returning"): {
            "calls_the_replaced_unknown": "KIP-345",
            "replaces_without_rebalance_while_completing": "KAFKA-9801",
            "takes_commits_while_completing": CLASSIC,
        },
        ("protocol-corners", "sessions"): {
            "never_expires": CLASSIC,
            "heartbeats_do_not_keep_alive": CLASSIC,
            "commits_do_not_keep_alive": CLASSIC,
            "syncs_do_not_keep_alive": CLASSIC,
            "stores_strangers_commits": CLASSIC,
            "takes_heartbeats_of_old_generations": CLASSIC,
            "takes_commits_of_old_generations": CLASSIC,
        },
        ("protocol-corners", "absent"): {
            "expires_early": CLASSIC,
            "expires_the_waiting": "KIP-62",
            "drops_absent_static": "KIP-345",
            "keeps_absent_dynamic": "KIP-62",
            "waits_for_ever": "KIP-62",
            "waits_too_briefly": "KIP-62",
        },
        ("protocol-corners", "leading"): {
            "does_not_tell_of_rebalances": CLASSIC,
            "rebalances_for_unchanged_follower": CLASSIC,
            "lets_leader_rejoin_quietly": CLASSIC,
            "answers_follower_before_leader": CLASSIC,
            "keeps_generation": CLASSIC,
            "picks_another_leader": CLASSIC,
        },
        ("protocol-corners", "pending"): {
            "does_not_wait_for_the_pending": "KIP-394",
            "waits_for_the_pending_for_ever": "KIP-394",
        },
        ("protocol-corners", "mixed"): {
            "gives_no_id_first": "KIP-394",
        },
        ("protocol-corners", "full"): {
            "has_no_max_size": "KIP-389",
            "counts_one_too_many": "KIP-389",
            "gives_everyone_the_leaders_share": CLASSIC,
        },
        ("protocol-corners", "forming"): {
            "does_not_extend_initial_delay": "KIP-134",
        },
        ("protocol-corners", "elsewhere"): {
            "speaks_without_office": CLASSIC,
        },
        ("protocol-corners", "silent"): {
            "never_evicts_the_unsynced": "KAFKA-12890",
            "evicts_the_unsynced_early": "KAFKA-12890",
        },
    }.items()
    for mutant, source in mutants.items()
}
