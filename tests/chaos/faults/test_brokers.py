"""Broker faults on brokers that are a port and a log; real ones are in test_real_brokers."""

import socket

import pytest

from chaos.broker_probe import BrokerProbe
from chaos.errors import ChaosError
from chaos.witness import Witness
from scenarios.durations import now_ms
from scenarios.faults.base import Finding
from tests.chaos.fakes import until

KILL = "fault: broker.kill, target: {brokers: [2]}, down_for: 1s"
STOP = KILL.replace("kill", "stop")
PAUSE = KILL.replace("kill", "pause")


@pytest.fixture
def address(fake_cluster) -> str:
    return fake_cluster.brokers[1].address


@pytest.mark.parametrize(("keys", "article"), [(KILL, "no"), (STOP, "a")], ids=["kill", "stop"])
def test_a_broker_ends_and_restarts(fake_cluster, aim, address, keys, article):
    fake_cluster.coordinates["static"] = 2
    fault = aim(keys.replace("{brokers: [2]}", "{coordinator-of: static}"))
    hit = fault.hit
    assert (hit.target, hit.group, hit.details) == ("broker-2", "static", {"broker": 2})
    assert hit.undo == {"do": "start-broker", "broker": 2}
    fault.inject()
    assert fault.verify() == Finding(
        True,
        f"{address} takes no connections, {article} goodbye of its coordinator in its group.log",
    )
    assert fault.heal() == "started, and ready for requests"
    assert fault.verify_healed() == Finding(
        True, f"{address} answers, in sync according to broker 1, 2, 3"
    )


def test_the_journal_learns_how_long_the_log_was_then(fake_cluster, aim):
    log = fake_cluster.brokers[1].group_log
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("first\nsecond\ncut o")
    fault = aim(KILL)
    fault.inject()
    assert fault.hit.details == {"broker": 2, "log_lines": 2}


def test_a_shutdown_line_of_an_earlier_process_does_not_count(fake_cluster, aim):
    fake_cluster.act("stop", 2)
    fake_cluster.act("start", 2)
    fault = aim(KILL)
    fault.inject()
    assert fault.verify().holds


def test_a_stop_that_ends_as_a_kill_is_not_verified(fake_cluster, aim, address, monkeypatch):
    act = fake_cluster.act  # as after a time-out
    monkeypatch.setattr(fake_cluster, "act", lambda _, broker: act("kill", broker))
    fault = aim(STOP)
    fault.inject()
    assert fault.verify() == Finding(
        False, f"{address} takes no connections, no goodbye of its coordinator in its group.log"
    )


def test_a_broker_that_survives_is_reported(fake_cluster, aim, address):
    fake_cluster.immortal.add(2)
    fault = aim(KILL)
    fault.inject()
    broken = fault.verify()
    assert not broken.holds
    assert f"{address} takes connections" in broken.evidence


def test_a_broker_with_a_full_accept_queue_is_not_awaited(fake_cluster, aim, monkeypatch):
    """So is the queue of a paused broker whose clients connect again and again."""
    monkeypatch.setattr("chaos.timing.PROBE_CONNECT_S", 0.2)
    fault = aim(KILL)
    fault.inject()
    fault.heal()
    address = ("127.0.0.1", fake_cluster.brokers[2].port)
    fake_cluster.act("kill", 3)
    with socket.create_server(address, backlog=0), socket.create_connection(address):
        with pytest.raises(TimeoutError):
            socket.create_connection(address, 0.2)
        assert fault.verify_healed().evidence.endswith("according to broker 1, 2")
        with pytest.raises(ChaosError, match="timed out"):
            BrokerProbe(3, fake_cluster.brokers, fake_cluster, Witness({})).door()


def test_a_broker_that_is_frozen_or_down_does_not_answer(fake_cluster, monkeypatch):
    monkeypatch.setattr("chaos.timing.PROBE_ANSWER_S", 0.2)
    probe = BrokerProbe(2, fake_cluster.brokers, fake_cluster, Witness({}))
    assert probe.answers()
    fake_cluster.act("pause", 2)
    assert not probe.answers()
    fake_cluster.act("kill", 2)
    assert not probe.answers()


def test_a_broker_that_would_not_stop_is_ended_before_it_is_started(fake_cluster, aim):
    fake_cluster.immortal.add(2)
    fault = aim(STOP)
    with pytest.raises(ChaosError, match="still runs 20 s after SIGTERM"):
        fault.inject()
    fake_cluster.immortal.clear()
    fault.heal()
    assert fake_cluster.calls == [("stop", 2), ("kill", 2), ("start", 2)]


def test_a_broker_that_was_down_already_is_started_all_the_same(fake_cluster, aim, address):
    fake_cluster.act("kill", 2)
    fault = aim(KILL)
    with pytest.raises(ChaosError, match="broker 2 is down"):
        fault.inject()
    fault.heal()
    assert fake_cluster.in_sync(address) == {1, 2, 3}


@pytest.mark.parametrize(
    "trouble",
    [{"lagging": {2}}, {"seen_lagging": {3: {2}}}, {"seen_lagging": {2: {2}}}, {"mute": {2}}],
)
def test_all_that_answer_have_to_agree_and_it_has_to_answer(
    fake_cluster, aim, monkeypatch, trouble
):
    monkeypatch.setattr("chaos.broker_probe.BROKER_BACK_MS", 100)
    fault = aim(KILL)
    fault.inject()
    [(how, who)] = trouble.items()
    setattr(fake_cluster, how, who)
    fault.heal()
    back = fault.verify_healed()
    assert not back.holds
    assert back.evidence.endswith("did not answer with broker 2 in sync within 100 ms")


def test_the_end_of_the_run_ends_the_wait(fake_cluster, aim, stop):
    fault = aim(KILL)
    fault.inject()
    fake_cluster.lagging.add(2)
    fault.heal()
    stop.set()
    back = fault.verify_healed()
    assert (back.holds, "was not waited for" in back.evidence) == (False, True)


def test_a_pause_is_a_request_without_an_answer(aim, address):
    pause = aim(PAUSE)
    assert pause.hit.undo == {"do": "resume-broker", "broker": 2}
    began_ms = now_ms()
    pause.inject()
    sent_ms = now_ms()
    until(lambda: now_ms() > sent_ms)
    broken = pause.verify()
    assert broken.holds
    start, _, waited = broken.evidence.partition(" has had no answer for ")
    assert start == f"ApiVersions sent to {address}"
    assert 0 < int(waited.removesuffix(" ms").replace(" ", "")) <= now_ms() - began_ms
    assert pause.heal() == "resumed"
    assert pause.verify_healed().holds


def test_a_broker_that_answers_or_ends_is_not_paused(fake_cluster, aim, address):
    fake_cluster.immortal.add(2)
    goes_on = aim(PAUSE)
    goes_on.inject()
    answered = Finding(False, f"ApiVersions sent to {address} was answered")
    until(lambda: goes_on.verify() == answered)
    goes_on.heal()
    fake_cluster.immortal.clear()
    ends = aim(PAUSE)
    ends.inject()

    def is_closed() -> bool:
        fake_cluster.end_connections(2)  # of which it may not have taken every one yet
        return ends.verify().evidence.endswith("found the connection closed")

    until(is_closed)
    assert not ends.verify().holds
    ends.heal()


def test_a_broker_that_is_gone_cannot_be_paused(fake_cluster, aim):
    pause = aim(PAUSE)
    fake_cluster.act("kill", 2)
    with pytest.raises(ChaosError, match="broker 2 is down"):
        pause.inject()
    with pytest.raises(ChaosError, match="broker 2 is down"):
        pause.heal()
