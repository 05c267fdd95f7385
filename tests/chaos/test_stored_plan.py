"""A stored plan: what was printed is read again, what is no plan of the experiment is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.plan import Plan, make_plan, read_plan
from scenarios import Experiment, ScenarioError, named, names
from scenarios.faults import FAULTS

SINGLE = (
    "{fault: broker.pause, target: {brokers: [1, 3]}, at: 1s, down_for: 2s}",
    "{fault: broker.restart, target: controller, at: 1s}",
    "{fault: broker.slow-network, target: {coordinator-of: static}, at: 1s, for: 5s, rate: 1mbit}",
    "{fault: clock.skew, target: {coordinator-of: static}, at: 1s, lasts: 5s, by: -3s}",
    "{fault: disk.full, target: {partition-leader: orders/0}, at: 1s, down_for: 5s}",
    "{fault: disk.slow, target: {brokers: [2]}, at: 1s, lasts: 5s}",
    "{fault: member.unsubscribe, target: all, group: mixed, at: 1s, for: 5s}",
    (
        "{fault: net.answer-error, target: static, group: static, apis: [HEARTBEAT],"
        " error: REBALANCE_IN_PROGRESS, at: 1s, for: 5s}"
    ),
)
"""Faults that no experiment of the library has."""
ALL = "{fault: group.bounce, target: all, group: static, at: 1s, down_for: 1s, every: 5s}"
MOVE = "{fault: coordinator.move, group: static, at: 2s, when: {group: mixed, state: Stable}}"
Make = Callable[..., Experiment]


def stored(plan: Plan, file: Path, change: Callable[[Any], None] = lambda _: None) -> Path:
    content = json.loads(json.dumps(plan.as_dict(), indent=2))
    change(content)
    file.write_text(json.dumps(content, indent=2))
    return file


def test_a_stored_plan_is_the_plan_whatever_its_faults(experiment: Make, tmp_path: Path):
    seen = set()
    every = [*(named(name) for name in names()), *map(experiment, SINGLE), experiment(ALL, MOVE)]
    for one in every:
        plan = make_plan(one, 7)
        assert read_plan(stored(plan, tmp_path / "plan.json"), one) == plan, one.name
        seen |= {fault.fault for fault in one.faults}
    assert seen == FAULTS.keys()


def test_a_plan_may_be_edited(experiment: Make, tmp_path: Path):
    def later(content: Any) -> None:
        content["steps"] = content["steps"][2:]
        content["steps"][0] |= {"at_ms": 60_000, "target": {"names": ["static-0"]}}

    one = experiment(ALL)
    plan = read_plan(stored(make_plan(one, 7), tmp_path / "plan.json", later), one)
    assert [(step.id, step.at_ms) for step in plan.steps] == [("f1.4", 16_000), ("f1.3", 60_000)]
    assert plan.steps[1].what.target.names == ("static-0",)


def test_a_plan_of_before_that_names_the_group_of_a_bounce_is_the_same(
    experiment: Make, tmp_path: Path
):
    one = experiment(ALL)
    plan = make_plan(one, 7)
    older = stored(plan, tmp_path / "plan.json", changed(0, group="static"))
    assert read_plan(older, one) == plan


def changed(place: int, **values: Any) -> Callable[[Any], None]:
    return lambda content: content["steps"][place].update(values)


WRONG: dict[str, Callable[[Any], None]] = {
    "experiment: is not small; give": lambda c: c.update(experiment="other"),
    "steps.0.what.fault: 'member.kil' is not known; did you mean 'member.kill'?": changed(
        0, fault="member.kil"
    ),
    "steps.1.target.names.0: there is no member 'static-9'": changed(
        1, target={"names": ["static-9"]}
    ),
    "steps.1.id: f9.2 is no group.bounce of the experiment": changed(1, id="f9.2"),
    "steps.1.id: f1.1 is no group.bounce of the experiment, or stands twice": changed(1, id="f1.1"),
    "steps.0.id: f1.1 is no member.restart of the experiment": changed(0, cause=None),
    "steps.0.what.tagret: unknown key": changed(0, tagret="all"),
    "steps.0.what.down_for: '-5ms' is not a duration": changed(0, args={"down_for_ms": -5}),
    "steps: missing": lambda c: c.pop("steps"),
}


@pytest.mark.parametrize("why", WRONG)
def test_what_is_no_plan_of_the_experiment_is_refused(experiment: Make, tmp_path: Path, why: str):
    one = experiment(ALL)
    file = stored(make_plan(one, 7), tmp_path / "plan.json", WRONG[why])
    with pytest.raises(ScenarioError) as refused:
        read_plan(file, one)
    (line,) = refused.value.args
    assert line.startswith(f"{file}:"), line
    assert why in line
