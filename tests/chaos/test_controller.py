import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from chaos.controller import Controller, Outcome
from chaos.errors import LoadGoneError, TargetError
from chaos.journal import open_faults, read
from chaos.members import Members
from scenarios.faults.member import MemberRestart
from tests.chaos.fakes import until
from tests.chaos.run import GOOD, Run
from tests.other_thread import signal_other_thread

ONE = "{fault: member.restart, target: {names: [static-3]}, at: 10ms, down_for: 150ms}"
LONG = "{fault: member.restart, target: {names: [static-3]}, at: 0s, down_for: 1m}"
LEADER = "{fault: member.restart, target: {leader-member-of: static}, at: 0s, down_for: 150ms}"
ALL = "{fault: member.restart, target: all, group: mixed, at: 0s, down_for: 150ms}"


def test_a_restart_is_written_down_witnessed_and_healed(run, load, experiment):
    """It lasts longer than the impact phase, which waits for it."""
    assert run.of(experiment(ONE)) == GOOD
    assert [entry["event"] for entry in read(run.path)] == [
        *("phase", "intent", "injected", "healed", "verified", "phase")
    ]
    [intent] = run.entries("intent")
    del intent["at_ms"]
    assert intent == {
        "event": "intent",
        "fault_id": "f1.1",
        "fault": "member.restart",
        "kind": "recoverable",
        "cause": None,
        "target": "static-3",
        "group": "static",
        "args": {"down_for_ms": 150},
        "undo": {"do": "start", "member": "static-3"},
    }
    [verified] = run.entries("verified")
    assert verified["verified"] is True
    place = r"\(group.log of broker 1, line [0-9]+\)"
    assert re.fullmatch(
        f"no request of static-3 for [1-9][0-9 ]*[0-9]{{2}} ms after HEARTBEAT {place}, then"
        f" JOIN_GROUP answered NONE with member id static-3-id2 {place}"
        f" and SYNC_GROUP answered NONE {place}",
        verified["witness"],
    )
    assert load.order("start", "static-3") - load.order("stop", "static-3") >= 0.15
    assert load.is_up("static-3")
    what = "f1.1 member.restart static-3"
    assert run.progress == [f"{what}: injected", f"{what}: healed"]
    assert run.said_to_end == [len(read(run.path))], "once, in the recovery, after the last fault"


def test_the_intent_is_on_disk_before_the_member_is_stopped(run, load, experiment, monkeypatch):
    seen = []
    order = Members.order

    def spying(self, do, *more):
        if do == "stop":
            seen.extend(open_faults(read(run.path)))
        order(self, do, *more)

    monkeypatch.setattr(Members, "order", spying)
    run.of(experiment(ONE))
    assert [entry["undo"] for entry in seen] == [{"do": "start", "member": "static-3"}]


def test_a_bounce_takes_one_member_after_the_other_however_long_each_takes(run, load, experiment):
    fault = "{fault: group.bounce, target: all, group: static, at: 0s, down_for: 150ms, every: 1ms}"
    assert run.of(experiment(fault)) == GOOD
    assert len(load.ordered("stop")) == 4
    orders = [name for do, name, _ in load.orders if do in ("stop", "start")]
    assert orders[::2] == orders[1::2]  # stop, start, stop, start, …
    assert [entry["cause"] for entry in run.entries("intent")] == 4 * ["group.bounce"]
    assert [entry["verified"] for entry in run.entries("verified")] == 4 * [True]


def test_a_step_is_not_early(run, load, experiment):
    fault = (
        "{fault: group.bounce, target: all, group: mixed, at: 0s, down_for: 100ms, every: 200ms}"
    )
    began = time.monotonic()
    run.of(experiment(fault))
    stops = [at - began for do, _, at in load.orders if do == "stop"]
    assert stops[1] >= 0.2
    assert stops[2] >= 0.4


