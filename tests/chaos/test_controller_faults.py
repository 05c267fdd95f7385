"""Every kind of fault under the controller; what is common to them is in test_controller."""

import threading
import time

import pytest

from chaos.controller import Outcome
from chaos.errors import LoadGoneError, TargetError, UnreachableError
from chaos.journal import open_faults, read
from chaos.removal import GroupError, Removal
from tests.chaos.fakes import until
from tests.chaos.run import GOOD, Run

KILL = "{fault: broker.kill, target: {coordinator-of: static}, at: 0s, down_for: 100ms}"
LONG_STOP = "{fault: broker.stop, target: {brokers: [1, 3]}, at: 0s, down_for: 1m}"
LONG_PAUSE = "{fault: broker.pause, target: controller, at: 0s, down_for: 1m}"
REMOVE = "{fault: group.remove-members, group: static, instances: %s, at: 0s}"


def test_a_broker_fault_is_written_down_with_the_broker_that_had_the_role(run, experiment):
    run.cluster.coordinates["static"] = 3
    assert run.of(experiment(KILL)) == GOOD
    [intent] = run.entries("intent")
    assert (intent["target"], intent["group"]) == ("broker-3", "static")
    assert intent["kind"] == "recoverable"
    assert intent["args"] == {"down_for_ms": 100, "broker": 3}
    assert intent["undo"] == {"do": "start-broker", "broker": 3}
    assert run.events("f1.1") == ["intent", "injected", "healed", "verified"]
    assert run.entries("verified")[0]["verified"] is True
    assert run.cluster.calls == [("kill", 3), ("start", 3)]


def test_a_step_waits_for_a_role_that_no_broker_has(run, experiment):
    run.cluster.answers_from_call = 3
    pause = "{fault: broker.pause, target: controller, at: 0s, down_for: 10ms}"
    assert run.of(experiment(pause)) == GOOD
    assert run.cluster.calls == [("pause", 1), ("resume", 1)]


def comes_second(run, call):
    """Tell which broker coordinates only after a call, so that another fault holds one by then."""
    coordinator = run.cluster.coordinator

    def once_called(group):
        until(lambda: call in run.cluster.calls)
        return coordinator(group)

    run.cluster.coordinator = once_called


def is_waiting(run):
    return any("waits" in line for line in run.progress)


def test_an_abort_ends_the_wait_for_a_role(run, experiment):
    run.cluster.answers_from_call = 10_000
    began = time.monotonic()
    outcome = run.aborted(experiment(LONG_PAUSE), lambda: run.entries("phase"))
    assert time.monotonic() - began < 10
    assert outcome.aborted == "SIGTERM"
    assert run.cluster.calls == []


def test_an_abort_brings_every_broker_back(run, experiment):
    pause = LONG_PAUSE.replace("controller", "{brokers: [2]}")
    outcome = run.aborted(experiment(LONG_STOP, pause), lambda: len(run.entries("injected")) == 3)
    assert outcome == Outcome("SIGTERM", None, ())
    assert sorted(run.cluster.calls[3:]) == [("resume", 2), ("start", 1), ("start", 3)]
    assert run.cluster.in_sync(run.cluster.brokers[0].address) == {1, 2, 3}


def test_brokers_come_back_though_the_load_process_is_gone(run, load, experiment):
    outcome = run.meanwhile(
        experiment(LONG_STOP), lambda: len(run.entries("injected")) == 2, load.die
    )
    assert isinstance(outcome.error, LoadGoneError)
    assert outcome.unhealed == ()
    assert run.cluster.in_sync(run.cluster.brokers[0].address) == {1, 2, 3}


def test_a_broker_that_does_not_come_back_is_not_healed(run, experiment):
    run.cluster.lost.add(1)
    outcome = run.of(experiment(KILL))
    assert outcome.unhealed == ("f1.1",)
    assert "not ready after 60 s" in str(outcome.error)


def test_a_fault_waits_for_a_broker_that_another_fault_holds(run, experiment, monkeypatch):
    act, calls = run.cluster.act, run.cluster.calls

    def start_once_waited_for(verb, broker):
        if verb == "start":
            until(lambda: is_waiting(run) and (broker == 2 or ("start", 2) in calls))
        act(verb, broker)

    monkeypatch.setattr(run.cluster, "act", start_once_waited_for)
    comes_second(run, ("kill", 1))
    both = KILL.replace("{coordinator-of: static}", "{brokers: [1, 2]}")
    assert run.of(experiment(both, KILL)) == GOOD
    assert sorted(run.cluster.calls[:4]) == [("kill", 1), ("kill", 2), ("start", 1), ("start", 2)]
    assert run.cluster.calls[4:] == [("kill", 1), ("start", 1)]
    assert [entry["verified"] for entry in run.entries("verified")] == [True, True, True]
    assert run.progress.count("f2.1 broker.kill: waits: broker-1 is not back from f1.1.1") == 1


