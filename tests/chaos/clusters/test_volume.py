"""The file system of a broker's data, which needs root."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from chaos.clusters.factory import end_left_over
from chaos.clusters.volume import Volume, remove_all

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


def test_a_volume_that_a_dying_process_keeps_busy_is_removed_once_it_has_ended(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "1"
    folder.mkdir()
    volume = Volume(folder)
    volume.make()
    held = str(volume.path / "held")
    script = f"held = open({held!r}, 'w'); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ends = threading.Timer(0.5, process.kill)
        ends.start()
        volume.remove()
        assert process.wait() != 0
    assert not volume.path.is_mount()
    assert [one.name for one in folder.iterdir()] == ["data"]


def test_volumes_of_a_run_that_was_killed_while_it_made_them_are_found(tmp_path: Path) -> None:
    brokers = tmp_path / "brokers"
    script = (
        "import os; from pathlib import Path; from chaos.clusters import local\n"
        "from chaos.clusters.process import ProcessCluster; make = local.Volume.make\n"
        "def killed(self): make(self); os.kill(os.getpid(), 9)\n"
        "local.Volume.make = killed\n"
        f"ProcessCluster('killed', Path({str(brokers)!r}), volumes=True)._write_files()"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False)
    try:
        assert done.returncode == -signal.SIGKILL
        assert (brokers / "1" / "data").is_mount()
        assert end_left_over(brokers, "process", "killed") == (f"mount {brokers}/1/data",)
        assert not (brokers / "1" / "data").is_mount()
    finally:
        remove_all(brokers)