@pytest.fixture
def all_down(monkeypatch):
    """Let no member come back before so many are down."""

    def wait_for(members: int) -> None:
        down, verify = threading.Barrier(members, timeout=30), MemberRestart.verify

        def verify_together(self):
            down.wait()
            return verify(self)

        monkeypatch.setattr(MemberRestart, "verify", verify_together)

    return wait_for


def test_different_faults_go_on_beside_each_other(run, load, experiment, all_down):
    all_down(2)
    other = ONE.replace("static-3", "lone")
    assert run.of(experiment(ONE, other)) == GOOD
    assert load.order("stop", "lone") < load.order("start", "static-3")
    assert load.order("stop", "static-3") < load.order("start", "lone")


def test_one_step_hits_all_its_targets_at_the_same_time(run, load, experiment, all_down):
    all_down(3)
    assert run.of(experiment(ALL)) == GOOD
    assert [do for do, *_ in load.orders] == 3 * ["stop"] + 3 * ["start"]
    ids = {entry["fault_id"]: entry["target"] for entry in run.entries("intent")}
    assert ids == {"f1.1.1": "mixed-dynamic-0", "f1.1.2": "mixed-dynamic-1", "f1.1.3": "lone"}


def test_the_leader_is_looked_up_when_the_fault_fires(run, load, experiment):
    assert run.of(experiment(LEADER)) == GOOD
    assert load.ordered("stop") == ["static-0"]
    load.log.leader(load.member_id("static-2"), generation=2)
    assert Run(load, run.cluster, run.path.with_name("second.jsonl")).of(experiment(LEADER)) == GOOD
    assert load.ordered("stop") == ["static-0", "static-2"]


def test_a_selector_without_a_match_fails_the_run_unless_that_is_allowed(run, load, experiment):
    load.log.empty("static", generation=2)
    outcome = run.of(experiment(LEADER, ONE.replace("at: 10ms", "at: 1m")))
    assert isinstance(outcome.error, TargetError)
    assert "leader-member-of: static matches no member" in str(outcome.error)
    assert run.entries("failed")[0]["error"] == str(outcome.error)
    assert [entry["phase"] for entry in run.entries("phase")] == ["impact"]
    assert load.orders == []
    second = Run(load, run.cluster, run.path.with_name("second.jsonl"))
    allowed = LEADER.replace("at: 0s", "at: 0s, allow_empty: true")
    assert second.of(experiment(allowed, ONE)) == GOOD
    assert load.ordered("stop") == ["static-3"]
    assert any("leader-member-of: static matches no member" in line for line in second.progress)


@pytest.mark.parametrize("trouble", ["lost", "unassigned"])
def test_a_member_that_is_not_let_in_is_not_verified(run, load, experiment, monkeypatch, trouble):
    monkeypatch.setattr("chaos.member_evidence.CONNECTING_MS", 0)
    getattr(load, trouble).add("static-3")
    assert run.of(experiment(ONE)) == GOOD
    [verified] = run.entries("verified")
    assert verified["verified"] is False
    assert "no JOIN_GROUP and SYNC_GROUP of it answered NONE within 600 ms" in verified["witness"]
    assert run.entries("healed")[0]["healed"] is True  # it was started; the brokers said no


def test_the_phases_last_as_long_as_the_experiment_says(run, experiment):
    late = ONE.replace("at: 10ms", "at: 100ms")
    began = time.monotonic()
    assert run.of(experiment(late, impact="400ms", recovery="200ms")) == GOOD
    assert time.monotonic() - began >= 0.7
    impact, recovery = (entry["at_ms"] for entry in run.entries("phase"))
    assert recovery - impact >= 499  # 400 ms from the first fault's start


