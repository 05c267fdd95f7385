"""What a run says and leaves: its verdict, its evidence, nothing that runs."""

import pytest

from tests.groupquake.conftest import Command
from tests.groupquake.test_own_builds import ACME, is_judged_as_built
from tests.groupquake.whole_run.conftest import WholeRun

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


def test_it_passes_and_every_answer_that_grep_finds_is_explained(whole_run: WholeRun) -> None:
    assert whole_run.code == 0, whole_run.err + whole_run.out
    assert "verdict: pass" in whole_run.out
    verdict = whole_run.verdict
    assert (verdict["seed"], verdict["findings"]) == (5, [])
    groups = verdict["groups"]
    assert groups["static"]["rebalances_observed"]["impact"] == 0
    assert groups["dynamic"]["rebalances_observed"]["impact"] in (3, 4)
    log = (whole_run.folder / "brokers" / "1" / "group.log").read_text().splitlines()
    coordinated = [line for line in log if '"OFFSET_FETCH"' not in line]  # which changes nothing
    for name, group in groups.items():
        grepped = sum(f'"request":{{"groupId":"{name}"' in line for line in coordinated)
        assert group["responses_explained"] == group["responses_checked"] == grepped > 20
        assert group["rebalances_observed"] == group["rebalances_expected"]
    assert len(verdict["faults"]) == 3 + 25
    assert all(fault["verified"] and fault["healed"] for fault in verdict["faults"])


def test_its_evidence_is_whole(whole_run: WholeRun) -> None:
    phases = [entry["phase"] for entry in whole_run.journal if entry["event"] == "phase"]
    assert phases == ["formation", "impact", "recovery", "teardown", "end"]
    seen = {entry["event"] for entry in whole_run.history}
    assert {"created", "assigned", "revoked", "committed", "closed", "produced"} <= seen


@pytest.mark.usefixtures("spark")
def test_its_evidence_gives_the_same_verdict_again(
    whole_run: WholeRun, groupquake: Command
) -> None:
    first = (whole_run.folder / "verdict.json").read_bytes()
    assert groupquake("report", whole_run.folder.parent / "latest").code == whole_run.code
    assert (whole_run.folder / "verdict.json").read_bytes() == first


def test_a_cluster_that_is_kept_goes_at_a_signal_to_any_thread(whole_run: WholeRun) -> None:
    assert whole_run.left == []


def test_a_build_is_judged_by_the_rules_that_are_named(whole_run: WholeRun) -> None:
    is_judged_as_built(whole_run.out, whole_run.folder, ACME, str(whole_run.libs))
    file, seed, *options = whole_run.command
    shown = f"repeat: groupquake run {file} {seed.replace('=', ' ')} {' '.join(options)}"
    assert shown in whole_run.out
