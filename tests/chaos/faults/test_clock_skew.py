"""The wall clock of a broker that is set off: first of a log that a fake writes, then of a JVM."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import docker
import pytest

from chaos.cluster_view import ClusterView
from chaos.clusters import ClusterError, image
from chaos.clusters.clock import FILE, LIBRARY, Clock, Reading
from chaos.clusters.docker import DockerCluster
from chaos.clusters.image import require_library
from chaos.clusters.interface import BrokerInfo
from chaos.clusters.process import ProcessCluster
from scenarios.faults import Fault
from tests.chaos.clusters.clients import create_topic, member
from tests.chaos.faults.on_brokers import fault_of

WITHOUT = "groupquake/test:without-clock"
SKEW = "fault: clock.skew, lasts: 5s, by: %s"


class FakeClock:
    """Shows what it is set to, unless `shows` has something else; it is always off by a zone."""

    def __init__(self) -> None:
        self.shows: dict[int, int | None] = {}
        self.always_ms = 0
        self._by_ms = 0

    def set_off(self, by_ms: int) -> None:
        self._by_ms = by_ms

    def read(self) -> Reading | None:
        shown_ms = self.shows.get(self._by_ms, self._by_ms)
        if shown_ms is None:
            return None
        return Reading(self.always_ms + shown_ms - 4, self.always_ms + shown_ms + 7)


@pytest.fixture
def skewed(fake_cluster, stop: threading.Event, monkeypatch) -> tuple[Fault, FakeClock]:
    clock = FakeClock()
    monkeypatch.setattr(fake_cluster, "clock", lambda _: clock, raising=False)
    monkeypatch.setattr("scenarios.timing.CLOCK_NOTICED_S", 0.3)
    return fault_of(SKEW % "3s", 2, fake_cluster, fake_cluster, stop), clock


@pytest.mark.parametrize("zone_ms", [0, 3_600_000])
def test_a_clock_is_off_and_right_again(skewed, zone_ms: int) -> None:
    skew, clock = skewed
    clock.always_ms = zone_ms
    assert (skew.hit.undo, skew.hit.details) == ({"do": "set-clock", "broker": 2}, {"broker": 2})
    skew.inject()
    found = skew.verify()
    assert found.holds, found.evidence
    assert skew.heal() == "clock set right"
    back = skew.verify_healed()
    assert back.holds, back.evidence


@pytest.mark.parametrize("shown_ms", [0, 1_400, -3_000, 4_600, None])
def test_a_clock_that_shows_something_else_or_nothing_is_not_verified(skewed, shown_ms) -> None:
    skew, clock = skewed
    clock.shows[3_000] = shown_ms
    skew.inject()
    found = skew.verify()
    assert not found.holds
    assert ("without a line about our request" in found.evidence) == (shown_ms is None)


def test_a_clock_that_stays_off_is_not_healed(skewed) -> None:
    skew, clock = skewed
    skew.inject()
    clock.shows[0] = 3_000
    skew.heal()
    assert not skew.verify_healed().holds


def test_a_line_is_read_as_the_time_that_it_shows(tmp_path: Path, fake_cluster) -> None:
    port = fake_cluster.brokers[0].port
    info = BrokerInfo(1, port, tmp_path / "group.log", tmp_path / "server.log")
    clock = Clock(tmp_path, info.server_log, (info.host, info.port))
    clock.set_off(-3_000)
    assert (tmp_path / FILE).read_text() == "-3.000\n"
    old = "[2026-01-01 00:00:00,000] WARN [SocketServer] Unexpected error from /1 (x.Selector)\n"
    info.server_log.write_text(old)

    def write() -> None:
        """Write a line that shows a time three seconds ago."""
        at = datetime.now(UTC) - timedelta(seconds=3)
        stamp = at.strftime("%Y-%m-%d %H:%M:%S,") + f"{at.microsecond // 1000:03}"
        refused = "WARN [S id=1] Unexpected error from /1 (x.S)"
        info.server_log.write_text(f"{old}[{stamp}] INFO else (x)\n[{stamp}] {refused}\n")

    late = threading.Timer(0.1, write)
    late.start()
    read = clock.read()
    late.join()
    assert read is not None
    assert read.least_ms <= -3_000 <= read.most_ms + 1
    fake_cluster.act("kill", 1)
    assert clock.read() is None


def test_processes_have_no_clock_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="is not groupquake's to set"):
        ProcessCluster("none", tmp_path, brokers=1).clock(1)


@pytest.fixture
def engine(docker_image: str) -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.mark.docker
def test_an_image_without_the_library_is_refused_before_anything_starts(
    engine: docker.DockerClient, docker_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image that lacks it is made of ours, in which the library is hidden."""
    require_library(engine, docker_image, "4.3.0", {})
    hidden = engine.containers.create(
        docker_image, ["sh", "-c", f"rm /usr/lib/*/faketime/{LIBRARY}"], entrypoint=[], user="root"
    )
    try:
        hidden.start()
        assert hidden.wait()["StatusCode"] == 0
        hidden.commit(*WITHOUT.split(":"))
    finally:
        hidden.remove(force=True)
    try:
        with pytest.raises(ClusterError, match=f"has no {LIBRARY}, .* leave --image out"):
            require_library(engine, WITHOUT, "4.3.0", {})
        monkeypatch.setattr(image, "own_name", lambda _: WITHOUT)
        with pytest.raises(ClusterError, match=r"again with `groupquake dev image build --kafka"):
            require_library(engine, WITHOUT, "4.3.0", {})
    finally:
        engine.images.remove(WITHOUT, force=True)


@pytest.mark.docker
@pytest.mark.parametrize("by", ["3s", "-3s"])
def test_the_clock_of_a_real_broker_jumps_there_and_back(
    tmp_path: Path, docker_image: str, stop: threading.Event, by: str
) -> None:
    config = {"group.initial.rebalance.delay.ms": 0}
    with DockerCluster(
        f"clock{by}", tmp_path / "brokers", brokers=1, config=config, clocks=True
    ) as cluster:
        create_topic(cluster, "orders")
        skew = fault_of(SKEW % by, 1, cluster, ClusterView(cluster.bootstrap), stop)
        skew.inject()
        with member(cluster, "orders", "readers"):
            found = skew.verify()
            assert found.holds, found.evidence
            skew.heal()
            back = skew.verify_healed()
            assert back.holds, back.evidence
