"""Faults on the wire: the rule and witness of each; the effects are in tests/chaos/tap."""

import subprocess
import sys
import threading
from dataclasses import replace

import psutil
import pytest

from chaos.errors import ChaosError
from chaos.faults import heal_from_journal, net
from chaos.faults.wire_evidence import Held, Logs, Silence, Slowness, Twice, evidence_of
from chaos.tap import Rule, RunningTap
from scenarios import MemberSpec, NetFault
from scenarios.faults import KINDS

STATIC = MemberSpec("shop-1", "shops", "static", "shop-1")
STOP = threading.Event()
DYNAMIC = MemberSpec("m-2", "shops", "dynamic", None)
COMMON = {"target": "all", "group": "shops", "at": "1s", "for": "9s"}
WITNESSES = [
    ({"fault": "net.partition", "brokers": "controller"}, "partition", Silence),
    ({"fault": "net.isolate", "way": "to-client"}, "partition", Silence),
    ({"fault": "net.delay", "latency": "300ms", "jitter": "50ms"}, "delay", Slowness),
    ({"fault": "net.drop-answers", "apis": ["JOIN_GROUP"], "count": 1}, "drop-answers", Twice),
    ({"fault": "net.hold", "apis": ["SYNC_GROUP"]}, "hold", Held),
    ({"fault": "net.duplicate", "apis": ["HEARTBEAT"]}, "duplicate", Twice),
]


def declared(keys):
    return KINDS[keys["fault"]].model_validate({**COMMON, **keys})


@pytest.fixture
def running(tmp_path):
    folder = tmp_path / "tap"
    return RunningTap({1: "127.0.0.1:1", 2: "127.0.0.1:2"}, folder, 0, 0, (1, "token"))


def test_every_fault_on_the_wire_is_here():
    wire = {name for name, kind in KINDS.items() if issubclass(kind, NetFault)}
    assert wire == {keys["fault"] for keys, *_ in WITNESSES}


@pytest.mark.parametrize(("keys", "action", "witness"), WITNESSES)
def test_the_rule_and_the_witness(keys, action, witness, running):
    rule = net._rule(declared(keys), STATIC, (2,), 5)
    assert rule.action == action
    assert (rule.client_ids, rule.instance_ids) == (("shop-1",), ("shop-1",))
    assert (rule.brokers, rule.seed) == ((2,), 5)
    assert rule.apis == tuple(keys.get("apis", ())) or rule.apis is None
    assert rule.way == keys.get("way", "both")
    assert isinstance(evidence_of(rule, "shop-1", running, {}, None, STOP), witness)


def test_a_delay_shows_by_the_least_that_it_takes(running):
    rule = net._rule(declared(WITNESSES[2][0]), DYNAMIC, None, 5)
    assert rule.instance_ids == ()
    shown = evidence_of(rule, "m-2", running, {}, None, STOP)
    assert (shown.least_ms, shown.most_ms) == (500, 700)
    assert shown.probes.brokers == (1, 2)


def test_a_rule_that_hit_nothing_is_not_verified(running):
    shown = Twice(Logs(running, {}), {"copy": True}, 2, STOP)
    shown.begin("r1")
    assert not shown.broken().holds


LINE = (
    '1 1795000000000 5 tap DEBUG Completed request:{"requestHeader":{"correlationId":7,'
    '"requestApiKeyName":"JOIN_GROUP"},"connection":"127.0.0.1:9092-127.0.0.1:5000-0-1",'
    '"tap":{"delivered":false,"why":"dropped","rules":["r1"]}} (kafka.request.logger)\n'
)
OWN = (
    'Completed request:{"requestHeader":{"correlationId":7,"clientId":"m"},'
    '"connection":"127.0.0.1:9092-127.0.0.1:5000-1-3"}\n'
)


@pytest.mark.parametrize(("times", "least", "holds"), [(1, 1, True), (2, 2, True), (0, 1, False)])
def test_the_brokers_own_log_is_the_witness(running, tmp_path, monkeypatch, times, least, holds):
    monkeypatch.setattr("chaos.faults.wire_evidence.LOGGED_WITHIN_MS", 100)
    (tmp_path / "tap" / "1").mkdir(parents=True)
    (tmp_path / "tap" / "1" / "group.log").write_text(LINE)
    own = tmp_path / "own.log"
    own.write_text(OWN.replace("5000", "5001") + OWN * times)
    shown = Twice(Logs(running, {1: own}), {"delivered": False, "why": "dropped"}, least, STOP)
    shown.begin("r1")
    assert shown.broken().holds is holds


def test_without_a_brokers_log_the_tap_is_believed_and_that_is_said(running, tmp_path):
    (tmp_path / "tap" / "1").mkdir(parents=True)
    (tmp_path / "tap" / "1" / "group.log").write_text(LINE)
    shown = Twice(Logs(running, {}), {"delivered": False, "why": "dropped"}, 1, STOP)
    shown.begin("r1")
    assert shown.broken().holds
    assert "the broker has no log here" in shown.broken().evidence


def test_the_rules_end_with_the_taps_process(monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started_ms = round(psutil.Process(process.pid).create_time() * 1000)
    undo = {"do": "end-tap-rule", "pid": process.pid, "started_at_ms": started_ms}
    monkeypatch.setattr(net, "_ENDS_S", 0.1)
    try:
        with pytest.raises(ChaosError, match=f"the tap .process {process.pid}. still runs"):
            heal_from_journal(undo)
        assert heal_from_journal({**undo, "started_at_ms": started_ms - 60_000}) is not None
    finally:
        process.communicate()
    assert heal_from_journal(undo) == "the tap has ended, and its rules with it"


def test_a_rule_ends_with_its_tap_and_not_with_its_silence(running, monkeypatch):
    monkeypatch.setattr("chaos.tap.process.TAP_GONE_S", 0.1)
    fault = net.NetRule(DYNAMIC, 1, Rule("hold"), running, None)
    assert fault.heal() == "the rule was never in force"
    fault._id = "r1"
    assert fault.heal() == "the tap has ended, and its rules with it"
    me = psutil.Process()
    fault._tap = replace(running, process_id=me.pid, started_at_ms=round(me.create_time() * 1000))
    with pytest.raises(ChaosError, match="the tap does not answer"):
        fault.heal()


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
def test_behind_a_nat_the_number_is_looked_for(running, tmp_path, monkeypatch, lines, least, holds):
    """The broker logs other addresses than those that the tap has."""
    monkeypatch.setattr("chaos.faults.wire_evidence.LOGGED_WITHIN_MS", 100)
    monkeypatch.setattr("chaos.faults.wire_evidence.now_ms", lambda: 1_795_000_000_000)
    (tmp_path / "tap" / "1").mkdir(parents=True)
    tapped = LINE.replace('"correlationId":7,', '"correlationId":7,"clientId":"m",')
    (tmp_path / "tap" / "1" / "group.log").write_text(tapped)
    own = tmp_path / "own.log"
    own.write_text("".join(lines))
    shown = Twice(Logs(running, {1: own}), {"delivered": False, "why": "dropped"}, least, STOP)
    shown.begin("r1")
    assert shown.broken().holds is holds
