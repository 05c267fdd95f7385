"""Coherent lies: logs that agree with themselves, of coordinators that break one rule.

A checker that only compares a log with itself passes every one of them.
"""

from pathlib import Path

import pytest

from reference_coordinator.mutants import MUTANTS, Step
from reference_coordinator.profiles import Settings, kafka_4_3
from reference_coordinator.step import step
from tests.reports.conftest import Judge
from tests.reports.lying_broker import LyingBroker

pytestmark = pytest.mark.spark

SETTINGS = Settings(initial_rebalance_delay_ms=500, min_session_timeout_ms=1_000)

PLACES = {
    # what the first root is, and what its line says
    "rebalances_on_static_replacement": (
        "unexpected_rebalance",
        "(reason: Group's selectedProtocol will change because static member static-0",
    ),
    "keeps_old_member_id": (
        "wrong_answer",
        '"clientId":"static-0","requestApiKeyName":"JOIN_GROUP"',
    ),
    "does_not_fence": ("wrong_answer", '"clientId":"static-2","requestApiKeyName":"HEARTBEAT"'),
    "expires_early": ("unexpected_rebalance", "(reason: removing member static-0"),
    "answers_follower_before_leader": (
        "wrong_answer",
        '"requestApiKeyName":"SYNC_GROUP"',
    ),
}


def retell(folder: Path, coordinator: Step) -> None:
    """Write every broker's log anew, as another coordinator would have printed it."""
    for log in folder.glob("brokers/*/group.log"):
        if '"groupId"' in log.read_text():
            log.write_text(
                LyingBroker(log, coordinator, kafka_4_3().with_settings(SETTINGS)).tell()
            )


def test_the_truth_told_anew_passes(recorded: Path, judge: Judge) -> None:
    retell(recorded, step)
    verdict = judge(recorded)
    assert verdict["findings"] == []
    assert verdict["verdict"] == "pass"


def test_every_mutant_is_judged() -> None:
    assert {*PLACES, "never_expires"} == set(MUTANTS)


@pytest.mark.parametrize("name", PLACES)
def test_a_coherent_lie_fails_at_its_place(name: str, recorded: Path, judge: Judge) -> None:
    retell(recorded, MUTANTS[name])
    verdict = judge(recorded)
    assert verdict["verdict"] == "fail"
    roots = [finding for finding in verdict["findings"] if finding["root"]]
    first = min(roots, key=lambda finding: finding["at_ms"])
    kind, said = PLACES[name]
    assert first["kind"] == kind
    place = first["log"]
    assert said in (recorded / place["file"]).read_text().splitlines()[place["line"] - 1]


def test_a_session_that_never_expires_is_missed(recorded: Path, judge: Judge) -> None:
    retell(recorded, MUTANTS["never_expires"])
    verdict = judge(recorded)
    assert verdict["verdict"] == "fail"
    first = min((f for f in verdict["findings"] if f["root"]), key=lambda f: f["at_ms"])
    assert (first["kind"], first["group"]) == ("missing_rebalance", "static")
    assert "session_expired" in first["expected"]
