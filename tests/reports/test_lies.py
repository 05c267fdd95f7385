"""Coherent lies: logs whose lines and responses agree, written by coordinators that break one rule.

A checker that only compares a log with itself passes every one of them. All mutants of a recording
are written to one run folder, each as a group with the mutant's name, beside the recorded groups as
the unaltered oracle writes them. They take one judgement, and none may affect another group.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reference_coordinator.classic.step import step
from reports.judgement.recording import Recording
from reports.judgement.timelines.member_lines import DOUBTFUL
from selftest.broken_rules import MUTANTS
from selftest.mutants.log_synthesis import LogSynthesis, SynthesizedLine
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import COORDINATORS, Judge
from tests.reports.synthesized_logs import with_own_ids, write_run

pytestmark = pytest.mark.spark

PREPARING = "Preparing to rebalance"
REPLACED = "(reason: Group's selectedProtocol will change because static member static-0"

LIES: dict[str, tuple[str, dict[str, str]]] = {
    # The recorded group it is about; what the first root is, and what the line says at its place
    # (if something is missing: what is expected). One lie may show in two ways: an event leaves a
    # line and an answer, both wrong, and milliseconds decide which of them comes first.
    "rebalances_on_static_replacement": ("static", {"unexpected_rebalance": REPLACED}),
    "takes_returning_static_for_new": (
        "static",
        {"unexpected_rebalance": "(reason: Adding new member static-0"},
    ),
    "keeps_old_member_id": (
        "static",
        {
            "wrong_answer": '"clientId":"static-0","requestApiKeyName":"JOIN_GROUP"',
            "missing_line": "static_replaced of static-0",
        },
    ),
    "does_not_fence_heartbeats": (
        "fencing",
        {"wrong_answer": '"clientId":"fencing-b","requestApiKeyName":"HEARTBEAT"'},
    ),
    "does_not_fence_syncs": (
        "fencing",
        {"wrong_answer": '"clientId":"fencing-b","requestApiKeyName":"SYNC_GROUP"'},
    ),
    "does_not_fence_commits": (
        "fencing",
        {"wrong_answer": '"clientId":"fencing-b","requestApiKeyName":"OFFSET_COMMIT"'},
    ),
    "does_not_fence_joins": (
        "fencing",
        {"wrong_answer": '"clientId":"fencing-b","requestApiKeyName":"JOIN_GROUP"'},
    ),
    "does_not_fence_leaves": (
        "removal",
        {"unexpected_rebalance": PREPARING, "wrong_answer": '"LEAVE_GROUP"'},
    ),
    "calls_the_replaced_unknown": (
        "returning",
        {"wrong_answer": '"clientId":"returning-b","requestApiKeyName":"JOIN_GROUP"'},
    ),
    "replaces_without_rebalance_while_completing": (
        "returning",
        {"missing_rebalance": "(static_replaced)"},
    ),
    "does_not_tell_returning_leader": (
        "fencing",
        {"wrong_answer": '"clientId":"fencing-a","requestApiKeyName":"JOIN_GROUP"'},
    ),
    "never_expires": ("sessions", {"missing_line": "session_expired of b-"}),
    "expires_early": ("static", {"unexpected_rebalance": "(reason: removing member static-"}),
    "expires_the_waiting": (
        "absent",
        {"answered_early": '"clientId":"absent-a","requestApiKeyName":"JOIN_GROUP"'},
    ),
    "heartbeats_do_not_keep_alive": (
        "dynamic",
        {"unexpected_rebalance": "(reason: removing member dynamic-"},
    ),
    "commits_do_not_keep_alive": (
        "sessions",
        {"unexpected_rebalance": "(reason: removing member b-"},
    ),
    "syncs_do_not_keep_alive": (
        "sessions",
        {"unexpected_rebalance": "(reason: removing member b-"},
    ),
    "accepts_unknown_members_heartbeat": (
        "removal",
        {"wrong_answer": '"clientId":"removal-b","requestApiKeyName":"HEARTBEAT"'},
    ),
    "stores_strangers_commits": (
        "sessions",
        {"wrong_answer": '"clientId":"sessions-b","requestApiKeyName":"OFFSET_COMMIT"'},
    ),
    # one member of the batch is still waited for when the other two have joined
    "removes_the_first_alone": ("removal", {"late": PREPARING}),
    "reports_unknown_member_removed": (
        "removal",
        {"wrong_answer": '"groupInstanceId":"ghost","errorCode":0'},
    ),
    "knows_no_instances": (
        "removal",
        {"wrong_answer": '"groupInstanceId":"c","errorCode":25', "missing_line": "left of c-"},
    ),
    "rebalances_though_nobody_left": ("removal", {"unexpected_rebalance": PREPARING}),
    "does_not_rebalance_on_leave": (
        "removal",
        {"wrong_answer": '"clientId":"removal-a","requestApiKeyName":"HEARTBEAT"'},
    ),
    "removes_no_sooner_than_sessions_end": ("removal", {"missing_line": "line left of "}),
    "has_no_initial_delay": ("fencing", {"answered_early": '"JOIN_GROUP"'}),
    "does_not_extend_initial_delay": ("forming", {"answered_early": '"JOIN_GROUP"'}),
    "drops_absent_static": (
        "absent",
        {"wrong_members": " generation 2 ", "wrong_answer": '"JOIN_GROUP"'},
    ),
    "keeps_absent_dynamic": ("absent", {"wrong_members": " generation 2 "}),
    "waits_for_ever": ("absent", {"unexpected_line": " because no members rejoined"}),
    "waits_too_briefly": ("absent", {"answered_early": '"JOIN_GROUP"'}),
    "does_not_wait_for_the_pending": (
        "pending",
        {"early": "(reason: Leader ", "answered_early": '"JOIN_GROUP"'},
    ),
    "waits_for_the_pending_for_ever": ("pending", {"late": "(reason: Leader "}),
    "gives_no_id_first": ("mixed", {"unexpected_line": " with unknown member id joins group"}),
    "has_no_max_size": ("full", {"unexpected_line": "groupInstanceId=extra "}),
    "counts_one_too_many": (
        "full",
        {"answered_early": '"clientId":"full-e","requestApiKeyName":"JOIN_GROUP"'},
    ),
    "does_not_tell_of_rebalances": ("leading", {"wrong_answer": '"HEARTBEAT"'}),
    "rebalances_for_unchanged_follower": (
        "leading",
        {"unexpected_rebalance": "(reason: Updating metadata for member b-"},
    ),
    "lets_leader_rejoin_quietly": (
        "leading",
        {"answered_early": '"clientId":"leading-a","requestApiKeyName":"JOIN_GROUP"'},
    ),
    "keeps_generation": ("leading", {"wrong_answer": '"JOIN_GROUP"'}),
    "picks_another_leader": ("leading", {"wrong_answer": '"JOIN_GROUP"'}),
    "tells_leader_of_itself_alone": (
        "fencing",
        {"wrong_answer": '"clientId":"fencing-a","requestApiKeyName":"JOIN_GROUP"'},
    ),
    "takes_heartbeats_of_old_generations": (
        "sessions",
        {"wrong_answer": '"clientId":"sessions-a","requestApiKeyName":"HEARTBEAT"'},
    ),
    "takes_commits_of_old_generations": (
        "sessions",
        {"wrong_answer": '"clientId":"sessions-a","requestApiKeyName":"OFFSET_COMMIT"'},
    ),
    "takes_commits_while_completing": (
        "returning",
        {"wrong_answer": '"clientId":"returning-c","requestApiKeyName":"OFFSET_COMMIT"'},
    ),
    "answers_follower_before_leader": ("leading", {"answered_early": '"SYNC_GROUP"'}),
    "gives_everyone_the_leaders_share": ("full", {"wrong_answer": '"SYNC_GROUP"'}),
    "never_evicts_the_unsynced": (
        "silent",
        {"missing_line": "line unsynced_removed,"},
    ),
    "evicts_the_unsynced_early": (
        "silent",
        {"early": "on pending sync", "unexpected_rebalance": "on pending sync"},
    ),
    "forgets_the_group": ("failover", {"wrong_answer": '"HEARTBEAT"'}),
    "forgets_instance_ids": ("failover", {"wrong_answer": '"HEARTBEAT"'}),
    "forgets_assignments": (
        "failover",
        {"wrong_answer": '"clientId":"failover-a","requestApiKeyName":"SYNC_GROUP"'},
    ),
    "forgets_dynamic_members": (
        "failover",
        {"wrong_answer": '"clientId":"failover-d","requestApiKeyName":"HEARTBEAT"'},
    ),
    "forgets_the_generation": ("failover", {"wrong_answer": '"HEARTBEAT"'}),
    "starts_no_sessions": ("failover", {"missing_line": "session_expired of c-"}),
    "rebalances_what_it_loads": ("failover", {"unexpected_rebalance": "(reason: Leader "}),
    "does_not_store_new_id": (
        "failover",
        {"wrong_answer": '"clientId":"failover-b","requestApiKeyName":"HEARTBEAT"'},
    ),
    "answers_when_not_coordinator": (
        "failover",
        {"wrong_answer": '"clientId":"failover-b","requestApiKeyName":"HEARTBEAT"'},
    ),
}


@dataclass(frozen=True)
class Judged:
    """A recording with the synthesized logs of the oracle and all mutants, and its verdict."""

    recording: Recording
    folder: Path
    verdict: dict[str, Any]
    truth: dict[str, list[SynthesizedLine]]
    lies: dict[str, list[SynthesizedLine]]

    def roots(self, group: str) -> list[dict[str, Any]]:
        """Return the root findings of a group, in order."""
        found = [f for f in self.verdict["findings"] if f["group"] == group and f["root"]]
        return sorted(found, key=lambda finding: finding["at_ms"])

    def line(self, finding: dict[str, Any]) -> str:
        """Return the log line at the place of a finding."""
        place = finding["log"]
        return (self.folder / place["file"]).read_text().splitlines()[place["line"] - 1]


@pytest.fixture(scope="module", params=COORDINATORS)
def judged(
    request: pytest.FixtureRequest, judge: Judge, tmp_path_factory: pytest.TempPathFactory
) -> Judged:
    recording = RECORDINGS[request.param]
    truth = {
        group: with_own_ids(LogSynthesis(recording, group, group, step).run(), group)
        for group in recording.groups
    }
    lies = {
        lie: with_own_ids(LogSynthesis(recording, group, lie, MUTANTS[lie]).run(), lie)
        for lie, (group, _) in LIES.items()
    }
    folder = tmp_path_factory.mktemp("lies") / "run"
    write_run(recording, [*truth.values(), *lies.values()], folder)
    return Judged(recording, folder, judge(folder), truth, lies)


def test_every_mutant_is_judged() -> None:
    assert LIES.keys() == MUTANTS.keys()


def test_the_synthesized_log_of_the_oracle_has_no_finding(judged: Judged) -> None:
    assert [f for f in judged.verdict["findings"] if f["group"] in judged.truth] == []
    for group in judged.truth:
        about = judged.verdict["groups"][group]
        requests = len(judged.recording.evidence(group).requests)
        assert about["responses_explained"] == about["responses_checked"] == requests
    assert judged.verdict["unknown_because"] == []


def test_a_synthesized_log_of_a_mutant_fails_at_its_violation(judged: Judged) -> None:
    assert judged.verdict["verdict"] == "fail"
    loaded = lambda root: root.get("may_be", "").startswith("fault broker.kill")
    for lie, (group, places) in LIES.items():
        true = with_own_ids(LogSynthesis(judged.recording, group, lie, step).run(), lie)
        assert judged.lies[lie] != true, f"the evidence does not exercise {lie}"
        roots = (root for root in judged.roots(lie) if root["kind"] != DOUBTFUL)
        first = next(root for root in roots if not loaded(root))
        assert first["proven"], lie
        assert first["kind"] in places, lie
        line = judged.line(first)
        text = first["expected"] if first["kind"].startswith("missing") else line
        assert places[first["kind"]] in text, lie
        assert f" {lie} " in line or f'"groupId":"{lie}"' in line
