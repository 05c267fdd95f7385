"""A number of rebalances, or of owners, proves nothing where evidence passed the tap by."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.judgement import verdict
from reports.judgement.run.run_folder import RunFolder
from tests.reports.page_run import MadeUpRun, made_up

WIRE = {"evidence": "wire"}
ASSUMED = {"cluster_id": "c", "assumed": True, "unsure": ["defaults are assumed"]}


@pytest.fixture
def made(tmp_path: Path) -> MadeUpRun:
    """A run in which there are too few rebalances of the group `dynamic`."""
    made = made_up(tmp_path / "run")
    del made.comparison[6:]
    return made


def judged(
    made: MadeUpRun, environment: Mapping[str, Any], bound: Mapping[str, int], kip_848: list[str]
) -> dict[str, Any]:
    if "cluster_id" in environment:
        made.starts = dict.fromkeys(made.starts, 0)  # its brokers ran before
    _, _, data, *_ = made.finish()
    (made.folder / "environment.json").write_text(json.dumps({**made.environment, **environment}))
    data = replace(data, bound={"dynamic": dict(bound)})
    return verdict.evaluate(RunFolder(made.folder), replace(data, kip_848=kip_848), "4.3")


@pytest.mark.parametrize("environment", [{}, WIRE, ASSUMED, WIRE | {"cluster_id": "c"}])
def test_a_number_proves_a_failure_where_the_evidence_is_whole(
    environment: Mapping[str, Any], made: MadeUpRun
) -> None:
    bound = {"unseen_member": 0, "new_member_id": 3}
    assert judged(made, environment, bound, [])["verdict"] == "fail"


@pytest.mark.parametrize(
    ("environment", "bound", "kip_848"),
    [
        (WIRE, {"unseen_member": 1}, []),
        (WIRE, {"unseen_takeover": 1}, []),
        (WIRE, {"census": 1}, []),
        (WIRE | ASSUMED, {}, []),
        ({}, {}, ["dynamic"]),
    ],
)
def test_a_number_proves_nothing_where_some_of_it_is_in_no_evidence(
    environment: Mapping[str, Any], bound: Mapping[str, int], kip_848: list[str], made: MadeUpRun
) -> None:
    result = judged(made, environment, bound, kip_848)
    assert result["expectations_unmet"]
    assert result["verdict"] == "unknown"
    assert result["unknown_because"] or "census" in bound, "findings come with a census"


def test_other_groups_are_judged_as_before(made: MadeUpRun) -> None:
    made.owners = "  - {group: static, phase: impact, rebalances: 1}\n"
    assert judged(made, WIRE, {"unseen_member": 1}, [])["verdict"] == "fail"
