import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.clusters import ClusterError
from chaos.clusters.factory import end_left_over
from chaos.clusters.process import ProcessCluster
from chaos.clusters.volume import remove_all
from tests.chaos.clusters.test_jars import LIBS, unpacked

JAVA = """#!/bin/sh
case "$*" in
    -version) echo 'openjdk version "17"' ;;
    *) tr -d '\\n' < "$RECORD"; exit 1 ;;
esac
"""


def test_the_mark_is_on_disk_before_the_first_process_carries_it(
    tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(JAVA)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("RECORD", str(tmp_path / "brokers" / "processes.json"))
    home = unpacked(tmp_path, *LIBS)
    cluster = ProcessCluster(run_id, tmp_path / "brokers", kafka_home=home)
    with pytest.raises(ClusterError, match=f'cannot be formatted: .* "run_id": "{run_id}"'):
        cluster.start()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
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


def test_on_a_full_disk_the_mark_stays(tmp_path: Path, run_id: str) -> None:
    brokers = tmp_path / "brokers"
    cluster = ProcessCluster(run_id, brokers)
    cluster._write_files()
    (brokers / "processes.json.new").symlink_to("/dev/full")
    cluster._record()
    assert json.loads((brokers / "processes.json").read_text())["run_id"] == run_id
