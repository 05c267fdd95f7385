"""Which faults of brokers a user has allowed on a cluster of theirs."""

import pytest
from click import UsageError

from chaos.external.cluster import Target
from groupquake.external import require_hooks
from scenarios import Experiment, named
from scenarios.external import Hooks
from scenarios.faults import KINDS

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


FAULTS = {
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
    return named("demo").override([f"faults=[{{fault: {fault}, at: 1s, {FAULTS[fault]}}}]"])


def test_every_fault_of_brokers_is_in_the_table() -> None:
    theirs = {name for name, kind in KINDS.items()
              if kind.about.hits == "broker" or kind.about.moves_leaders}  # fmt: skip
    assert theirs == set(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_no_fault_of_brokers_goes_unasked(fault: str) -> None:
    hooks = target(any=Hooks(stop="s", start="t"))
    with pytest.raises(UsageError, match=r"--allow-faults their-id|leave it out"):
        require_hooks(breaking(fault), hooks, None)


@pytest.mark.parametrize(
    "fault",
    [
        "broker.partition",
        "broker.slow-network",
        "disk.full",
        "disk.slow",
        "clock.skew",
        "coordinator.move",
    ],
)
def test_what_no_cluster_of_a_user_can_have_is_refused_before_its_id_is_asked_for(
    fault: str,
) -> None:
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