@pytest.mark.parametrize("aborted", ["SIGTERM", None])
def test_an_abort_or_stop_heals_what_is_open_and_starts_nothing_new(run, load, experiment, aborted):
    later = ONE.replace("at: 10ms", "at: 1m").replace("static-3", "static-1")
    load.lost.add("static-3")  # so that nobody sees it come back before the wait is given up
    outcome = run.meanwhile(
        experiment(LONG, later),
        lambda: run.entries("injected"),
        lambda: run.controller.abort(aborted) if aborted else run.controller.stop(),
    )
    assert outcome == Outcome(aborted, None, ())
    assert load.ordered("stop") == load.ordered("start") == ["static-3"]
    assert [entry["signal"] for entry in run.entries("aborted")] == [aborted] * bool(aborted)
    assert run.entries("healed")[0]["healed"] is True
    [verified] = run.entries("verified")
    assert (verified["verified"], "was not waited for" in verified["witness"]) == (False, True)
    assert [entry["phase"] for entry in run.entries("phase")] == ["impact"]


def test_a_stop_after_the_last_fault_ends_the_waiting_and_nothing_else(run, load, experiment):
    outcome = run.meanwhile(
        experiment(ONE, impact="1m", recovery="1m"),
        lambda: run.entries("verified"),
        lambda: run.controller.stop(),  # noqa: PLW0108 (there is none before the run)
    )
    assert outcome == GOOD
    assert run.entries("verified")[0]["verified"] is True
    assert len(run.entries("stopped")) == 1
    assert run.entries("aborted") == []


def test_an_abort_ends_a_recovery_and_one_before_the_start_ends_all(run, load, experiment):
    outcome = run.meanwhile(
        experiment(recovery="1m"),
        lambda: len(run.entries("phase")) == 2,
        lambda: run.controller.abort("SIGINT"),
    )
    assert (outcome, run.said_to_end) == (Outcome("SIGINT", None, ()), [])
    second = Run(load, run.cluster, run.path.with_name("second.jsonl"))
    with pytest.MonkeyPatch.context() as patch:
        real = Controller.run
        patch.setattr(Controller, "run", lambda self: self.abort("SIGINT") or real(self))
        assert second.of(experiment(LONG)) == Outcome("SIGINT", None, ())
    assert load.orders == []


def test_a_fault_that_cannot_be_healed_is_reported(run, load, experiment):
    load.refused.add("static-3")
    outcome = run.of(experiment(ONE))
    assert outcome.unhealed == ("f1.1",)
    assert "refused 'start static-3'" in str(outcome.error)
    [healed] = run.entries("healed")
    assert (healed["healed"], healed["how"]) == (False, str(outcome.error))
    assert [entry["fault_id"] for entry in open_faults(read(run.path))] == ["f1.1"]


def test_a_fault_that_breaks_down_is_healed_and_surfaces(run, load, experiment, monkeypatch):
    def broken(self):
        until(lambda: "lone" in load.ordered("stop"))
        raise RuntimeError("a bug in the fault")

    monkeypatch.setattr(MemberRestart, "verify", broken)
    outcome = run.of(experiment(ONE, LONG.replace("static-3", "lone")))
    assert str(outcome.error) == "a bug in the fault"
    assert outcome.unhealed == ()
    assert sorted(load.ordered("start")) == ["lone", "static-3"]
    assert "a bug in the fault" in [entry["error"] for entry in run.entries("failed")]


@pytest.mark.parametrize("faults", [[], [LONG]])
def test_the_end_of_the_load_process_ends_the_run(run, load, experiment, faults):
    outcome = run.meanwhile(
        experiment(*faults, impact="1m"),
        lambda: run.entries("injected" if faults else "phase"),
        load.die,
    )
    assert isinstance(outcome.error, LoadGoneError)
    assert outcome.unhealed == ()
    for healed in run.entries("healed"):
        assert healed["healed"] is True
        assert "the load process is gone" in healed["how"]


LOST = {"event": "worker_lost", "at_ms": 5.0, "worker": "worker-1", "members": ["static-3"]}


