"""What has to hold before the first fault, and what single faults wait for."""

import itertools
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
def steady_of(experiment, tmp_path):
    """Awaits the steady state of an experiment; returns it, and what the journal has of it."""

    def await_it(probes, *changes, abort=None, also=tuple, within="1m"):
        changed = experiment().override([f"steady_state.within={within}", *changes])
        path = tmp_path / "journal.jsonl"
        with Journal(path) as journal:
            steady = await_steady(changed, probes, journal, abort or threading.Event(), also)
        [entry] = read(path)
        assert (entry["event"], entry["ok"]) == ("steady_state", steady.ok)
        return steady, entry["probes"]

    return await_it


STABLE = itertools.repeat("Stable")


def probes_of(members, states=STABLE):
    """Probes that see these numbers of members and states, one after the other."""
    return {"group.members": lambda _: next(members), "group.state": lambda _: next(states)}


def test_it_is_steady_once_all_probes_hold_together(steady_of):
    states = iter(["Stable", "PreparingRebalance", "Stable"])
    steady, [first, _] = steady_of(probes_of(iter([3, 4, 4]), states))
    assert steady.ok
    assert [probe.observed for probe in steady.probes] == [4, "Stable"]
    assert first == {
        "name": "all are in", "probe": "group.members", "group": "static",
        "tolerance": 4, "observed": 4,
    }  # fmt: skip


def test_all_are_as_many_as_the_file_gives_the_group(steady_of):
    changes = ["steady_state.probes.0.tolerance=all", "workload.groups.0.members.0.count=5"]
    steady, written = steady_of(probes_of(iter([4, 5])), *changes)
    assert steady.ok
    assert [probe["tolerance"] for probe in written] == [5, "Stable"]


def test_without_probes_in_the_file_no_group_is_left_out(experiment, tmp_path):
    sizes, states = {"static": [4, 4, 4], "mixed": [2, 3, 3]}, {"mixed": ["Stable", "Empty"]}
    probes = {
        "group.members": lambda group: sizes[group].pop(0),
        "group.state": lambda group: (states.get(group) or ["Stable"]).pop(0),
    }
    document = experiment().model_dump(mode="json", by_alias=True, exclude_none=True)
    document["steady_state"] = {"within": "1m"}
    bare = Experiment.model_validate(document)
    with Journal(tmp_path / "journal.jsonl") as journal:
        steady = await_steady(bare, probes, journal, threading.Event())
    assert [probe.observed for probe in steady.probes] == [4, "Stable", 3, "Stable"]
    assert not sizes["mixed"], "once it lacked a member, once it was Empty"


def test_the_last_observation_is_reported_when_time_is_up(steady_of):
    def no_state(group):
        raise ChaosError(f"the coordinator of {group} is loading")

    probes = {"group.members": lambda _: 4, "group.state": no_state}
    steady, _ = steady_of(probes, within="1ms")
    assert not steady.ok
    assert [str(probe) for probe in steady.probes] == [
        "all are in: group.members of static is 4",
        "it is stable: group.state of static is the coordinator of static is loading, not Stable",
    ]


def test_an_abort_ends_the_wait(steady_of):
    abort = threading.Event()
    abort.set()
    steady, _ = steady_of(probes_of(itertools.repeat(3)), abort=abort)
    assert not steady.ok


def test_what_has_to_hold_of_every_load_is_part_of_it(steady_of):
    seen = iter(["none", "some"])
    also = lambda: (Observation("it produces", "records", "orders", "some", next(seen)),)
    steady, written = steady_of(probes_of(itertools.repeat(4)), also=also)
    assert steady.ok
    assert next(seen, None) is None
    assert written[-1]["observed"] == "some"


def write(log, name, **values):
    """Write a coordinator's line."""
    values = {"group": "static", "generation": 3, **values}
    text = JAVA.printed(name, 1, {**values, "partition": 1})
    logger = JAVA.template(name).loggers[0]
    return log.write(f"{COORDINATOR_THREAD} INFO {text} ({logger})")


def test_a_fault_fires_in_the_state_that_it_waits_for(run, load, experiment):
    write(load.log, "assignment", **LEADER)
    one = experiment(KILL % "group: static, state: PreparingRebalance")

    def prepare():
        assert load.orders == []
        write(load.log, "preparing", reason="a member came")

    assert run.meanwhile(one, lambda: run.entries("phase"), prepare) == GOOD
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


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("group: mixed, members: 3", "mixed has 3 members (3 by DescribeGroups)"),
        ("group: static, state: Stable", "static is Stable (Stable by DescribeGroups)"),
    ],
    ids=["members", "state"],
)
def test_what_no_line_says_is_asked_for(run, load, experiment, condition, said):
    run.cluster.sizes["mixed"] = 3
    assert run.of(experiment(KILL % f"{condition}, within: 5s")) == GOOD
    assert load.ordered("kill") == ["static-3"]
    assert any(said in line for line in run.progress)


def test_a_run_that_ends_waits_for_no_condition(run, load, experiment):
    one = experiment(KILL % "group: static, state: Dead")
    run.meanwhile(one, lambda: run.entries("phase"), lambda: run.controller.stop())  # noqa: PLW0108
    assert (run.events("f1.1"), load.orders) == ([], [])
