"""What tests of several packages need."""

import os
import shutil
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

from chaos.clusters import ClusterError, image
from chaos.clusters.process import ProcessCluster
from tests.chaos.clusters.clients import create_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

VERSION = "4.3.0"
SOON_BACK = {"broker.session.timeout.ms": 3_000, "broker.heartbeat.interval.ms": 500}
"""A killed broker can come back when the controller holds it for dead: after 9 s by default."""
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Options of a Chromium that talks to nobody but the page under test."""
PATIENCE_MS = 240_000
"""How long a page is awaited that shows what takes as long as the machine takes."""

# how long an example takes is the machine's business
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")


def pytest_configure() -> None:
    """Let processes under test hear SIGINT, though a shell starts background jobs deaf to it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


COSTS_S = {"long": 300.0, "docker": 40.0, "browser": 40.0, "cluster": 10.0, "spark": 0.3}
"""About what a test takes, by its markers; every other takes milliseconds."""
SHARING = {
    "tests/chaos/clusters/test_process.py": "three brokers",
    "tests/chaos/faults/test_real_brokers.py": "three brokers",
    "tests/loadtest/test_broker_faults.py": "three brokers",
    "tests/loadtest/test_": "one broker",
    "tests/loadtest/wire/test_real_broker.py": "one broker",
    "tests/reports/ingest/": "Spark",
    "tests/reports/many_runs/": "Spark",
    "tests/reports/test_": "Spark",
    "tests/chaos/tap/test_r": "the tap's broker",
    "tests/chaos/tap/test_tls_and_sasl.py": "the tap's broker",
    "tests/groupquake/whole_run/": "a whole run",
    "tests/groupquake/commands/test_doctor.py": "a secured broker",
    "tests/groupquake/commands/test_group.py": "a secured broker",
    "tests/groupquake/test_access.py": "a secured broker",
    "tests/groupquake/test_secured.py": "a secured broker",
    "tests/groupquake/nightly/test_night.py": "several runs",
    "tests/groupquake/test_side_by_side.py": "several runs",
}
"""What the places of files begin with whose tests share brokers or a Spark session, or whose tests
must not run at the same time: three runs at once are too many for two cores."""


def scope_of(nodeid: str) -> str:
    """Return what a worker takes as one piece: a class, a file, or the files that share."""
    place, *inner = nodeid.partition("[")[0].split("::")
    if len(inner) > 1:
        return f"{place}::{inner[0]}"
    return next((shared for start, shared in SHARING.items() if place.startswith(start)), place)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put what takes longest first where workers share the tests; order stays inside a scope."""
    if not hasattr(config, "workerinput"):
        return
    costs: Counter[str] = Counter()
    for item in items:
        marks = COSTS_S.keys() & {mark.name for mark in item.iter_markers()}
        costs[scope_of(item.nodeid)] += max((COSTS_S[mark] for mark in marks), default=0.02)
    first = {scope: number for number, (scope, _) in enumerate(costs.most_common())}
    items.sort(key=lambda item: first[scope_of(item.nodeid)])


class FromBothEnds(LoadScopeScheduling):
    """Keeps the tests of a scope on one worker: they share what they start.

    The first worker takes the longest scope that is left, and every other the shortest. So runs of
    real clusters, which mostly wait, go on beside tests that only compute. Of long tests alone
    every worker takes the longest.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node is not self.nodes[0] and self.config.option.markexpr != "long":
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FromBothEnds:
    """Share tests out by scope. (`--dist loadgroup` has no effect with pytest 9.2.)"""
    return FromBothEnds(config, log)


@pytest.fixture(autouse=True)
def _journals_of_its_own(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """No test heals what a run of another one left."""
    place = tmp_path_factory.getbasetemp() / "state" / f"{abs(hash(request.node.nodeid)):x}"
    monkeypatch.setenv("XDG_STATE_HOME", str(place))


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ProcessCluster]":
    """Three brokers a worker with a topic `orders`; every test leaves them running and in sync."""
    folder = tmp_path_factory.mktemp("brokers")
    config = {"group.initial.rebalance.delay.ms": 100, "group.min.session.timeout.ms": 300}
    with ProcessCluster(f"test-{os.getpid()}", folder, config=config | SOON_BACK) as started:
        create_topic(started, "orders")
        yield started


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """One Spark session a worker, which `analyse` finds open and leaves open."""
    from reports.ingest.spark import SparkOptions, session  # noqa: PLC0415 (most tests need none)

    log = tmp_path_factory.mktemp("spark") / "spark.log"
    with session(SparkOptions("local[2]"), 0, log) as opened:
        yield opened


@pytest.fixture(scope="session")
def docker_image() -> str:
    """The image of broker containers; without an engine, tests that use it are skipped.

    With GROUPQUAKE_DOCKER_REQUIRED=1 that is a failure: a skipped test proves nothing.
    """
    try:
        return image.build(VERSION, print)
    except ClusterError as error:
        if os.environ.get("GROUPQUAKE_DOCKER_REQUIRED") == "1":
            pytest.fail(f"containers are required here: {error}")
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser; without one, tests that use it are skipped.

    With GROUPQUAKE_BROWSER_REQUIRED=1 that is a failure.
    """
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None and os.environ.get("GROUPQUAKE_BROWSER_REQUIRED") != "1":
        pytest.skip("no chromium here; install one, or set GROUPQUAKE_BROWSER_REQUIRED=1 to fail")
    assert found is not None, "GROUPQUAKE_BROWSER_REQUIRED is set, and there is no chromium"
    from playwright.sync_api import expect  # noqa: PLC0415 (most tests need none)

    expect.set_options(timeout=PATIENCE_MS)
    return found
