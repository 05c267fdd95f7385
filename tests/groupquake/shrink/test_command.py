"""`groupquake shrink`: what it refuses, and what it makes of an experiment."""

import json
from pathlib import Path

import pytest

from chaos.plan import make_plan
from groupquake.nightly.night import read_verdict
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
    assert done.err.splitlines()[-1].startswith(f"Error: {run}/experiment.yaml did not fail; give")


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
