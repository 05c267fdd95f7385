"""What an unpacked Kafka is, by the names of its jars."""

import zipfile
from pathlib import Path

import pytest

from chaos.clusters import ClusterError
from chaos.clusters.builds import of_home
from chaos.clusters.jars import from_home
from tests.chaos.clusters.test_jars import LIBS, unpacked


def clients_jar(libs: Path, version: str, text: str) -> None:
    with zipfile.ZipFile(libs / f"kafka-clients-{version}.jar", "w") as jar:
        jar.writestr("kafka/kafka-version.properties", text)


def of_acme(home: Path) -> Path:
    return unpacked(home, *(name.replace("4.3.0", "4.3.0-acme.2") for name in LIBS))


def test_a_build_has_a_version_and_a_commit(tmp_path: Path) -> None:
    home = of_acme(tmp_path)
    clients_jar(home / "libs", "4.3.0-acme.2", "commitId=1156b2752aaa28ea\nversion=4.3.0\n")
    build = of_home(home)
    assert (build.version, build.commit) == ("4.3.0-acme.2", "1156b2752aaa28ea")
    assert build.place == str(home / "libs")


@pytest.mark.parametrize("text", ["", "commitId=unknown\n", "version=4.3.0\n"])
def test_a_build_may_not_tell_its_commit(tmp_path: Path, text: str) -> None:
    home = of_acme(tmp_path)
    assert of_home(home).commit is None, "the file is no jar"
    clients_jar(home / "libs", "4.3.0-acme.2", text)
    assert of_home(home).commit is None


def test_the_layout_of_the_confluent_platform(tmp_path: Path) -> None:
    libs = tmp_path / "share" / "java" / "kafka"
    libs.mkdir(parents=True)
    (libs / "kafka_2.13-8.1.0-ccs.jar").touch()
    assert of_home(tmp_path).version == "8.1.0-ccs"


def test_a_folder_without_kafka(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"no kafka_2\.13 jar in .*libs; give the folder"):
        of_home(tmp_path)


def test_a_build_is_run_as_a_release(tmp_path: Path) -> None:
    home = of_acme(tmp_path)
    assert from_home(home, "4.3.0").version == "4.3.0-acme.2"
    with pytest.raises(ClusterError, match="write a whole release"):
        from_home(home)
