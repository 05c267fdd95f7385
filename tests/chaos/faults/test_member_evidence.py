"""Silence of a member proves something only if its coordinator was not silent, too."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from chaos.member_evidence import MemberEvidence
from chaos.timing import SILENCE_GRACE_MS
from chaos.witness import Witness
from kafka_protocol.errors import Error
from scenarios.durations import now_ms
from scenarios.faults.base import Finding
from tests.chaos.fakes import BrokerLog

BEFORE_MS = 1_000


@pytest.fixture
def logs(tmp_path: Path) -> dict[int, BrokerLog]:
    return {broker: BrokerLog(tmp_path / f"{broker}.log") for broker in (1, 2)}


@pytest.fixture
def asked() -> list[int]:
    """The brokers that were asked whether they are there."""
    return []


@pytest.fixture
def evidence(logs, asked):
    """Of `static-3`, which was heard last before it was stopped, by broker 1."""
    logs[1].request("static-3", "HEARTBEAT", now_ms() - BEFORE_MS)
    answers = lambda broker: asked.append(broker) or broker == 2
    witness = Witness({broker: log.path for broker, log in logs.items()})
    return MemberEvidence("static-3", 50, 300, witness, answers)


@pytest.fixture
def stopped_ms() -> int:
    return now_ms() - BEFORE_MS + 10


def test_a_silence_that_is_short_broken_or_of_somebody_unknown_proves_nothing(
    evidence, logs, stopped_ms
):
    short = evidence.silence(now_ms())
    assert not short.holds
    assert short.evidence.endswith("less than two heartbeat intervals (100 ms)")
    nobody = replace(evidence, member="static-4").silence(stopped_ms)
    assert nobody == Finding(False, "no group.log ever told of static-4, up or down")
    line = logs[1].request("static-3", "HEARTBEAT", stopped_ms + SILENCE_GRACE_MS + 1)
    going_on = evidence.silence(stopped_ms)
    assert not going_on.holds
    assert going_on.evidence.startswith("static-3 sent HEARTBEAT ")
    assert f"line {line})" in going_on.evidence


def test_a_coordinator_that_is_silent_itself_proves_nothing(evidence, logs, asked, stopped_ms):
    logs[1].request("static-1", "HEARTBEAT", stopped_ms)
    logs[2].request("d-0", "HEARTBEAT", group="d")
    finding = evidence.silence(stopped_ms)
    assert not finding.holds
    assert finding.evidence.endswith("but broker 1 was silent altogether")
    assert asked == [1]


@pytest.mark.parametrize("group", ["static", "d"])
def test_a_coordinator_that_hears_others_hears_the_silence(
    evidence, logs, asked, stopped_ms, group
):
    logs[1].request("other", "HEARTBEAT", stopped_ms + SILENCE_GRACE_MS + 1, group=group)
    assert evidence.silence(stopped_ms).holds
    assert asked == []


def test_the_coordinator_completed_the_latest_request(evidence, logs, asked, stopped_ms):
    logs[2].request("static-1", "HEARTBEAT", stopped_ms + 5)
    logs[1].request("static-2", "HEARTBEAT", stopped_ms + 9, error=Error.NOT_COORDINATOR)
    assert evidence.silence(stopped_ms).holds
    assert asked == [2], "which is there, and has nobody to hear"


def test_nothing_is_waited_for_where_no_log_can_tell_of_it():
    """An external cluster with `logs: none`: the wait would last two rebalance timeouts."""
    evidence, stop = MemberEvidence("static-3", 50, 300, Witness({}), lambda _: True), Mock()
    for found in (evidence.rejoined(0, stop), evidence.back(0, stop)):
        assert not found.holds
        assert "no group.log tells of static-3 or of any other client" in found.evidence
    stop.wait.assert_not_called()
