from pathlib import Path

import pytest

from chaos.clusters import ClusterError
from chaos.clusters.process import ProcessCluster
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
