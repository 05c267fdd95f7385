"""Faults on the wire: the rule and witness of each; the effects are in tests/chaos/tap."""

import socket
import subprocess
import sys
from dataclasses import fields

import psutil
import pytest

from chaos.errors import ChaosError
from chaos.fault_runner import heal_from_journal
from chaos.tap.process import Commands, RunningTap, TapGoneError
from chaos.tap.rules import Rule
from chaos.timing import TAP_END_S
from chaos.wire_rules import WireRule
from scenarios.faults import FAULTS

COMMON = "target: {names: [static-3]}, for: 9s"
RULES = {
    "net.partition": ("brokers: controller", "partition"),
    "net.isolate": ("way: to-client", "partition"),
    "net.delay": ("latency: 300ms, jitter: 50ms", "delay"),
    "net.drop-answers": ("apis: [JOIN_GROUP], count: 1, then: silence", "drop-answers"),
    "net.hold": ("apis: [SYNC_GROUP], brokers: {brokers: [2]}", "hold"),
    "net.answer-error": ("apis: [HEARTBEAT], error: UNKNOWN_MEMBER_ID, after: 2", "answer-error"),
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
    commands.end(TAP_END_S)


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
    for key in {one.name for one in fields(Rule)} - {"action", "client_ids", "instance_ids",
                                                     "brokers", "seed"}:  # fmt: skip
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
    assert (fault._bounds_ms, fault._rule.probed) == ((500, 700), (1, 2))


LINE = (
    '1 1795000000000 5 tap DEBUG Completed request:{"requestHeader":{"correlationId":7,%s'
    '"requestApiKeyName":"JOIN_GROUP"},"connection":"127.0.0.1:9092-127.0.0.1:5000-0-1",'
    '"tap":{"delivered":false,"why":"dropped","copy":true,"rules":["r1"]}} (kafka.request.logger)\n'
)


@pytest.fixture
def witnessed(aim, context, running, tmp_path, monkeypatch):
    """What is found of a rule that hit a request, which a broker's own log has to have so often."""
    monkeypatch.setattr("scenarios.timing.WIRE_LOGGED_MS", 100)
    tapped = tmp_path / "tap" / "1" / "group.log"
    tapped.parent.mkdir(parents=True)

    def find(least: int, own: str | None, tap_line: str = LINE % ""):
        context.tap = running
        tapped.write_text(tap_line)
        log = tmp_path / "own.log"
        log.write_text(own or "")
        name = "net.duplicate" if least == 2 else "net.drop-answers"
        fault = aim(f"fault: {name}, {COMMON}, apis: [JOIN_GROUP]")
        logs = {} if own is None else {1: log}
        fault._rule = WireRule(running, Rule("hold"), logs, id="r1")
        fault._rule.began_ms = 1_795_000_000_000
        return fault.verify()

    return find


OWN = (
    'Completed request:{"requestHeader":{"correlationId":7,"clientId":"m"},'
    '"connection":"127.0.0.1:9092-127.0.0.1:5000-1-3"}\n'
)


@pytest.mark.parametrize(("times", "least", "holds"), [(1, 1, True), (2, 2, True), (0, 1, False)])
def test_the_brokers_own_log_is_the_witness(witnessed, times, least, holds):
    assert witnessed(least, OWN.replace("5000", "5001") + OWN * times).holds is holds


def test_a_rule_that_hit_nothing_is_not_verified(witnessed):
    assert not witnessed(1, OWN, tap_line="").holds


def test_without_a_brokers_log_the_tap_is_believed_and_that_is_said(witnessed):
    found = witnessed(1, None)
    assert found.holds
    assert "the broker has no log here" in found.evidence


HIDDEN = OWN.replace("127.0.0.1:9092-127.0.0.1:5000", "172.17.0.2:9092-172.17.0.1:48434").replace(
    '"clientId":"m"', '"clientId":"m","requestApiKeyName":"JOIN_GROUP"'
)
LATE, EARLY = "2 1795000000500 6 thread DEBUG ", "1 1794999000000 6 thread DEBUG "
ONE = LATE + HIDDEN


@pytest.mark.parametrize(
    ("own", "least", "holds"),
    [
        pytest.param(ONE, 1, True, id="one"),
        pytest.param(ONE + ONE, 2, True, id="two"),
        pytest.param(ONE, 2, False, id="too few"),
        pytest.param(ONE + ONE.replace("48434", "48435"), 2, False, id="another connection"),
        pytest.param(ONE.replace('"m"', '"n"'), 1, False, id="another client"),
        pytest.param(ONE.replace("JOIN_GROUP", "HEARTBEAT"), 1, False, id="another API"),
        pytest.param(ONE.replace('Id":7', 'Id":8'), 1, False, id="another number"),
        pytest.param(EARLY + HIDDEN, 1, False, id="an earlier one"),
    ],
)
def test_behind_a_nat_the_number_is_looked_for(witnessed, own, least, holds):
    """The broker logs other addresses than those that the tap has."""
    assert witnessed(least, own, tap_line=LINE % '"clientId":"m",').holds is holds


def test_the_rules_end_with_the_taps_process(monkeypatch):
    monkeypatch.setattr("chaos.fault_runner.TAP_ENDED_S", 0.1)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started_ms = round(psutil.Process(process.pid).create_time() * 1000)
        undo = {"do": "end-tap-rule", "pid": process.pid, "started_at_ms": started_ms}
        with pytest.raises(ChaosError, match=f"the tap .process {process.pid}. still runs"):
            heal_from_journal(undo)
        assert heal_from_journal({**undo, "started_at_ms": started_ms - 60_000}) is not None
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


@pytest.mark.parametrize("api", ["HEARTBEAT", "FIND_COORDINATOR"])
def test_an_error_that_no_log_of_a_broker_has(witnessed, api):
    """Brokers log no FindCoordinator: the tap's line is all there is."""
    found = witnessed(1, "", tap_line=(LINE % "").replace("JOIN_GROUP", api))
    assert found.holds is (api == "FIND_COORDINATOR")
