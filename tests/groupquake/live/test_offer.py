"""What is offered to be broken by hand, and what of it is foreseen."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.by_hand import lacked, steps_by_hand
from groupquake.live.foresee import foreseen
from groupquake.live.offer import offer
from scenarios import Experiment, ScenarioError, named
from scenarios.faults import FAULTS, Fault

DEMO = named("demo")
TAPPED = named("held-and-doubled")


def offered(experiment: Experiment) -> dict[str, Any]:
    return offer(experiment, lambda fault: lacked(fault, experiment.needs, tap=None))


def every(offer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for fault in offer["faults"]:
        values = {one["name"]: one["value"] for one in fault["fields"] if one["value"] is not None}
        for place in fault["targets"]:
            yield {"fault": fault["fault"], **offer["targets"][place]["keys"], **values}


@pytest.mark.parametrize("name", ["demo", "held-and-doubled", "frozen-and-slow", "mixed-group"])
def test_all_that_is_offered_fits_the_experiment(name: str) -> None:
    experiment = named(name)
    asked = list(every(offered(experiment)))
    assert len(asked) > 100
    for one in asked:
        wider, steps = steps_by_hand(experiment, one, 1, 5_000, 3)
        assert steps[0].id in ("h1", "h1.1")
        assert wider.faults[-1].at_ms == 5_000


def test_only_what_the_run_and_its_members_can_have_is_offered() -> None:
    faults = {one["fault"]: one for one in offered(DEMO)["faults"]}
    lacking = {name for name, kind in FAULTS.items() if kind.needs}
    # members in the process of the load cannot be frozen, and no group has such configs
    assert FAULTS.keys() - faults.keys() == lacking | {"member.pause", "group.configure"}
    tapped = {one["fault"] for one in offered(TAPPED)["faults"]}
    assert {name for name in tapped if FAULTS[name].needs} == {
        name for name, kind in FAULTS.items() if kind.needs == "tap"
    }
    targets = offered(DEMO)["targets"]
    duplicated = [targets[at]["label"] for at in faults["member.duplicate-instance"]["targets"]]
    assert {"static-0", "all of static"} <= {*duplicated}
    assert not {"dynamic-dynamic-0", "leader of dynamic"} & {*duplicated}


def test_a_fault_that_the_cluster_cannot_have_is_not_offered() -> None:
    def refuses(fault: Fault) -> str:
        return "no" if fault.hits == "broker" else ""

    hits = {one["hits"] for one in offer(DEMO, refuses)["faults"]}
    assert hits == {"member", "group", "topic"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "experiment.yaml").write_text(DEMO.dump())
    (tmp_path / "environment.json").write_text(json.dumps({}))
    return tmp_path


@pytest.mark.parametrize(
    ("target", "down_for", "static", "dynamic"),
    [
        ("static-0", "5s", "no rebalance", "no rebalance"),
        ("static-0", "15s", "2 rebalances", "no rebalance"),
        ("dynamic-dynamic-0", "15s", "no rebalance", "2 rebalances"),
    ],
)
def test_a_crash_is_foreseen_by_its_session(
    folder: Path, target: str, down_for: str, static: str, dynamic: str
) -> None:
    """The session lasts 10 s; a member that is back sooner is not missed, if it is static."""
    asked = {"fault": "member.kill", "target": {"names": [target]}, "down_for": down_for}
    found = foreseen(folder, asked)
    assert found["undo"] == f"start again after {down_for[:-1]} s"
    says = found["groups"]
    assert says["static"].startswith(static)
    assert says["dynamic"].startswith(dynamic)


def test_what_is_not_foreseen_says_why(folder: Path) -> None:
    asked = {"fault": "member.kill", "target": {"names": ["static-0"]}, "down_for": "5"}
    with pytest.raises(ScenarioError, match="down_for: 5 has no unit"):
        foreseen(folder, asked)
    big = [f"workload.groups.{i}.members.0.count=251" for i in (0, 1)]
    (folder / "big").mkdir()
    (folder / "big" / "experiment.yaml").write_text(DEMO.override([*big, "expect=[]"]).dump())
    (folder / "big" / "environment.json").write_text(json.dumps({}))
    with pytest.raises(ScenarioError, match="more than 500 members"):
        foreseen(folder / "big", {**asked, "down_for": "5s"})
