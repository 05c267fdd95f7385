"""Faults on the wire: the rule and witness of each; the effects are in tests/chaos/tap."""

import socket
import subprocess
import sys

import psutil
import pytest

from chaos.errors import ChaosError
from chaos.fault_runner import heal_from_journal
from chaos.tap import Rule, RunningTap, TapGoneError
from chaos.tap.process import Commands
from chaos.wire_rules import WireRule
from scenarios.faults import FAULTS

COMMON = "target: {names: [static-3]}, for: 9s"
RULES = {
    "net.partition": ("brokers: controller", "partition"),
    "net.isolate": ("way: to-client", "partition"),
    "net.delay": ("latency: 300ms, jitter: 50ms", "delay"),
    "net.drop-answers": ("apis: [JOIN_GROUP], count: 1, then: silence", "drop-answers"),
    "net.hold": ("apis: [SYNC_GROUP], brokers: {brokers: [2]}", "hold"),
    "net.duplicate": ("apis: [HEARTBEAT], probability: 0.5", "duplicate"),
}


@pytest.fixture
def running(tmp_path):
    """A tap whose process says nothing."""
    command = [sys.executable, "-c", "input()"]
    addresses = {1: "127.0.0.1:1", 2: "127.0.0.1:2"}
    ours, its = socket.socketpair()
    with its:
        process = subprocess.Popen(command, stdin=its)
    commands = Commands(process, ours)
    yield RunningTap(addresses, tmp_path / "tap", process.pid, 0, commands)
    commands.end()


def test_every_fault_on_the_wire_is_here():
    assert {name for name, kind in FAULTS.items() if kind.needs == "tap"} == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_the_rule_of_each(name, aim, context, running):
    keys, action = RULES[name]
    with pytest.raises(ChaosError, match=f"{name} needs the tap"):
        aim(f"fault: {name}, {COMMON}, {keys}")
    context.tap = running
    fault = aim(f"fault: {name}, {COMMON}, {keys}")
    rule = fault._rule.rule
    assert (rule.action, rule.client_ids, rule.instance_ids) == (
        *(action, ("static-3",), ("static-3",)),
    )
    nodes = {"net.partition": [1], "net.hold": [2]}.get(name, [])
    assert (rule.brokers, fault.hit.details) == (
        *(tuple(nodes) or None, {"brokers": nodes, "members": []}),
    )
    for key in ("way", "apis", "count", "probability", "then", "latency_ms", "jitter_ms"):
        assert getattr(rule, key) == getattr(fault, key, getattr(Rule("hold"), key))
    context.seed = 7
    assert aim(f"fault: {name}, {COMMON}, {keys}")._rule.rule.seed != rule.seed


def test_a_dynamic_member_is_known_by_its_client_id_and_a_delay_by_the_least_it_takes(
    aim, context, running
):
    context.tap = running
    keys = COMMON.replace("static-3", "mixed-dynamic-0")
    fault = aim(f"fault: net.delay, {keys}, latency: 300ms, jitter: 50ms")
    assert fault._rule.rule.instance_ids == ()
    assert fault._bounds_ms == (500, 700)
    assert fault._rule.probed == (1, 2)


@pytest.fixture
def single(aim, context, running):
    """Makes a fault with the rule `r1`, by which a broker's own log has each request so often."""

    def make(times: int, own=None):
        context.tap = running
        name = "net.duplicate" if times == 2 else "net.drop-answers"
        fault = aim(f"fault: {name}, {COMMON}, apis: [JOIN_GROUP]")
        fault._rule = WireRule(running, Rule("hold"), {} if own is None else {1: own}, id="r1")
        return fault

    return make


def test_a_rule_that_hit_nothing_is_not_verified(single):
    assert not single(2).verify().holds


LINE = (
    '1 1795000000000 5 tap DEBUG Completed request:{"requestHeader":{"correlationId":7,'
    '"requestApiKeyName":"JOIN_GROUP"},"connection":"127.0.0.1:9092-127.0.0.1:5000-0-1",'
    '"tap":{"delivered":false,"why":"dropped","copy":true,"rules":["r1"]}} (kafka.request.logger)\n'
)
OWN = (
    'Completed request:{"requestHeader":{"correlationId":7,"clientId":"m"},'
    '"connection":"127.0.0.1:9092-127.0.0.1:5000-1-3"}\n'
)


