"""What tests of several packages need."""

import os
import shutil
import signal
from collections import Counter
from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

from chaos.clusters import ClusterError, image

VERSION = "4.3.0"
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


def pytest_configure() -> None:
    """Let processes under test hear SIGINT, though a shell starts background jobs deaf to it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


COSTS_S = {"long": 300.0, "docker": 40.0, "browser": 40.0, "cluster": 10.0, "spark": 3.0}
"""About what a test takes, by its markers; every other takes milliseconds."""
SHARING = ("tests/chaos/clusters", "tests/loadtest", "tests/reports")
"""Folders whose tests share brokers or a Spark session across their files."""


def scope_of(nodeid: str) -> str:
    """Return what a worker takes as one piece: a class, a file, or a folder that shares."""
    place, *inner = nodeid.partition("[")[0].split("::")
    if len(inner) > 1:
        return f"{place}::{inner[0]}"
    folder = str(PurePosixPath(place).parent)
    return folder if folder in SHARING else place


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
    real clusters, which mostly wait, go on beside tests that only compute.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node is not self.nodes[0]:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FromBothEnds:
    """Share tests out by scope. (`--dist loadgroup` has no effect with pytest 9.2.)"""
    return FromBothEnds(config, log)


@pytest.fixture(scope="session")
def docker_image() -> str:
    """The image of broker containers; whoever asks for it is skipped where there is no engine.

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
    """The browser; where there is none, whoever asks for it is skipped.

    With GROUPQUAKE_BROWSER_REQUIRED=1 that is a failure.
    """
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None and os.environ.get("GROUPQUAKE_BROWSER_REQUIRED") != "1":
        pytest.skip("no chromium here; install one, or set GROUPQUAKE_BROWSER_REQUIRED=1 to fail")
    assert found is not None, "GROUPQUAKE_BROWSER_REQUIRED is set, and there is no chromium"
    return found
