"""What is known of a cluster of the user's before a run: ids of its brokers, faults and hooks."""

from pathlib import Path
from typing import Any

import pytest
from click import UsageError
from pydantic import ValidationError

from chaos.clusters.factory import Place
from chaos.external.cluster import Target
from chaos.plan import Plan, make_plan
from groupquake import external
from groupquake.external import Offered, require_hooks
from scenarios import Experiment, ScenarioError, load, named
from scenarios.external import Hooks
from scenarios.faults import FAULTS
from scenarios.targets import Brokers

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


def test_a_rolling_restart_takes_each_broker_that_is_there() -> None:
    for ids in IDS:
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


def test_a_fault_names_what_the_cluster_has() -> None:
    for fault in NAMING:
        for ids in IDS:
            for node in ids:
                assert make_plan(asked(theirs(fault % node), ids), 1).steps
            choice = ", ".join(map(str, ids))
            for node in {0, 3, 101}.difference(ids):
                with pytest.raises(
                    ValidationError, match=f"no broker {node}; choose from {choice}"
                ):
                    asked(theirs(fault % node), ids)
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


def test_what_the_brokers_do_not_tell_is_assumed_and_said() -> None:
    newest, assumptions = Offered((4, 4), (4, 4)), []
    assert external._release("4.2.0", newest, assumptions) == "4.2.0"
    assert external._coordinator("4.3.0", {}, assumptions) == "java", "there is no other"
    consumer = {external.PROTOCOLS: "classic,consumer"}
    assert external._coordinator("3.9.1", consumer, assumptions) == "java"
    assert assumptions == []
    assert external._release(None, newest, assumptions) == "4.4.0"
    assert external._coordinator("3.9.1", {}, assumptions) == "scala"
    (offered, _), (kind, matters) = assumptions
    assert "4.4.0 or a later patch; --kafka tells it" in offered
    assert "scala, the default, is assumed; --coordinator tells it" in kind
    assert matters
    with pytest.raises(UsageError, match=r"Kafka 2\.3\.0 does, which is too old"):
        external._release(None, Offered((2, 3), (2, 3)), assumptions)


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
    with pytest.raises(ScenarioError, match=r"write cluster\.broker_ids"):
        make_plan(theirs(ROLLING), 1)
    ids = "cluster.broker_ids=[5, 0, 9]"
    assert sorted(hit(make_plan(theirs(ROLLING, more=(ids,)), 1))) == [0, 5, 9]


def test_ids_are_one_for_each_broker() -> None:
    for ids in ("[0, 1]", "[0, 1, 1]"):
        with pytest.raises(ScenarioError, match=r"different ids, and cluster\.brokers is 3"):
            theirs(more=(f"cluster.broker_ids={ids}",))


def test_the_run_folder_keeps_them(tmp_path: Path) -> None:
    on_it = asked(theirs(ROLLING), (1, 2, 101))
    file = tmp_path / "experiment.yaml"
    file.write_text(on_it.dump())
    assert load(file).cluster.ids == (1, 2, 101)
    assert asked(load(file), (0, 1, 2)).cluster.ids == (0, 1, 2)


KILLS = named("coordinator-failover")
WHOLE = Hooks(kill="k", stop="s", start="t", pause="p", resume="r")


def target(**hooks: Hooks) -> Target:
    return Target("their-id", "h:1", {1: ("h", 1), 2: ("h", 2)}, None, hooks)


def test_a_fault_needs_the_id_of_the_cluster() -> None:
    for given in (None, "another-id"):
        with pytest.raises(UsageError, match="give --allow-faults their-id"):
            require_hooks(KILLS, target(any=WHOLE), given)
    require_hooks(KILLS, target(any=WHOLE), "their-id")


def test_a_fault_needs_its_hook_and_the_one_that_undoes_it_for_each_broker() -> None:
    hooks = {"1": WHOLE, "2": WHOLE.model_copy(update={"kill": None, "start": None})}
    with pytest.raises(UsageError, match="needs a hook kill for broker 2"):
        require_hooks(KILLS, target(**hooks), "their-id")


BREAKING = {
    "broker.kill": "target: controller, down_for: 1s",
    "broker.stop": "target: controller, down_for: 1s",
    "broker.pause": "target: controller, down_for: 1s",
    "broker.restart": "target: controller",
    "broker.rolling-restart": "every: 10s",
    "broker.partition": "target: controller, for: 1s",
    "broker.slow-network": "target: controller, for: 1s, rate: 64kbit",
    "disk.full": "target: controller, down_for: 1s",
    "disk.slow": "target: controller, lasts: 1s",
    "clock.skew": "target: controller, by: -3s, lasts: 5s",
    "coordinator.move": "group: static",
}
"""What breaks brokers, or what is theirs; all else hits members, groups and topics of the run."""


def breaking(fault: str) -> Experiment:
    return named("demo").override([f"faults=[{{fault: {fault}, at: 1s, {BREAKING[fault]}}}]"])


def test_every_fault_of_brokers_is_in_the_table() -> None:
    theirs = {name for name, kind in FAULTS.items() if kind.hits == "broker" or kind.moves_leaders}
    assert theirs == set(BREAKING)


def test_no_fault_of_brokers_goes_unasked() -> None:
    hooks = target(any=Hooks(stop="s", start="t"))
    for fault in BREAKING:
        with pytest.raises(UsageError, match=r"--allow-faults their-id|leave it out"):
            require_hooks(breaking(fault), hooks, None)


def test_what_no_cluster_of_a_user_can_have_is_refused_before_its_id_is_asked_for() -> None:
    for fault in ("broker.partition", "broker.slow-network", "disk.full", "disk.slow",
                  "clock.skew", "coordinator.move"):  # fmt: skip
        for allowed in (None, "their-id"):
            with pytest.raises(UsageError, match=f"{fault} .*leave out --cluster external"):
                require_hooks(breaking(fault), target(any=WHOLE), allowed)


def test_a_rolling_restart_needs_the_hooks_of_each_restart() -> None:
    rolling = breaking("broker.rolling-restart")
    require_hooks(rolling, target(any=Hooks(stop="s", start="t")), "their-id")
    with pytest.raises(UsageError, match=r"broker\.rolling-restart needs a hook stop for broker 1"):
        require_hooks(rolling, target(any=Hooks(kill="k", start="t")), "their-id")


def test_an_experiment_without_faults_of_brokers_needs_nothing() -> None:
    require_hooks(named("rolling-bounce"), target(), None)