def test_a_fault_on_a_member_that_is_gone_with_its_worker_fails_and_the_run_goes_on(
    run, load, experiment
):
    load.gone = {"static-3"}
    rest = "{fault: member.restart, target: {names: [lone]}, at: 200ms, down_for: 150ms}"
    assert run.of(experiment(ONE, rest)) == GOOD
    [failed] = run.entries("failed")
    assert failed["fault_id"] == "f1.1"
    assert "worker-1 is gone" in failed["error"]
    [healed] = [one for one in run.entries("healed") if one["fault_id"] == "f1.1"]
    assert healed["healed"], "nothing is left broken"
    assert [one["fault_id"] for one in run.entries("verified")] == ["f2.1"]


def test_what_goes_of_the_load_by_itself_is_journalled_and_told_and_the_run_goes_on(
    run, experiment
):
    how = "exit code 1; last in members/lone.log: 'x'"
    said = {"member": "lone", "group": "alone", "error": how, "exit_code": 1}
    run.tell(**{**LOST, "worker": "worker-2", "members": []})
    run.tell(at_ms=5.0, event="error", member="lone", error='"ended"')
    controller, journal = run.controller_of(experiment(ONE))
    with journal, controller.watching():
        until(lambda: run.entries("worker_lost"))
        assert not controller.lost.is_set(), "it had no members"
        run.tell(**LOST)
        run.tell(at_ms=6.0, event="ended", kind="static", **said)
        assert controller.lost.wait(60)
        assert controller.run() == GOOD
        run.tell(at_ms=7.0, event="ended", member="static-2", group="static", error="at the end")
    empty, lost = run.entries("worker_lost")
    assert (empty["worker"], empty["members"]) == ("worker-2", [])
    assert {**lost, "worker": "worker-1", "members": ["static-3"], "seen_at_ms": 5.0} == lost
    first, last = run.entries("ended")
    assert {**first, **said, "seen_at_ms": 6.0} == first
    assert last["member"] == "static-2"
    assert controller.losses == [
        *("worker lost: worker-1, with static-3", f"lone: {how}", "static-2: at the end")
    ]
    assert set(controller.losses) <= set(run.progress)


def test_a_member_that_goes_with_its_worker_while_it_is_down_is_not_waited_for(
    run, load, experiment, monkeypatch
):
    monkeypatch.setattr(MemberRestart, "verify_healed", lambda *_: pytest.fail("it waited"))
    verify = MemberRestart.verify

    def verify_and_lose(self):
        load.gone = {"static-3"}
        return verify(self)

    monkeypatch.setattr(MemberRestart, "verify", verify_and_lose)
    assert run.of(experiment(ONE)) == GOOD
    [verified] = run.entries("verified")
    assert not verified["verified"]
    assert "the worker of the load is gone" in verified["witness"]


def test_a_missing_load_process_is_reported(run, load, experiment):
    load.die()
    assert isinstance(run.of(experiment(ONE)).error, LoadGoneError)
    assert run.controller.lost.is_set()
    assert len(run.entries("failed")) == 1
    assert run.entries("intent") == []


def test_ctrl_c_heals_at_once_though_another_thread_gets_the_signal(load, experiment, tmp_path):
    """A process of its own: its main thread waits in `run` for a fault that lasts a minute."""
    file = tmp_path / "long.yaml"
    file.write_text(experiment(LONG, impact="1m").dump())
    arguments = [str(load.port), str(load.log.path), str(file), str(tmp_path / "journal.jsonl")]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.run_controller", *arguments],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "f1.1 member.restart static-3: injected\n"
        sent = time.monotonic()
        signal_other_thread(process.pid, signal.SIGINT)
        *_, last = process.stdout.read().splitlines()
    assert time.monotonic() - sent < 50, "the fault was to last for a minute"
    assert last == "Outcome(aborted='SIGINT', error=None, unhealed=())"
    assert process.returncode == 0
    assert load.ordered("start") == ["static-3"]
