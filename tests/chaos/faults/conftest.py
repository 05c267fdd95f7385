import threading
from collections.abc import Callable

import pytest

from chaos.fault_context import FaultContext
from chaos.members import Members
from scenarios.faults import Fault
from tests.chaos.conftest import Make
from tests.chaos.fake_cluster import FakeCluster
from tests.chaos.fakes import TOKEN, FakeLoad

Aim = Callable[[str], Fault]


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def context(
    experiment: Make, load: FakeLoad, fake_cluster: FakeCluster, stop: threading.Event
) -> FaultContext:
    members = Members(load.port, TOKEN)
    made = FaultContext(experiment(), fake_cluster, members, fake_cluster, stop)
    return made.of_step("f1.1")


@pytest.fixture
def aim(experiment: Make, context: FaultContext) -> Aim:
    """Makes a fault of its keys, as a file has them, for the one target that it hits."""

    def aim(keys: str) -> Fault:
        [fault] = experiment(f"{{at: 0s, {keys}}}").faults[0].aimed(context)
        return fault

    return aim
