"""`groupquake run` with a Kafka of the user's: which version it is, and whose rules judge it."""

import json
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from click import UsageError

from chaos.clusters.factory import Place
from groupquake.own_builds import resolve
from scenarios import named
from tests.chaos.clusters.test_jars import LIBS, unpacked
from tests.conftest import VERSION
from tests.groupquake.conftest import Command

ACME = "4.3.0-acme.1"


def test_a_build_without_rules_is_refused_before_it_runs(
    groupquake: Command, small: Path, tmp_path: Path
) -> None:
    for number, (version, options, message) in enumerate((
        (ACME, [], "name those to judge it by: --profile 4.3 (the nearest)"),
        ("4.5.0", [], "which is no release with rules of its own"),
        ("4.5.0-SNAPSHOT", [], "--profile 4.4 (the nearest), another release, or kip-345"),
        ("8.0.0-ccs", [], "--profile 4.0-java (the nearest)"),
        ("9.1.0", [], "--profile 4.4 (the nearest)"),
        (ACME, ["--profile=4.9"], "there is no profile '4.9'; choose one of 2.4.0, "),
        (ACME, ["--profile=3.9-scala"], "is of the scala coordinator, and the brokers run the j"),
        (ACME, ["--profile=4.3", "--kafka=4.1.0"], "and --kafka is 4.1.0; leave --kafka out"),
        ("4.3.0", ["--kafka=4.1.0"], "and --kafka is 4.1.0; leave --kafka out"),
    )):  # fmt: skip
        libs = (jar.replace("4.3.0", version) for jar in LIBS)
        home = unpacked(tmp_path / str(number), *libs)
        done = groupquake("run", small, f"--kafka-home={home}", *options)
        assert (done.code, message in done.err) == (64, True), done.err
    done = groupquake("run", small, f"--kafka-home={tmp_path}")
    assert (done.code, "--kafka-home: no kafka_2.13 jar in" in done.err) == (64, True)
    assert not (small.parent / "runs").exists()


def test_what_a_build_is_run_as_and_judged_by(tmp_path: Path) -> None:
    for number, (version, profile, release, rules, judge) in enumerate((
        ("4.3.0", None, "4.3.0", None, "release"),
        (ACME, "4.3", "4.3.0", "4.3", "release"),
        (ACME, "4.1.1", "4.3.0", "4.1", "release"),
        (ACME, "kip-345", "4.3.0", "4.3", "kip-345"),
        (ACME, "kip-345-4.2", "4.3.0", "4.2", "kip-345"),
        ("8.1.0-ccs", "4.1", "4.1.0", "4.1", "release"),
        ("0-main", "3.9-java", "3.9.0", "3.9-java", "release"),
        ("9.1.0", "4.2", "4.2.0", "4.2", "release"),
        ("9.1.0", "kip-345", "4.4.0", "4.4", "kip-345"),
    )):  # fmt: skip
        place = Place(kafka_home=unpacked(tmp_path / str(number), f"kafka_2.13-{version}.jar"))
        found = resolve(named("demo"), place, None, None, profile, print)
        assert found.experiment.cluster.version == release
        assert found.experiment.judge == judge
        assert found.environment.get("profile") == rules
        assert found.environment["build"]["version"] == version


def test_rules_may_be_named_for_a_release_too() -> None:
    found = resolve(named("demo"), Place(), None, None, "4.1", print)
    assert found.environment == {"profile": "4.1"}
    assert resolve(named("demo"), Place(), None, None, None, print).environment == {}
    promised = resolve(named("demo"), Place(), None, None, "kip-345", print)
    assert (promised.experiment.judge, promised.environment) == ("kip-345", {"profile": "4.3"})
    scala = named("demo").override(['cluster.version="3.9.1"'])
    with pytest.raises(UsageError, match="is of the java coordinator, and the brokers run the s"):
        resolve(scala, Place(), None, "scala", "4.1", print)


def is_judged_as_built(out: str, run: Path, version: str, place: str) -> None:
    """Check what is printed and written of a run; `whole_run` has one on processes."""
    environment = json.loads((run / "environment.json").read_text())
    build = environment["build"]
    assert (build["version"], build["place"]) == (version, place)
    assert (environment["kafka_version"], environment["profile"]) == (VERSION, "4.3")
    verdict = json.loads((run / "verdict.json").read_text())
    assert verdict["verdict"] == "pass"
    words = f"a build of the user's, {version}, commit {build['commit']} in {place}, judged by the"
    assert words in verdict["rules"]
    assert words in out
    assert "a build of the user&#39;s, " + version in (run / "report.html").read_text()


@pytest.fixture
def image(docker_image: str) -> Iterator[str]:
    """An image made locally: ours, with jars of another version."""
    client, name = docker.from_env(), "groupquake/kafka-acme:test"
    rename = (
        f"cd /opt/kafka/libs; for jar in *-{VERSION}.jar; do mv $jar ${{jar%-*}}-{ACME}.jar; done"
    )
    container = client.containers.create(docker_image, command=["sh", "-c", rename])
    try:
        container.start()
        assert container.wait()["StatusCode"] == 0
        config = client.images.get(docker_image).attrs["Config"]
        container.commit(*name.split(":"), conf={"Cmd": config["Cmd"]})
        yield name
    finally:
        container.remove(force=True, v=True)
        client.images.remove(name, force=True)
        client.close()


@pytest.mark.docker
@pytest.mark.spark
@pytest.mark.long
def test_an_image_is_judged_by_the_rules_that_are_named(
    image: str, groupquake: Command, small: Path, tmp_path: Path
) -> None:
    refused = groupquake("run", small, "--cluster=docker", f"--image={image}")
    assert refused.code == 64
    assert f"{image} holds Kafka {ACME}, which is no release" in refused.err
    options = ["--cluster=docker", f"--image={image}", "--profile=4.3"]
    done = groupquake("run", small, *options, "--seed=5")
    assert done.code == 0, done.err + done.out
    is_judged_as_built(done.out, tmp_path / "runs" / "latest", ACME, image)
    assert f"--seed 5 {' '.join(options)}" in done.out
