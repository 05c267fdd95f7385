"""Faults that wait for a condition, through the controller."""

import pytest

from chaos.witness import Witness
from kafka_protocol.coordinator_lines import JAVA
from tests.chaos.fakes import COORDINATOR_THREAD
from tests.chaos.run import GOOD

KILL = "{fault: member.kill, target: {names: [static-3]}, at: 0s, down_for: 150ms, when: {%s}}"


def write(log, name, **values):
    """Write a coordinator's line."""
    values = {"group": "static", "generation": 3, **values}
    text = JAVA.printed(name, 1, {**values, "partition": 1})
    logger = JAVA.template(name).loggers[0]
    return log.write(f"{COORDINATOR_THREAD} INFO {text} ({logger})")


def has_begun(run):
    return run.path.exists() and '"impact"' in run.path.read_text()


LEADER = {"member": "m", "members": 4, "static_members": 4}


def test_a_fault_fires_in_the_state_that_it_waits_for(run, load, experiment):
    write(load.log, "assignment", **LEADER)
    one = experiment(KILL % "group: static, state: PreparingRebalance")

    def prepare():
        assert load.orders == []
        write(load.log, "preparing", reason="a member came")

    assert run.meanwhile(one, lambda: has_begun(run), prepare) == GOOD
    assert load.ordered("kill") == ["static-3"]
    [line] = [line for line in run.progress if "static is PreparingRebalance" in line]
    assert "PreparingRebalance by group.log of broker 1, line " in line


@pytest.mark.parametrize(
    ("name", "values", "state"),
    [
        ("preparing", {"reason": "a member came"}, "PreparingRebalance"),
        ("stabilized", {"members": 4}, "CompletingRebalance"),
        ("assignment", LEADER, "Stable"),
        ("empty", {}, "Empty"),
    ],
)
def test_a_line_says_which_state_a_group_enters(witness_of, load, name, values, state):
    assert witness_of.state("static") is None
    line = write(load.log, name, **values)
    witness_of.poll()
    known = witness_of.state("static")
    assert (known.state, known.place) == (state, f"group.log of broker 1, line {line}")


@pytest.fixture
def witness_of(load):
    return Witness({1: load.log.path})


def test_a_condition_that_never_holds_is_a_fault_that_was_not_injected(run, load, experiment):
    write(load.log, "assignment", **LEADER)
    assert run.of(experiment(KILL % "group: static, state: Empty, within: 100ms")) == GOOD
    assert load.orders == []
    assert run.events("f1.1") == ["intent", "verified"]
    [verified] = run.entries("verified")
    assert verified["verified"] is False
    assert verified["witness"].startswith(
        "not injected: static is Empty was awaited for 100 ms; Stable by group.log of broker 1"
    )


def test_the_number_of_members_is_asked_for(run, load, experiment, fake_cluster):
    fake_cluster.sizes["mixed"] = 3
    assert run.of(experiment(KILL % "group: mixed, members: 3, within: 5s")) == GOOD
    assert load.ordered("kill") == ["static-3"]
    assert any("mixed has 3 members (3 by DescribeGroups)" in line for line in run.progress)


def test_a_state_without_lines_is_asked_for(run, load, experiment):
    assert run.of(experiment(KILL % "group: static, state: Stable, within: 5s")) == GOOD
    assert load.ordered("kill") == ["static-3"]


def test_a_run_that_ends_waits_for_no_condition(run, load, experiment):
    one = experiment(KILL % "group: static, state: Dead")
    run.meanwhile(one, lambda: has_begun(run), lambda: run.controller.stop())  # noqa: PLW0108
    assert (run.events("f1.1"), load.orders) == ([], [])


def test_two_faults_on_one_member_take_turns(run, load, experiment):
    kill = "{fault: member.kill, target: {names: [static-3]}, at: 0s, down_for: 200ms}"
    restart = "{fault: member.restart, target: {names: [static-3]}, at: 50ms, down_for: 200ms}"
    assert run.of(experiment(kill, restart)) == GOOD
    assert [do for do, *_ in load.orders] == ["kill", "start", "stop", "start"]
    assert [entry["verified"] for entry in run.entries("verified")] == [True, True]
    assert any("waits: static-3 is not back from f1.1" in line for line in run.progress)
