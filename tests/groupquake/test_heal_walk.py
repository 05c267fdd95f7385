"""`groupquake heal` after a runner that was killed at each step of each recoverable fault."""

from pathlib import Path

import pytest

from chaos.waiting import until
from scenarios.faults import FAULTS
from tests.groupquake.conftest import running
from tests.groupquake.heal_walk import (
    BATCHES,
    IN_CONTAINERS_ALONE,
    STEPS,
    healed_twice,
    killed_run,
    left_over,
    marked,
    walk,
)

EXHAUSTIVE_IN_CONTAINERS = ("broker.stop", "broker.restart", "broker.slow-network", "disk.slow")
"""Healed as the kill, the parting and the full disk of a broker are: every step is exhaustive."""
IN_CONTAINERS = [
    pytest.param(
        batch,
        step,
        marks=pytest.mark.exhaustive if batch in EXHAUSTIVE_IN_CONTAINERS else marked(step),
    )
    for batch in BATCHES
    for step in STEPS
    if batch.startswith("broker.") or batch in IN_CONTAINERS_ALONE or step == "after-injected"
]
"""Members, the tap and disks are this machine's beside containers, too: one step shows that."""


def missing() -> set[str]:
    """The recoverable faults that no batch has."""
    walked = {
        fault.split(",")[0].removeprefix("fault: ") for of in BATCHES.values() for fault in of
    }
    series = {"group.bounce", "broker.rolling-restart"}
    return {name for name, kind in FAULTS.items() if not kind.one_shot} - walked - series


def test_every_recoverable_fault_is_walked() -> None:
    assert missing() == set()


@pytest.mark.cluster
def test_a_runner_that_is_killed_before_it_notes_what_it_broke(tmp_path: Path) -> None:
    """Nothing outlives it, and healing finds what its journal leaves open."""
    faults, step = BATCHES["members"], "before-injected"
    run = killed_run(tmp_path / "walk", "process", faults, step, 1, ())
    assert until(lambda: not running(str(tmp_path)), 30)
    assert healed_twice(run, len(faults), step, lambda: left_over(run)) == []


@pytest.mark.exhaustive
@pytest.mark.cluster
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("batch", [name for name in BATCHES if name not in IN_CONTAINERS_ALONE])
def test_every_step_on_processes(tmp_path: Path, batch: str, step: str) -> None:
    assert walk(tmp_path, "process", batch, step) == []


@pytest.mark.docker
@pytest.mark.parametrize(("batch", "step"), IN_CONTAINERS)
def test_steps_on_containers(tmp_path: Path, docker_image: str, batch: str, step: str) -> None:
    assert walk(tmp_path, "docker", batch, step) == []
