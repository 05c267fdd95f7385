"""Bugs that real consumers have are planted in programs: a run names each, and nobody else."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from scenarios.setup import DUPLICATE
from tests.groupquake.conftest import run_in
from tests.planted_clients.table import FOLDER, PLANTED, TRUE, Planted, experiment

Verdict = Mapping[str, Any]


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """Run all of them at once, each in a group of its own."""
    folder = tmp_path_factory.mktemp("planted")
    file = folder / "planted.yaml"
    file.write_text(yaml.safe_dump(experiment(PLANTED), sort_keys=False))
    done = run_in(folder, "run", file, "--seed", 1, timeout_s=600)
    found = folder / "runs" / "latest" / "verdict.json"
    assert found.exists(), done.err
    return json.loads(found.read_text())


def findings(verdict: Verdict, group: str, *, certain: bool = False) -> set[tuple[str, ...]]:
    """Return who in a group is found to break which rule, and how; if need be, for certain."""
    return {
        (one["client"].removesuffix(DUPLICATE), one["rule"], one["what"])
        for one in verdict["client_findings"]
        if one["group"] == group and not (certain and "unsure" in one)
    }


def test_each_has_a_public_issue_and_a_program() -> None:
    assert len(PLANTED) == 15
    assert all("#" in one.issue and one.rule and one.words for one in PLANTED)
    assert all((FOLDER / f"{one.program}.py").exists() for one in (*PLANTED, TRUE))


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: one.program)
def test_a_planted_bug_is_named(verdict: Verdict, planted: Planted) -> None:
    found = findings(verdict, planted.group)
    sentences = [what for _, rule, what in found if rule == planted.rule]
    assert any(all(word in what for word in planted.words) for what in sentences), found
    expected = (planted.rule, *planted.also, "causes-no-rebalance")
    others = findings(verdict, planted.group, certain=True)
    assert [one for one in others if one[0] not in planted.members or one[1] not in expected] == []


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.alone
def test_the_true_clients_and_the_brokers_are_named_by_nothing(verdict: Verdict) -> None:
    assert findings(verdict, TRUE.group, certain=True) == set()
    assert [one for one in verdict["findings"] if one["proven"]] == []
    brokers, clients = verdict["headline"][0].split(" · ", 1)
    assert brokers in ("brokers: kept the protocol", "brokers: unknown")  # on a busy machine
    assert clients.startswith("your clients: broken: ")
    assert verdict["clients"]["alone"]
