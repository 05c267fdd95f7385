"""Faults on the disk of a broker: a file system of its own, on a loop device."""

import os
import threading
from pathlib import Path

import pytest

from chaos.cluster_view import ClusterView
from chaos.clusters import ClusterError, volume
from chaos.clusters.factory import end_left_over
from chaos.clusters.process import ProcessCluster
from chaos.clusters.volume import Volume
from tests.chaos.clusters.clients import create_topic, eventually, member
from tests.chaos.faults.on_brokers import fault_of

rooted = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems")


@pytest.fixture
def one(tmp_path: Path):
    """A volume of a broker; nothing is left of it afterwards."""
    folder = tmp_path / "1"
    folder.mkdir()
    made = Volume(folder)
    made.make()
    yield made
    volume.thaw_all(tmp_path)
    volume.remove_all(tmp_path)


@rooted
def test_a_volume_is_filled_and_freed(one: Volume):
    assert one.free_bytes > 100 * 1024 * 1024
    one.fill()
    assert one.free_bytes == 0
    with pytest.raises(OSError, match="No space left"):
        (one.path / "more").write_bytes(bytes(100_000))
    one.free()
    one.free()
    (one.path / "more").write_bytes(bytes(100_000))


@rooted
def test_a_frozen_volume_lets_writes_wait(one: Volume):
    one.freeze()
    one.freeze()
    thread = threading.Thread(target=lambda: (one.path / "late").write_bytes(b"x"))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    one.thaw()
    one.thaw()
    thread.join(10)
    assert (one.path / "late").read_bytes() == b"x"


@rooted
def test_what_is_left_of_a_run_is_unmounted_frozen_or_not(one: Volume, tmp_path: Path):
    one.freeze()
    assert end_left_over(tmp_path, "process", "nobody") == (f"mount {one.path}",)
    assert end_left_over(tmp_path, "process", "nobody") == ()
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


def test_without_root_there_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    cluster = ProcessCluster("none", tmp_path, brokers=1)
    with pytest.raises(ClusterError, match="has no file system of its own"):
        cluster.volume(1)
    with pytest.raises(ClusterError, match="which needs root; run as root"):
        Volume(tmp_path).make()
    assert list(tmp_path.iterdir()) == []


@rooted
@pytest.mark.cluster
def test_a_disk_is_slow_then_full_and_the_broker_comes_back(tmp_path: Path, stop: threading.Event):
    config = {"group.initial.rebalance.delay.ms": 0}
    with ProcessCluster(
        f"disk-{os.getpid()}", tmp_path / "brokers", brokers=1, config=config, volumes=True
    ) as cluster:
        create_topic(cluster, "orders")
        view = ClusterView(cluster.bootstrap)
        with member(cluster, "orders", "readers"):
            slow = fault_of("fault: disk.slow, lasts: 2s", 1, cluster, view, stop)
            slow.inject()
            eventually(lambda: slow.verify().holds, "a write that waits")
            slow.heal()
            assert slow.verify_healed().holds
            full = fault_of("fault: disk.full, down_for: 1s", 1, cluster, view, stop)
            full.inject()
            found = full.verify()
            assert found.holds, found.evidence
            assert "bytes free on its disk, a line 'No space left" in found.evidence
            full.heal()
            back = full.verify_healed()
            assert back.holds, back.evidence
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
