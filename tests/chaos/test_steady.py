import threading

import pytest

from chaos.errors import ChaosError
from chaos.journal import Journal, read
from chaos.steady import Observation, await_steady
from scenarios import Experiment


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
