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
from reports.judgement.timelines.member_lines import DOUBTFUL_LINE
from selftest.broken_rules import MUTANTS
from selftest.mutants.log_synthesis import LogSynthesis, SynthesizedLine
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import COORDINATORS
from tests.reports.judged_here import judged_here
from tests.reports.synthesized_logs import with_own_ids, write_run

Places = dict[str, str]


def request(client: str, api: str) -> str:
    return f'"clientId":"{client}","requestApiKeyName":"{api}"'


def wrong(client: str, api: str) -> Places:
    return {"wrong_answer": request(client, api)}


def early(client: str, api: str) -> Places:
    return {"answered_early": request(client, api)}


def rebalances(reason: str) -> Places:
    return {"unexpected_rebalance": reason}


def misses(line: str) -> Places:
    return {"missing_line": line}


HEARTBEAT, JOIN, SYNC = '"HEARTBEAT"', '"JOIN_GROUP"', '"SYNC_GROUP"'
BEGINS = "Preparing to rebalance"
REPLACED = "(reason: Group's selectedProtocol will change because static member static-0"

BY_GROUP: dict[str, dict[str, Places]] = {
    # The recorded group that a lie is about, the lie, what its first root is, and what the line
    # says at its place (if something is missing: what is expected). One lie may show in two ways:
    # an event leaves a line and an answer, both wrong, and milliseconds decide which comes first.
    "static": {
        "rebalances_on_static_replacement": rebalances(REPLACED),
        "takes_returning_static_for_new": rebalances("(reason: Adding new member static-0"),
        "keeps_old_member_id": {
            **wrong("static-0", "JOIN_GROUP"), **misses("static_replaced of static-0"),
        },
        "expires_early": rebalances("(reason: removing member static-"),
    },
    "fencing": {
        "does_not_fence_heartbeats": wrong("fencing-b", "HEARTBEAT"),
        "does_not_fence_syncs": wrong("fencing-b", "SYNC_GROUP"),
        "does_not_fence_commits": wrong("fencing-b", "OFFSET_COMMIT"),
        "does_not_fence_joins": wrong("fencing-b", "JOIN_GROUP"),
        "does_not_tell_returning_leader": wrong("fencing-a", "JOIN_GROUP"),
        "has_no_initial_delay": {"answered_early": JOIN},
        "tells_leader_of_itself_alone": wrong("fencing-a", "JOIN_GROUP"),
    },
    "returning": {
        "calls_the_replaced_unknown": wrong("returning-b", "JOIN_GROUP"),
        "replaces_without_rebalance_while_completing": {"missing_rebalance": "(static_replaced)"},
        "takes_commits_while_completing": wrong("returning-c", "OFFSET_COMMIT"),
    },
    "sessions": {
        "never_expires": misses("session_expired of b-"),
        "commits_do_not_keep_alive": rebalances("(reason: removing member b-"),
        "syncs_do_not_keep_alive": rebalances("(reason: removing member b-"),
        "stores_strangers_commits": wrong("sessions-b", "OFFSET_COMMIT"),
        "takes_heartbeats_of_old_generations": wrong("sessions-a", "HEARTBEAT"),
        "takes_commits_of_old_generations": wrong("sessions-a", "OFFSET_COMMIT"),
    },
    "dynamic": {"heartbeats_do_not_keep_alive": rebalances("(reason: removing member dynamic-")},
    "removal": {
        "does_not_fence_leaves": {**rebalances(BEGINS), "wrong_answer": '"LEAVE_GROUP"'},
        "accepts_unknown_members_heartbeat": wrong("removal-b", "HEARTBEAT"),
        # one member of the batch is still waited for when the other two have joined
        "removes_the_first_alone": {"late": BEGINS},
        "reports_unknown_member_removed": {"wrong_answer": '"ghost","errorCode":0'},
        "knows_no_instances": {
            "wrong_answer": '"groupInstanceId":"c","errorCode":25', **misses("left of c-"),
        },
        "rebalances_though_nobody_left": rebalances(BEGINS),
        "does_not_rebalance_on_leave": wrong("removal-a", "HEARTBEAT"),
        "removes_no_sooner_than_sessions_end": misses("line left of "),
    },
    "absent": {
        "expires_the_waiting": early("absent-a", "JOIN_GROUP"),
        "drops_absent_static": {"wrong_members": " generation 2 ", "wrong_answer": JOIN},
        "keeps_absent_dynamic": {"wrong_members": " generation 2 "},
        "waits_for_ever": {"unexpected_line": " because no members rejoined"},
        "waits_too_briefly": {"answered_early": JOIN},
    },
    "forming": {"does_not_extend_initial_delay": {"answered_early": JOIN}},
    "pending": {
        "does_not_wait_for_the_pending": {"early": "(reason: Leader ", "answered_early": JOIN},
        "waits_for_the_pending_for_ever": {"late": "(reason: Leader "},
    },
    "mixed": {"gives_no_id_first": {"unexpected_line": " with unknown member id joins group"}},
    "full": {
        "has_no_max_size": {"unexpected_line": "groupInstanceId=extra "},
        "counts_one_too_many": early("full-e", "JOIN_GROUP"),
        "gives_everyone_the_leaders_share": {"wrong_answer": SYNC},
    },
    "leading": {
        "does_not_tell_of_rebalances": {"wrong_answer": HEARTBEAT},
        "rebalances_for_unchanged_follower": rebalances("(reason: Updating metadata for member b-"),
        "lets_leader_rejoin_quietly": early("leading-a", "JOIN_GROUP"),
        "keeps_generation": {"wrong_answer": JOIN},
        "picks_another_leader": {"wrong_answer": JOIN},
        "answers_follower_before_leader": {"answered_early": SYNC},
    },
    "silent": {
        "never_evicts_the_unsynced": misses("line unsynced_removed,"),
        "evicts_the_unsynced_early": {
            "early": "on pending sync", **rebalances("on pending sync"),
        },
    },
    "failover": {
        "forgets_the_group": {"wrong_answer": HEARTBEAT},
        "forgets_instance_ids": {"wrong_answer": HEARTBEAT},
        "forgets_assignments": wrong("failover-a", "SYNC_GROUP"),
        "forgets_dynamic_members": wrong("failover-d", "HEARTBEAT"),
        "forgets_the_generation": {"wrong_answer": HEARTBEAT},
        "starts_no_sessions": misses("session_expired of c-"),
        "rebalances_what_it_loads": rebalances("(reason: Leader "),
        "does_not_store_new_id": wrong("failover-b", "HEARTBEAT"),
        "answers_when_not_coordinator": wrong("failover-b", "HEARTBEAT"),
    },
}  # fmt: skip
LIES = {lie: (group, places) for group, lies in BY_GROUP.items() for lie, places in lies.items()}


