"""The jars of a broker: those of Maven Central, and what an unpacked Kafka is by its own."""

import zipfile
from pathlib import Path

import pytest

from chaos.clusters import ClusterError
from chaos.clusters.jars import Build, class_path, of_home, tools_class_path

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
ACME = "4.3.0-acme.2"


def unpacked(home: Path, *names: str) -> Path:
    (home / "libs").mkdir(parents=True)
    for name in names:
        (home / "libs" / name).touch()
    return home


def test_an_unpacked_kafka_needs_the_jars_of_its_logs(tmp_path: Path) -> None:
    for version, libs, logging in (
        ("4.3.0", LIBS, ("log4j-core", "snakeyaml", "jackson-dataformat-yaml")),
        ("3.9.1", LIBS_3_9, ("slf4j-reload4j", "reload4j")),
    ):
        home = unpacked(tmp_path / version, *libs)
        assert {jar.name for jar in class_path(version, home)} == set(libs)
        for artifact in logging:
            some = [name for name in libs if not name.startswith(artifact)]
            lacking = unpacked(tmp_path / f"{version}-{artifact}", *some)
            with pytest.raises(ClusterError, match=f"no {artifact}, which the observation log ne"):
                class_path(version, lacking)


def test_what_is_no_kafka_or_a_mixture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"no kafka_2\.13 jar in .*libs; give the folder"):
        class_path("4.3.0", tmp_path)
    mixed = [name.replace("clients-4.3.0", "clients-3.9.1") for name in LIBS]
    with pytest.raises(ClusterError, match=r"kafka-clients is 3\.9\.1 beside a broker 4\.3\.0"):
        class_path("4.3.0", unpacked(tmp_path / "mixed", *mixed))


def test_a_build_is_run_as_a_release_and_known_by_version_and_commit(tmp_path: Path) -> None:
    home = unpacked(tmp_path, *(name.replace("4.3.0", ACME) for name in LIBS))
    assert len(class_path("4.3.0", home)) == len(LIBS)
    assert of_home(home) == Build(ACME, None, str(home / "libs")), "the file is no jar"
    for text, commit in (
        ("commitId=1156b2752aaa28ea\nversion=4.3.0\n", "1156b2752aaa28ea"),
        ("commitId=unknown\n", None),
        ("version=4.3.0\n", None),
    ):
        with zipfile.ZipFile(home / "libs" / f"kafka-clients-{ACME}.jar", "w") as jar:
            jar.writestr("kafka/kafka-version.properties", text)
        assert of_home(home) == Build(ACME, commit, str(home / "libs"))
    confluent = tmp_path / "confluent"
    libs = confluent / "share" / "java" / "kafka"
    libs.mkdir(parents=True)
    (libs / "kafka_2.13-8.1.0-ccs.jar").touch()
    assert of_home(confluent).version == "8.1.0-ccs"


@pytest.mark.cluster
def test_maven_gives_each_library_once_and_kafkas_own_choice_first() -> None:
    """Two share a name: Yammer's metrics-core is Kafka's, Dropwizard's is ZooKeeper's."""
    for version, binding in (
        ("4.3.0", "log4j-slf4j-impl-2.25.3.jar"),
        ("3.9.1", "slf4j-reload4j-1.7.36.jar"),
        ("2.4.1", "slf4j-reload4j-1.7.36.jar"),
    ):
        names = [jar.name for jar in class_path(version)]
        artifacts = [name[: name.rindex("-")] for name in names]
        twice = {name for name in artifacts if artifacts.count(name) > 1}
        assert twice <= {"metrics-core"}
        assert len(names) == len(set(names))
        assert {f"kafka-clients-{version}.jar", binding} <= set(names)


@pytest.mark.cluster
def test_tools_run_on_the_jars_of_their_broker_or_of_the_release_before(tmp_path: Path) -> None:
    """Maven Central has no kafka-tools 4.4.0; Java members of its brokers are of 4.3."""
    tool, *others = tools_class_path("4.3.0")
    assert tool.name == "kafka-tools-4.3.0.jar"
    assert tuple(others) == class_path("4.3.0")
    assert tools_class_path("4.4.0") == tools_class_path("4.3.0")
    home = unpacked(tmp_path, *LIBS, "kafka-tools-4.3.0.jar")
    assert tools_class_path("4.3.0", home) == class_path("4.3.0", home)


@pytest.mark.cluster
def test_a_release_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JGO_CACHE_DIR", str(tmp_path))
    with pytest.raises(ClusterError, match=r"kafka_2\.13:4\.99\.0: not found .* check the Kafka"):
        class_path("4.99.0")
