"""`groupquake shrink`: what it refuses, and what it makes of an experiment."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.plan import make_plan
from groupquake.commands.run_options import RunOptions
from groupquake.exits import Exit
from groupquake.nightly.night import read_verdict
from groupquake.shrink import command
from groupquake.shrink.root import of_verdict
from scenarios import Experiment, load
from tests.groupquake.conftest import Command
from tests.groupquake.shrink.test_reduction import failing, finding, verdict


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a run that is not judged."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "experiment.yaml").write_text(failing().dump())
    (folder / "plan.json").write_text(json.dumps(make_plan(failing(), 3).as_dict()))
    return folder


def put(folder: Path, content: object) -> None:
    (folder / "verdict.json").write_text(json.dumps(content))


@pytest.mark.parametrize("given", ["pass", "unknown"])
def test_a_run_that_did_not_fail_is_refused(groupquake: Command, run: Path, given: str) -> None:
    put(run, verdict(finding(), verdict=given))
    done = groupquake("shrink", run)
    assert done.code == 64
    refusal = f"Error: {run}/experiment.yaml did not fail, or by its clients alone; give"
    assert done.err.splitlines()[-1].startswith(refusal)


def test_what_cannot_be_shrunk_is_refused_in_one_line(groupquake: Command, run: Path) -> None:
    put(run, verdict(finding()))
    (run.parent / "deploy-shrunk.yaml").write_text("mine")
    for words, why in (
        ((run,), "deploy-shrunk.yaml exists; give another file with --output"),
        ((run, "--seed=4"), "the plan has seed 3; leave out --seed"),
        (("nowhere",), "the library has no experiment 'nowhere'"),
    ):
        done = groupquake("shrink", *words)
        assert done.code == 64
        assert why in done.err.splitlines()[-1]
    assert (run.parent / "deploy-shrunk.yaml").read_text() == "mine"


class Runs:
    """In the place of runs on a cluster: each gets the verdict that `judge` gives of it."""

    def __init__(self, folder: Path, judge: Callable[[Experiment], dict[str, Any]]) -> None:
        self.tried: list[Experiment] = []
        self._folder, self._judge = folder, judge

    def __call__(self, options: RunOptions) -> tuple[Exit, list[Path]]:
        self.tried.append(load(options.name))
        folder = self._folder / f"run-{len(self.tried)}"
        folder.mkdir()
        put(folder, self._judge(self.tried[-1]))
        return Exit.PASS, [folder]


def late(one: Experiment) -> dict[str, Any]:
    """Return a verdict of brokers that are later than a simulation."""
    failed = one.faults[0].lasting_ms > 6_000
    counts = {"session_expired": 1, "new_member": 1} if failed else {}
    groups = {"shop": {"by_cause": {"impact": counts}}}
    return verdict(groups=groups, verdict="fail" if failed else "pass")


@pytest.mark.parametrize("tries", [1, 2])
def test_the_next_larger_one_is_run_where_the_smallest_does_not_fail(
    groupquake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tries: int
) -> None:
    (tmp_path / "deploy.yaml").write_text(failing().dump())
    runs = Runs(tmp_path, late)
    monkeypatch.setattr(command, "repeated", runs)
    done = groupquake("shrink", tmp_path / "deploy.yaml", f"--tries={tries}")
    assert [one.faults[0].lasting_ms for one in runs.tried] == [6_000, 6_500][:tries]
    output = tmp_path / "deploy-shrunk.yaml"
    if tries == 1:
        assert (done.code, output.exists()) == (Exit.UNKNOWN, False)
        assert "no smaller one failed for the same root" in done.err
    else:
        assert done.code == Exit.PASS, done.err
        assert load(output) == runs.tried[1]


def test_a_defect_of_brokers_is_looked_for_on_the_cluster_alone(
    groupquake: Command, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding is in no forecast; here it needs the kill."""

    def kill_alone(one: Experiment) -> dict[str, Any]:
        found = any(fault.fault == "member.kill" for fault in one.faults)
        return verdict(finding() if found else finding(kind="early_line"))

    put(run, verdict(finding()))
    runs = Runs(run.parent, kill_alone)
    monkeypatch.setattr(command, "repeated", runs)
    done = groupquake("shrink", run, "--tries=7", "--output=kill.yaml")
    assert done.code == Exit.PASS, done.err
    assert "simulated: in 0 of 10 courses" in done.out
    assert len(runs.tried) == 7
    (fault,) = load(run.parent / "kill.yaml").faults
    assert fault.fault == "member.kill"


@pytest.mark.cluster
@pytest.mark.spark
def test_the_smallest_fails_on_a_cluster_for_the_same_root(
    groupquake: Command, tmp_path: Path
) -> None:
    """It is simulated, and confirmed on the oracle; a larger one is, where that takes too long."""
    (tmp_path / "deploy.yaml").write_text(failing().dump())
    done = groupquake("shrink", tmp_path / "deploy.yaml", "--cluster=oracle", "--tries=3")
    assert done.code == 0, done.err
    assert "taken from: faults: 6, of 10 s at most; members: 3; impact: 40 s" in done.out
    smallest: Experiment = load(tmp_path / "deploy-shrunk.yaml")
    assert (len(smallest.faults), len(smallest.members())) == (1, 1)
    *_, last = sorted((tmp_path / "runs").glob("2*"))
    assert load(last / "experiment.yaml") == smallest
    (root,) = of_verdict(read_verdict(last), smallest)
    assert f"root: {root}" in done.out
    assert root.commonest == {"session_expired", "new_member"}
