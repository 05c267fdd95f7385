"""What tests of several packages need."""

import os
import shutil
import signal
from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

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


class ByFolder(LoadScopeScheduling):
    """Keeps the tests of a folder, or of a class, on one worker: they share what they start."""

    def _split_scope(self, nodeid: str) -> str:
        scope = super()._split_scope(nodeid.partition("[")[0])
        return scope if "::" in scope else str(PurePosixPath(scope).parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFolder:
    """Share tests out by folder. (`--dist loadgroup` has no effect with pytest 9.2.)"""
    return ByFolder(config, log)


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
