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

LIBS_3_9 = (
    "kafka_2.13-3.9.1.jar",
    "kafka-clients-3.9.1.jar",
    "slf4j-reload4j-1.7.36.jar",
    "reload4j-1.2.25.jar",
)


def unpacked(home: Path, *names: str) -> Path:
    (home / "libs").mkdir()
    for name in names:
        (home / "libs" / name).touch()
    return home


@pytest.mark.parametrize(("version", "libs"), [("4.3.0", LIBS), ("3.9.1", LIBS_3_9)])
def test_an_unpacked_kafka(tmp_path: Path, version: str, libs: tuple[str, ...]) -> None:
    found = jars.from_home(unpacked(tmp_path, *libs))
    assert found.version == version
    assert {jar.name for jar in found.jars} == set(libs)
    assert found.class_path == ":".join(str(jar) for jar in found.jars)


def test_a_folder_without_kafka(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"no kafka_2\.13 jar in .*libs; give the folder"):
        jars.from_home(tmp_path)


def test_a_client_of_another_release_is_refused(tmp_path: Path) -> None:
    mixed = [name.replace("clients-4.3.0", "clients-3.9.1") for name in LIBS]
    with pytest.raises(ClusterError, match=r"kafka-clients is 3\.9\.1 beside a broker 4\.3\.0"):
        jars.from_home(unpacked(tmp_path, *mixed))


def test_a_release_that_is_not_supported_is_refused_before_its_jars_are_judged(
    tmp_path: Path,
) -> None:
    with pytest.raises(ClusterError, match=r"Kafka 2\.3\.1 is not supported; use 2\.4-2\.7, "):
        jars.from_home(unpacked(tmp_path, "kafka_2.13-2.3.1.jar"))


@pytest.mark.parametrize(
    ("libs", "artifact"),
    [
        (LIBS, "log4j-core"),
        (LIBS, "snakeyaml"),
        (LIBS, "jackson-dataformat-yaml"),
        (LIBS_3_9, "slf4j-reload4j"),
        (LIBS_3_9, "reload4j"),
    ],
)
def test_the_observation_log_needs_its_jars(
    tmp_path: Path, libs: tuple[str, ...], artifact: str
) -> None:
    some = [name for name in libs if not name.startswith(artifact)]
    with pytest.raises(ClusterError, match=f"no {artifact}, which the observation log needs"):
        jars.from_home(unpacked(tmp_path, *some))


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("version", "binding"),
    [
        ("4.3.0", "log4j-slf4j-impl-2.25.3.jar"),
        ("3.9.1", "slf4j-reload4j-1.7.36.jar"),
        ("2.4.1", "slf4j-reload4j-1.7.36.jar"),
    ],
)
def test_maven_gives_each_library_once_and_kafkas_own_choice_first(
    version: str, binding: str
) -> None:
    """Two share a name: Yammer's metrics-core is Kafka's, Dropwizard's is ZooKeeper's."""
    found = jars.from_maven(version)
    names = [jar.name for jar in found.jars]
    artifacts = [name[: name.rindex("-")] for name in names]
    twice = {name for name in artifacts if artifacts.count(name) > 1}
    assert twice <= {"metrics-core"}
    assert len(names) == len(set(names))
    assert f"kafka-clients-{version}.jar" in names
    assert binding in names


@pytest.mark.cluster
def test_the_tools_run_on_the_jars_of_the_broker() -> None:
    tool, *others = jars.tools("4.3.0").jars
    assert tool.name == "kafka-tools-4.3.0.jar"
    assert tuple(others) == jars.from_maven("4.3.0").jars


@pytest.mark.cluster
def test_a_release_without_tools_gets_those_of_the_one_before() -> None:
    """Maven Central has no kafka-tools 4.4.0; Java members of its brokers are of 4.3."""
    assert jars.tools("4.4.0") == jars.tools("4.3.0")


def test_the_tools_of_an_unpacked_kafka_are_in_it(tmp_path: Path) -> None:
    home = unpacked(tmp_path, *LIBS, "kafka-tools-4.3.0.jar")
    assert jars.tools("4.3.0", home) == jars.from_home(home)


@pytest.mark.cluster
def test_a_release_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JGO_CACHE_DIR", str(tmp_path))
    with pytest.raises(ClusterError, match=r"kafka_2\.13:4\.99\.0: not found .* check the Kafka"):
        jars.from_maven("4.99.0")
