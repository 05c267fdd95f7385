"""A new fault is one class and one entry of the list: from the file to what a witness saw of it."""

import subprocess
import sys
from typing import Literal

import pytest

from chaos.fault_runner import heal_from_journal
from scenarios import Experiment, problems
from scenarios.durations import PositiveMs, now_ms
from scenarios.faults import FAULTS
from scenarios.faults.targeted import MemberFault
from tests.chaos.run import GOOD


class MemberHiccup(MemberFault):
    """Lets the targets hang for a moment."""

    noun = "hiccup"
    undo_name = "resume-member"
    undo_words = "resume after {}"

    fault: Literal["member.hiccup"]
    lasts_ms: PositiveMs
    """How long they hang."""

    def inject(self) -> None:
        """Freeze the member."""
        self._context.members.order("pause", self.hit.target)
        self._began_ms = now_ms()

    def heal(self) -> str:
        """Let it go on; it is thrown out meanwhile."""
        self._healing_ms = now_ms()
        self._context.members.order("resume", self.hit.target)
        return "resumed"


@pytest.fixture
def registered(monkeypatch):
    """One line in the list; what was made of the list before is made anew."""
    with monkeypatch.context() as patch:
        patch.setitem(FAULTS, MemberHiccup.name(), MemberHiccup)
        Experiment.model_rebuild(force=True)
        problems._schema.cache_clear()
        yield
    Experiment.model_rebuild(force=True)
    problems._schema.cache_clear()


HICCUP = "{fault: member.hiccup, target: {names: [static-3]}, at: 0s, lasts: 150ms}"


def test_a_new_fault_goes_from_the_file_to_injected_verified_and_healed(
    registered, run, load, experiment
):
    assert "MemberHiccup" in Experiment.model_json_schema()["$defs"]
    load.expired.add("static-3")
    assert run.of(experiment(HICCUP)) == GOOD
    assert [do for do, *_ in load.orders] == ["pause", "resume"]
    [intent] = run.entries("intent")
    assert (intent["fault"], intent["kind"]) == ("member.hiccup", "recoverable")
    assert (intent["target"], intent["args"]) == ("static-3", {"lasts_ms": 150})
    assert intent["undo"] == {"do": "resume-member", "member": "static-3"}
    assert run.events("f1.1") == ["intent", "injected", "healed", "verified"]
    [verified] = run.entries("verified")
    assert verified["verified"], verified["witness"]


def test_what_a_dead_run_did_to_brokers_ends_with_their_cluster_and_what_is_unknown_stays():
    of_brokers = {kind.undo_name for kind in FAULTS.values() if kind.hits == "broker"} - {""}
    assert len(of_brokers) == 7
    for do in of_brokers:
        how = "nothing to undo: broker 2 ends with all that is left of its cluster"
        assert heal_from_journal({"do": do, "broker": 2}) == how
    assert heal_from_journal({"do": "reroute-broker", "broker": 2}) is None
    assert heal_from_journal({}) is None


def test_an_experiment_is_read_without_what_breaks_anything():
    """The faults act on what is handed to them: no cluster, no client, no tap is imported."""
    program = (
        "import sys; from scenarios import named, json_schema; named('demo'); json_schema()\n"
        "print([one for one in sys.modules if one.partition('.')[0] in"
        " ('chaos', 'kafka', 'docker', 'confluent_kafka', 'subprocess')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_says_what_plan_journal_and_report_need(name):
    kind = FAULTS[name]
    prefixes = ("broker.", "disk.", "clock.")
    assert (kind.hits == "broker") == name.startswith(prefixes)
    assert not kind.noun.endswith("s"), "reports count it with an s"
    summary = (kind.__doc__ or "").partition("\n\n")[0]
    assert summary.endswith(".")
    assert kind.one_shot == (kind.undo_name == "") or kind.is_series
    assert kind.one_shot == (kind.undo_words == "none") or kind.is_series
    assert (kind.process == "killed") <= (name in ("broker.kill", "disk.full"))
    described = kind.model_json_schema()["properties"]
    assert all(
        key == "fault" or one.get("description", one.get("$ref")) for key, one in described.items()
    )
