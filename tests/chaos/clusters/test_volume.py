"""The file system of a broker's data, which needs root."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from chaos.clusters.volume import Volume

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
