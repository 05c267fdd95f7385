"""Faults by hand, while a run goes on: injected, healed before their time, refused."""

import threading
from contextlib import contextmanager

import pytest

from chaos.errors import ChaosError, RefusedError
from chaos.journal import open_faults, read
from chaos.plan import Plan, make_plan, read_plan
from scenarios import ScenarioError
from scenarios.faults.member import MemberRestart
from tests.chaos.fakes import until
from tests.chaos.run import GOOD
from tests.chaos.test_controller import LONG
from tests.chaos.test_stored_plan import stored

MINE = {"fault": "member.restart", "target": {"names": ["static-1"]}, "down_for": "150ms"}
MINUTE = {**MINE, "down_for": "1m"}
SERIES = {
    "fault": "group.bounce",
    "target": {"names": ["static-0", "static-1"]},
    "down_for": "1m",
    "every": "150ms",
}


def in_impact(controller):
    try:
        controller.inject({"fault": "nothing"})
    except RefusedError:
        return False
    except ScenarioError:
        return True
    raise AssertionError


@contextmanager
def going_on(run, experiment, *faults, impact="1h"):
    """Inside the block a run is in its impact phase; Stop ends it after that."""
    outcomes = []
    controller, journal = run.controller_of(experiment(*faults, impact=impact))
    thread = threading.Thread(target=lambda: outcomes.append(controller.run()))
    with journal, controller.watching():
        thread.start()
        try:
            until(lambda: in_impact(controller))
            yield controller
        finally:
            controller.stop()
            thread.join()
    assert outcomes == [GOOD]


def verified(run):
    return {entry["fault_id"]: entry["verified"] for entry in run.entries("verified")}


def test_a_fault_by_hand_is_one_as_those_of_the_plan(run, load, experiment):
    with going_on(run, experiment) as controller:
        [step] = controller.inject(MINE)
        until(lambda: verified(run))
    assert (step.id, verified(run)) == ("h1", {"h1": True})
    assert run.events("h1") == ["intent", "injected", "healed", "verified"]
    assert run.entries("intent")[0]["undo"] == {"do": "start", "member": "static-1"}
    assert load.order("start", "static-1") - load.order("stop", "static-1") >= 0.15


def test_it_is_healed_before_its_time_once_its_witness_has_seen_it(run, load, experiment):
    with going_on(run, experiment) as controller:
        controller.inject(MINUTE)
        until(lambda: load.ordered("stop"))
        assert controller.heal("h1") == ("h1",)
        until(lambda: verified(run))
        with pytest.raises(RefusedError, match="h1 is not open"):
            controller.heal("h1")
    assert verified(run) == {"h1": True}, "after two heartbeat intervals, not at once"
    assert load.is_up("static-1")


def test_heal_all_heals_those_of_the_plan_too_and_ends_a_series(run, load, experiment):
    with going_on(run, experiment, LONG) as controller:
        until(lambda: run.entries("injected"))
        assert len(controller.inject(SERIES)) == 2
        until(lambda: len(run.entries("injected")) == 2)
        assert controller.heal_all() == ("f1.1", "h1.1")
        until(lambda: len(verified(run)) == 2 and controller.heal_all() == ())
        controller.inject(MINE)  # its member is free
        until(lambda: "h2" in verified(run))
    assert verified(run) == {"f1.1": True, "h1.1": True, "h2": True}


def test_one_target_of_several_is_healed_alone(run, load, experiment):
    with going_on(run, experiment) as controller:
        controller.inject({**MINUTE, "target": {"names": ["static-1", "static-2"]}})
        until(lambda: len(run.entries("injected")) == 2)
        assert controller.heal("h1.2") == ("h1.2",)
        until(lambda: verified(run))
        assert [entry["fault_id"] for entry in open_faults(read(run.path))] == ["h1.1"]
        assert controller.heal("h1") == ("h1.1",)
        until(lambda: len(verified(run)) == 2)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({**MINE, "target": {"names": ["static-3"]}}, "static-3 is not back from f1.1"),
        ({**MINE, "target": {"names": ["static-9"]}}, "target.names.0: there is no member"),
        ({**MINE, "fault": "member.kil"}, "did you mean 'member.kill'"),
        ({**MINE, "down_for": "50ms"}, "down_for: 50ms is below 2 heartbeat intervals"),
        ({**MINE, "target": {"leader-member-of": "mixed"}}, "show no leader now"),
        (
            {"fault": "net.isolate", "target": {"names": ["lone"]}, "for": "1s"},
            "net.isolate needs the tap before the brokers, .* start it with --tap",
        ),
        (
            {"fault": "disk.full", "target": "controller", "down_for": "1s"},
            "disk.full needs data of each broker on a file system of its own",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line_and_nothing_is_done(
    run, load, experiment, asked, why
):
    load.log.empty("mixed", generation=2)
    with going_on(run, experiment, LONG) as controller:
        until(lambda: run.entries("injected"))
        with pytest.raises((RefusedError, ScenarioError), match=why) as refused:
            controller.inject(asked)
    assert "\n" not in str(refused.value)
    assert {entry["fault_id"] for entry in run.entries("intent")} == {"f1.1"}


def test_nothing_is_injected_before_the_impact_phase_nor_after_it(run, load, experiment):
    controller, journal = run.controller_of(experiment(impact="1ms", recovery="1h"))
    with journal, controller.watching():
        with pytest.raises(RefusedError, match="the steady state is not met"):
            controller.inject(MINE)
        thread = threading.Thread(target=controller.run)
        thread.start()
        until(lambda: len(run.entries("phase")) == 2)
        with pytest.raises(RefusedError, match="the impact phase is over"):
            controller.inject(MINE)
        controller.stop()
        thread.join()
        with pytest.raises(RefusedError, match="the run ends"):
            controller.inject(MINE)
    assert load.orders == []


def test_the_impact_phase_waits_for_it_and_stop_heals_it(run, load, experiment):
    with going_on(run, experiment, impact="300ms") as controller:
        controller.inject({**MINE, "down_for": "600ms"})
        until(lambda: len(run.entries("phase")) == 2)
        (seen,), (_, recovery) = run.entries("verified"), run.entries("phase")
        assert seen["at_ms"] <= recovery["at_ms"]
    second = type(run)(load, run.cluster, run.path.with_name("second.jsonl"))
    with going_on(second, experiment) as controller:
        controller.inject(MINUTE)
        until(lambda: second.entries("injected"))
    assert second.entries("healed")[0]["healed"] is True


def test_one_that_breaks_down_does_not_end_the_run(run, load, experiment, monkeypatch):
    def broken(_):
        raise ChaosError("no such member there")

    with going_on(run, experiment) as controller:
        with monkeypatch.context() as patched:
            patched.setattr(MemberRestart, "inject", broken)
            controller.inject(MINE)
            until(lambda: run.entries("failed"))
        until(lambda: "h1" not in controller.heal_all())
        controller.inject(MINE)
        until(lambda: verified(run))
    assert [entry["fault_id"] for entry in run.entries("failed")] == ["h1"]
    assert verified(run) == {"h2": True}


def test_a_plan_with_steps_by_hand_is_read_again(run, experiment, tmp_path):
    one = experiment(LONG)
    with going_on(run, experiment, LONG) as controller:
        controller.inject(MINE)
        steps = controller.by_hand
    plan = make_plan(one, 1)
    whole = Plan(plan.experiment, plan.seed, (*plan.steps, *steps))
    again = read_plan(stored(whole, tmp_path / "plan.json"), one)
    assert {step.id: step.by_hand for step in again.steps} == {"f1.1": False, "h1": True}