@dataclass(frozen=True)
class Judged:
    """A recording with the synthesized logs of the oracle and all mutants, and its verdict."""

    recording: Recording
    folder: Path
    verdict: dict[str, Any]
    lies: dict[str, list[SynthesizedLine]]

    def first_root(self, lie: str) -> dict[str, Any]:
        """Return the first root of a lie that no load of the group explains."""
        found = (f for f in self.verdict["findings"] if f["group"] == lie and f["root"])
        explained = lambda root: root.get("may_be", "").startswith("fault broker.kill")
        roots = (root for root in found if root["kind"] != DOUBTFUL_LINE and not explained(root))
        return min(roots, key=lambda root: root["at_ms"])

    def line(self, finding: dict[str, Any]) -> str:
        """Return the log line at the place of a finding."""
        place = finding["log"]
        return (self.folder / place["file"]).read_text().splitlines()[place["line"] - 1]


@pytest.fixture(scope="module", params=COORDINATORS)
def judged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    recording = RECORDINGS[request.param]
    written = lambda group, name, rules: with_own_ids(
        LogSynthesis(recording, group, name, rules).run(), name
    )
    truth = [written(group, group, step) for group in recording.groups]
    lies = {lie: written(group, lie, MUTANTS[lie]) for lie, (group, _) in LIES.items()}
    folder = tmp_path_factory.mktemp("lies") / "run"
    write_run(recording, [*truth, *lies.values()], folder)
    return Judged(recording, folder, judged_here(folder), lies)


def test_every_mutant_is_judged() -> None:
    assert LIES.keys() == MUTANTS.keys()


def test_the_synthesized_log_of_the_oracle_has_no_finding(judged: Judged) -> None:
    groups = judged.recording.groups
    assert [f for f in judged.verdict["findings"] if f["group"] in groups] == []
    for group in groups:
        about = judged.verdict["groups"][group]
        requests = len(judged.recording.evidence(group).requests)
        assert about["responses_explained"] == about["responses_checked"] == requests
    assert judged.verdict["unknown_because"] == []


def test_a_synthesized_log_of_a_mutant_fails_at_its_violation(judged: Judged) -> None:
    assert judged.verdict["verdict"] == "fail"
    for lie, (group, places) in LIES.items():
        true = with_own_ids(LogSynthesis(judged.recording, group, lie, step).run(), lie)
        assert judged.lies[lie] != true, f"the evidence does not exercise {lie}"
        first = judged.first_root(lie)
        assert first["proven"], lie
        assert first["kind"] in places, lie
        line = judged.line(first)
        text = first["expected"] if first["kind"].startswith("missing") else line
        assert places[first["kind"]] in text, lie
        assert f" {lie} " in line or f'"groupId":"{lie}"' in line
