from collections.abc import Iterator

import pytest

from scenarios import named
from tests.secured import Secured

CORNERS = {
    **named("protocol-corners").cluster.config,
    "group.initial.rebalance.delay.ms": 1_500,
}
"""Of the experiment, but that a new group waits until a busy machine has sent all its joins."""


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One broker with TLS and SASL for all tests of the tap that break nothing of it."""
    with Secured(tmp_path_factory.mktemp("tapped"), **CORNERS) as cluster:
        cluster.prepare()
        yield cluster
