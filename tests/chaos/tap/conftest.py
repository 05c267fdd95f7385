from collections.abc import Iterator

import pytest

from scenarios import named
from tests.secured import Secured


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One broker with TLS and SASL for all tests of the tap that break nothing of it."""
    config = named("protocol-corners").cluster.config
    with Secured(tmp_path_factory.mktemp("tapped"), **config) as cluster:
        cluster.prepare()
        yield cluster
