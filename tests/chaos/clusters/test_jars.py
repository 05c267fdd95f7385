from pathlib import Path

import pytest

from chaos.clusters import ClusterError, jars

LIBS = (
    "kafka_2.13-4.3.0.jar",
    "kafka-clients-4.3.0.jar",
    "log4j-core-2.25.4.jar",
    "log4j-slf4j-impl-2.25.4.jar",
    "jackson-dataformat-yaml-2.21.2.jar",
    "snakeyaml-2.5.jar",
)


def unpacked(home: Path, *names: str) -> Path:
    (home / "libs").mkdir()
    for name in names:
        (home / "libs" / name).touch()
    return home


def test_an_unpacked_kafka(tmp_path: Path) -> None:
    found = jars.from_home(unpacked(tmp_path, *LIBS))
    assert found.version == "4.3.0"
    assert {jar.name for jar in found.jars} == set(LIBS)
    assert found.class_path == ":".join(str(jar) for jar in found.jars)


def test_a_folder_without_kafka(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"no kafka_2\.13 jar in .*libs; give the folder"):
        jars.from_home(tmp_path)


def test_a_client_of_another_release_is_refused(tmp_path: Path) -> None:
    mixed = [name.replace("clients-4.3.0", "clients-3.9.1") for name in LIBS]
    with pytest.raises(ClusterError, match=r"kafka-clients is 3\.9\.1 beside a broker 4\.3\.0"):
        jars.from_home(unpacked(tmp_path, *mixed))


@pytest.mark.parametrize("artifact", ["log4j-core", "snakeyaml", "jackson-dataformat-yaml"])
def test_the_observation_log_needs_its_jars(tmp_path: Path, artifact: str) -> None:
    some = [name for name in LIBS if not name.startswith(artifact)]
    with pytest.raises(ClusterError, match=f"no {artifact}, which the observation log needs"):
        jars.from_home(unpacked(tmp_path, *some))


@pytest.mark.cluster
def test_maven_gives_each_artifact_once_and_kafkas_own_choice_first() -> None:
    found = jars.from_maven("4.3.0")
    names = [jar.name for jar in found.jars]
    artifacts = [name[: name.rindex("-")] for name in names]
    assert len(artifacts) == len(set(artifacts))
    assert "kafka-clients-4.3.0.jar" in names
    assert "log4j-slf4j-impl-2.25.3.jar" in names


@pytest.mark.cluster
def test_a_release_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JGO_CACHE_DIR", str(tmp_path))
    with pytest.raises(ClusterError, match=r"kafka_2\.13:0\.0\.1: not found .* check the Kafka"):
        jars.from_maven("0.0.1")
