from collections.abc import Iterator

import pytest

from tests.secured import Secured


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One broker with TLS and SASL for all tests of the tap that break nothing of it."""
    with Secured(tmp_path_factory.mktemp("tapped")) as cluster:
        cluster.prepare()
        yield cluster