@pytest.mark.parametrize(("times", "least", "holds"), [(1, 1, True), (2, 2, True), (0, 1, False)])
def test_the_brokers_own_log_is_the_witness(single, tmp_path, monkeypatch, times, least, holds):
    monkeypatch.setattr("scenarios.timing.WIRE_LOGGED_MS", 100)
    (tmp_path / "tap" / "1").mkdir(parents=True)
    (tmp_path / "tap" / "1" / "group.log").write_text(LINE)
    own = tmp_path / "own.log"
    own.write_text(OWN.replace("5000", "5001") + OWN * times)
    assert single(least, own).verify().holds is holds


def test_without_a_brokers_log_the_tap_is_believed_and_that_is_said(single, tmp_path):
    (tmp_path / "tap" / "1").mkdir(parents=True)
    (tmp_path / "tap" / "1" / "group.log").write_text(LINE)
    found = single(1).verify()
    assert found.holds
    assert "the broker has no log here" in found.evidence


def test_the_rules_end_with_the_taps_process(monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started_ms = round(psutil.Process(process.pid).create_time() * 1000)
    undo = {"do": "end-tap-rule", "pid": process.pid, "started_at_ms": started_ms}
    monkeypatch.setattr("chaos.fault_runner.TAP_ENDED_S", 0.1)
    try:
        with pytest.raises(ChaosError, match=f"the tap .process {process.pid}. still runs"):
            heal_from_journal(undo)
        assert heal_from_journal({**undo, "started_at_ms": started_ms - 60_000}) is not None
    finally:
        process.communicate()
    assert heal_from_journal(undo) == "the tap has ended, and its rules with it"


def test_a_rule_ends_with_its_tap(running, monkeypatch):
    monkeypatch.setattr("chaos.tap.process.TAP_ANSWER_S", 0.2)
    rule = WireRule(running, Rule("hold"), {})
    assert rule.remove() == "the rule was never in force"
    psutil.Process(running.process_id).suspend()
    with pytest.raises(TapGoneError, match="did not answer within"):
        rule.put()
    with pytest.raises(TapGoneError, match="the tap has ended"):
        rule.remove()


HIDDEN = OWN.replace("127.0.0.1:9092-127.0.0.1:5000", "172.17.0.2:9092-172.17.0.1:48434").replace(
    '"clientId":"m"', '"clientId":"m","requestApiKeyName":"JOIN_GROUP"'
)
LATE, EARLY = "2 1795000000500 6 thread DEBUG ", "1 1794999000000 6 thread DEBUG "
OTHERS = [
    LATE + HIDDEN.replace('"m"', '"n"'),
    LATE + HIDDEN.replace("JOIN_GROUP", "HEARTBEAT"),
    LATE + HIDDEN.replace('Id":7', 'Id":8'),
    LATE + HIDDEN.replace("48434", "48435"),
    EARLY + HIDDEN,
]
"""Another client, API, number, connection; the same of an earlier time."""


@pytest.mark.parametrize(
    ("lines", "least", "holds"),
    [([LATE + HIDDEN], 1, True), ([LATE + HIDDEN] * 2, 2, True), ([LATE + HIDDEN], 2, False),
     ([LATE + HIDDEN, OTHERS[3]], 2, False),
     *(([one], 1, False) for one in [*OTHERS[:3], OTHERS[4]])],
)  # fmt: skip
def test_behind_a_nat_the_number_is_looked_for(single, tmp_path, monkeypatch, lines, least, holds):
    """The broker logs other addresses than those that the tap has."""
    monkeypatch.setattr("scenarios.timing.WIRE_LOGGED_MS", 100)
    (tmp_path / "tap" / "1").mkdir(parents=True)
    tapped = LINE.replace('"correlationId":7,', '"correlationId":7,"clientId":"m",')
    (tmp_path / "tap" / "1" / "group.log").write_text(tapped)
    own = tmp_path / "own.log"
    own.write_text("".join(lines))
    fault = single(least, own)
    fault._rule.began_ms = 1_795_000_000_000
    assert fault.verify().holds is holds