def test_a_waiting_fault_hits_the_broker_that_has_the_role_afterwards(run, experiment):
    def move():
        run.cluster.coordinates["static"] = 2
        until(lambda: len(run.cluster.calls) > 1)
        run.controller.stop()

    comes_second(run, ("kill", 1))
    long = KILL.replace("100ms", "1m").replace("{coordinator-of: static}", "{brokers: [1]}")
    run.meanwhile(experiment(long, KILL), lambda: is_waiting(run), move)
    assert run.cluster.calls[1] == ("kill", 2)


def test_an_abort_ends_the_wait_for_a_broker(run, experiment):
    comes_second(run, ("pause", 1))
    run.aborted(experiment(LONG_PAUSE, KILL), lambda: is_waiting(run))
    assert run.cluster.calls == [("pause", 1), ("resume", 1)]
    assert run.events("f2.1") == []


@pytest.fixture
def removed(load, monkeypatch):
    """What was asked to be removed; the group has two static members and answers at once."""
    asked = []

    def remove(bootstrap, group, instances, *, client_id, config):
        assert not config
        asked.append((bootstrap, group, list(instances)))
        answers = dict.fromkeys(instances, 0)
        load.log.request(client_id, "LEAVE_GROUP", group=group, removed=answers)
        return Removal(0, tuple(answers.items()))

    monkeypatch.setattr("chaos.fault_context.remove_members", remove)
    monkeypatch.setattr("chaos.fault_context.static_members", lambda *_: ("static-1", "static-2"))
    return asked


@pytest.mark.parametrize(
    ("instances", "ids"),
    [("[static-0, ghost]", ["static-0", "ghost"]), ("all", ["static-1", "static-2"])],
)
def test_a_removal_is_over_when_it_has_happened(run, removed, experiment, instances, ids):
    assert run.of(experiment(REMOVE % instances)) == GOOD
    assert removed == [(run.cluster.bootstrap, "static", ids)]
    [intent] = run.entries("intent")
    assert (intent["kind"], intent["undo"], intent["group"]) == ("one-shot", None, "static")
    assert (intent["target"], intent["args"]) == (", ".join(ids), {"instances": ids})
    assert run.events("f1.1") == ["intent", "injected", "verified"]
    assert "LEAVE_GROUP of groupquake-f1.1 answered NONE" in run.entries("verified")[0]["witness"]
    assert open_faults(read(run.path)) == ()


def test_a_group_without_static_members_and_a_refusal_are_errors(
    run, removed, experiment, monkeypatch
):
    def refuse(*_):
        raise GroupError(69, "there is no classic group static")

    monkeypatch.setattr("chaos.fault_context.static_members", lambda *_: ())
    error = run.of(experiment(REMOVE % "all")).error
    assert isinstance(error, TargetError)
    assert "group static has no static members now" in str(error)
    monkeypatch.setattr("chaos.fault_context.static_members", refuse)
    again = Run(run.load, run.cluster, run.path.with_name("again.jsonl"))
    assert str(again.of(experiment(REMOVE % "all")).error) == "there is no classic group static"
    assert removed == []


@pytest.mark.parametrize("instances", ["[static-0]", "all"])
def test_the_end_of_the_run_does_not_wait_for_an_answer_that_does_not_come(
    run, removed, experiment, monkeypatch, instances
):
    monkeypatch.setattr("chaos.fault_context.ENDED_ANSWER_S", 0.1)
    asked, over = threading.Event(), threading.Event()

    def hang(*_, **__):
        asked.set()
        over.wait(60)
        return ("static-1",)

    what = "static_members" if instances == "all" else "remove_members"
    monkeypatch.setattr(f"chaos.fault_context.{what}", hang)
    try:
        outcome = run.aborted(experiment(REMOVE % instances), asked.is_set)
    finally:
        over.set()
    assert (outcome.aborted, outcome.unhealed) == ("SIGTERM", ())
    assert isinstance(outcome.error, UnreachableError)


BECOMES = (
    "{fault: group.bounce, target: all, group: mixed, at: 0s, down_for: 150ms, every: 1ms,"
    ' becomes: {instance_id: "app-{n}-thread-1"}}'
)


def test_a_new_identity_is_numbered_by_the_position_in_the_group(run, load, experiment):
    assert run.of(experiment(BECOMES)) == GOOD
    undo = {entry["target"]: entry["undo"] for entry in run.entries("intent")}
    assert undo == {
        name: {"do": "start", "member": name, "instance_id": f"app-{n}-thread-1"}
        for n, name in enumerate(["mixed-dynamic-0", "mixed-dynamic-1", "lone"])
    }
    assert [entry["verified"] for entry in run.entries("verified")] == 3 * [True]
