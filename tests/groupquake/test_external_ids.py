"""Clusters of a user's whose brokers are not 1, 2, …: ids are taken from the cluster."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from chaos.clusters.factory import Place
from chaos.errors import TargetError
from chaos.external.cluster import Target
from chaos.plan import Plan, make_plan
from groupquake import external
from groupquake.offered_release import Offered
from scenarios import Brokers, Experiment, ScenarioError, load, named
from scenarios.external import Hooks

ROLLING = "{fault: broker.rolling-restart, at: 1s, every: 10s}"
IDS = [(0, 1, 2), (1, 2, 101)]


def theirs(*faults: str, more: tuple[str, ...] = ()) -> Experiment:
    """Return an experiment for an external cluster that was not asked so far."""
    cluster = ["cluster.kind=external", "cluster.bootstrap=h:1"]
    return named("demo").override([*cluster, *more, f"faults=[{', '.join(faults)}]"])


def found(ids: tuple[int, ...]) -> external.Found:
    brokers = [(node, "h", 9092) for node in reversed(ids)]
    return external.Found("their-id", brokers, Offered((4, 3), (4, 3)), {}, None)


def asked(experiment: Experiment, ids: tuple[int, ...]) -> Experiment:
    """Return it as it runs on a cluster of these brokers."""
    return external.as_found(experiment, found(ids), "4.3.0", "java", lambda _: None)


def hit(plan: Plan) -> list[int]:
    return [node for step in plan.steps if isinstance(step.planned.target, Brokers)
            for node in step.planned.target.brokers]  # fmt: skip


@pytest.mark.parametrize("ids", IDS)
def test_a_rolling_restart_takes_each_broker_that_is_there(ids: tuple[int, ...]) -> None:
    on_it = asked(theirs(ROLLING), ids)
    orders = {tuple(hit(make_plan(on_it, seed))) for seed in range(9)}
    assert {tuple(sorted(order)) for order in orders} == {ids}
    assert len(orders) > 2
    assert make_plan(on_it, 1) == make_plan(asked(theirs(ROLLING), ids), 1)


NAMING = [
    "{fault: broker.restart, at: 1s, target: {brokers: [%d]}}",
    "{fault: net.partition, target: all, group: static, at: 1s, for: 2s, brokers: {brokers: [%d]}}",
    "{fault: coordinator.move, group: static, at: 1s, to: %d}",
]
"""Faults that name a broker."""


@pytest.mark.parametrize("fault", NAMING)
@pytest.mark.parametrize("ids", IDS)
def test_a_fault_names_what_the_cluster_has(fault: str, ids: tuple[int, ...]) -> None:
    for node in ids:
        assert make_plan(asked(theirs(fault % node), ids), 1).steps
    absent = {0, 3, 101}.difference(ids)
    choice = ", ".join(map(str, ids))
    for node in absent:
        with pytest.raises(ValidationError, match=f"no broker {node}; choose from {choice}"):
            asked(theirs(fault % node), ids)


@pytest.mark.parametrize("fault", NAMING)
def test_the_brokers_of_groupquake_begin_with_one(fault: str) -> None:
    with pytest.raises(ScenarioError, match="no broker 0; choose from 1, 2, 3"):
        named("demo").override([f"faults=[{fault % 0}]"])


def test_what_does_not_fit_is_bad_usage_and_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Client:
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(external, "connected", lambda *_: Client())
    monkeypatch.setattr(external, "require_rights", lambda *_: None)
    monkeypatch.setattr(external.Found, "of", lambda _: found((0, 1, 2)))
    chosen = (Place("external"), "4.3.0", "java", "their-id", lambda _: None)
    fault = NAMING[0] % 3
    with pytest.raises(external.UsageError) as refused:
        external.resolve(theirs(fault), *chosen)
    assert "does not fit cluster their-id" in refused.value.message
    assert "there is no broker 3; choose from 0, 1, 2" in refused.value.message
    hooks = "cluster.hooks={any: {stop: s, start: t}}"
    resolved = external.resolve(theirs(NAMING[0] % 0, more=(hooks,)), *chosen)
    assert resolved.experiment.cluster.ids == (0, 1, 2)
    assert hit(make_plan(resolved.experiment, 1)) == [0]


def test_hooks_are_asked_for_by_the_ids_of_the_cluster() -> None:
    whole = Hooks(stop="s", start="t")
    addresses = dict.fromkeys((0, 7), ("h", 1))
    rolling = asked(theirs(ROLLING), (0, 7))
    lacking: dict[str, Any] = {"7": whole}
    target = Target("their-id", "h:1", addresses, None, lacking)
    with pytest.raises(external.UsageError, match="needs a hook stop for broker 0"):
        external.require_hooks(rolling, target, "their-id")
    target = Target("their-id", "h:1", addresses, None, lacking | {"0": whole})
    external.require_hooks(rolling, target, "their-id")


def test_no_plan_is_made_of_brokers_that_are_not_known() -> None:
    with pytest.raises(TargetError, match=r"write cluster\.broker_ids"):
        make_plan(theirs(ROLLING), 1)
    ids = "cluster.broker_ids=[5, 0, 9]"
    assert sorted(hit(make_plan(theirs(ROLLING, more=(ids,)), 1))) == [0, 5, 9]


@pytest.mark.parametrize("ids", ["[0, 1]", "[0, 1, 1]"])
def test_ids_are_one_for_each_broker(ids: str) -> None:
    with pytest.raises(ScenarioError, match=r"different ids, and cluster\.brokers is 3"):
        theirs(more=(f"cluster.broker_ids={ids}",))


def test_the_run_folder_keeps_them(tmp_path: Path) -> None:
    on_it = asked(theirs(ROLLING), (1, 2, 101))
    file = tmp_path / "experiment.yaml"
    file.write_text(on_it.dump())
    assert load(file).cluster.ids == (1, 2, 101)
    assert asked(load(file), (0, 1, 2)).cluster.ids == (0, 1, 2)
