"""What has to hold before the first fault, and what single faults wait for."""

import threading

import pytest

from chaos.errors import ChaosError
from chaos.journal import Journal, read
from chaos.steady import Observation, await_steady
from chaos.witness import Witness
from kafka_protocol.coordinator_lines import JAVA
from scenarios import Experiment
from tests.chaos.fakes import COORDINATOR_THREAD
from tests.chaos.run import GOOD

KILL = "{fault: member.kill, target: {names: [static-3]}, at: 0s, down_for: 150ms, when: {%s}}"
LEADER = {"member": "m", "members": 4, "static_members": 4}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def test_it_is_steady_once_all_probes_hold_together(experiment, path):
    sizes, states = iter([3, 4, 4]), iter(["Stable", "PreparingRebalance", "Stable"])
    probes = {"group.members": lambda _: next(sizes), "group.state": lambda _: next(states)}
    patient = experiment().override(["steady_state.within=1m"])
    with Journal(path) as journal:
        steady = await_steady(patient, probes, journal, threading.Event())
    assert steady.ok
    assert [probe.observed for probe in steady.probes] == [4, "Stable"]
    [entry] = read(path)
    assert (entry["event"], entry["ok"]) == ("steady_state", True)
    assert entry["probes"][0] == {
        "name": "all are in",
        "probe": "group.members",
        "group": "static",
        "tolerance": 4,
        "observed": 4,
    }


def test_all_are_as_many_as_the_file_gives_the_group(experiment, path):
    sizes = iter([4, 5])
    probes = {"group.members": lambda _: next(sizes), "group.state": lambda _: "Stable"}
    grown = [
        "steady_state.within=1m",
        "steady_state.probes.0.tolerance=all",
        "workload.groups.0.members.0.count=5",
    ]
    with Journal(path) as journal:
        assert await_steady(experiment().override(grown), probes, journal, threading.Event()).ok
    assert [probe["tolerance"] for probe in read(path)[0]["probes"]] == [5, "Stable"]


def test_without_probes_in_the_file_no_group_is_left_out(experiment, path):
    sizes, states = {"static": [4, 4, 4], "mixed": [2, 3, 3]}, {"mixed": ["Stable", "Empty"]}
    probes = {
        "group.members": lambda group: sizes[group].pop(0),
        "group.state": lambda group: (states.get(group) or ["Stable"]).pop(0),
    }
    document = experiment().model_dump(mode="json", by_alias=True, exclude_none=True)
    document["steady_state"] = {"within": "1m"}
    with Journal(path) as journal:
        steady = await_steady(
            Experiment.model_validate(document), probes, journal, threading.Event()
        )
    assert steady.ok
    assert [probe.observed for probe in steady.probes] == [4, "Stable", 3, "Stable"]
    assert not sizes["mixed"], "once it lacked a member, once it was Empty"


def test_the_last_observation_is_reported_when_time_is_up(experiment, path):
    def no_state(group):
        raise ChaosError(f"the coordinator of {group} is loading")

    probes = {"group.members": lambda _: 4, "group.state": no_state}
    with Journal(path) as journal:
        steady = await_steady(experiment(), probes, journal, threading.Event())
    assert not steady.ok
    assert [str(probe) for probe in steady.probes] == [
        "all are in: group.members of static is 4",
        "it is stable: group.state of static is the coordinator of static is loading, not Stable",
    ]
    assert read(path)[0]["ok"] is False


def test_an_abort_ends_the_wait(experiment, path):
    abort = threading.Event()

    def size(_):
        abort.set()
        return 3

    probes = {"group.members": size, "group.state": lambda _: "Stable"}
    patient = experiment().override(["steady_state.within=1m"])
    with Journal(path) as journal:
        assert not await_steady(patient, probes, journal, abort).ok


def test_what_has_to_hold_of_every_load_is_part_of_it(experiment, path):
    probes = {"group.members": lambda _: 4, "group.state": lambda _: "Stable"}
    seen = iter(["none", "some"])
    patient = experiment().override(["steady_state.within=1m"])

    def also():
        return (Observation("it produces", "records", "orders", "some", next(seen)),)

    with Journal(path) as journal:
        assert await_steady(patient, probes, journal, threading.Event(), also).ok
    assert next(seen, None) is None
    assert read(path)[0]["probes"][-1]["observed"] == "some"


def write(log, name, **values):
    """Write a coordinator's line."""
    values = {"group": "static", "generation": 3, **values}
    text = JAVA.printed(name, 1, {**values, "partition": 1})
    logger = JAVA.template(name).loggers[0]
    return log.write(f"{COORDINATOR_THREAD} INFO {text} ({logger})")


def has_begun(run):
    return run.path.exists() and '"impact"' in run.path.read_text()


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


def test_a_line_says_which_state_a_group_enters(load):
    witness = Witness({1: load.log.path})
    assert witness.state("static") is None
    for name, values, state in (
        ("preparing", {"reason": "a member came"}, "PreparingRebalance"),
        ("stabilized", {"members": 4}, "CompletingRebalance"),
        ("assignment", LEADER, "Stable"),
        ("empty", {}, "Empty"),
    ):
        line = write(load.log, name, **values)
        witness.poll()
        known = witness.state("static")
        assert (known.state, known.place) == (state, f"group.log of broker 1, line {line}")


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
