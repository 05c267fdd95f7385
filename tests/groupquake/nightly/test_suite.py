from pathlib import Path

import pytest

from groupquake.nightly.suite import find, jobs, load_suite
from scenarios import ScenarioError, named, names
from tests.groupquake.conftest import Command
from tests.groupquake.nightly.conftest import Write


def error_lines(file: Path) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_suite(file)
    return str(caught.value).splitlines()


def test_the_suite_that_comes_with_groupquake_covers_all_that_real_brokers_can_show() -> None:
    suite = load_suite(find("nightly"))
    shipped = {name for name in names() if named(name).never_shipped is None}
    apart = {"given-up-with-batch": "it needs Kafka 4", "by-hand": "somebody has to break it"}
    assert {*suite.experiments} == shipped - apart.keys()
    assert [str(platform) for platform in suite.on] == ["4.3.0 java", "3.9.1 scala", "3.9.1 java"]


def test_a_night_is_every_experiment_on_every_platform_with_every_seed(
    experiment: Write, tmp_path: Path
) -> None:
    mine = experiment("mine")
    file = tmp_path / "suite.yaml"
    file.write_text("""
name: all
experiments: [demo, ./mine.yaml]
on:
  - {kafka: 4.3.0}
  - {kafka: 3.9.1, coordinator: java, cluster: docker}
seeds: [1, 2]
set: {phases.recovery: 9s, cluster.config.auto.create.topics.enable: true}
max_duration: 2h
""")
    suite = load_suite(file)
    planned = jobs(suite, tmp_path, 7)
    assert suite.max_duration_ms == 2 * 3600 * 1000
    assert len(planned) == 8
    assert {job.experiment for job in planned} == {"demo", "mine"}
    assert planned[0].arguments() == [
        *("run", "demo", "--kafka=4.3.0", "--seed=1", "--set=phases.recovery=9s"),
        "--set=cluster.config.auto.create.topics.enable=true",
    ]
    assert planned[-1].arguments()[:6] == [
        *("run", str(mine), "--kafka=3.9.1", "--seed=2", "--coordinator=java", "--cluster=docker")
    ]


def test_without_seeds_all_runs_of_a_night_share_the_one_that_was_drawn(
    experiment: Write, suite: Write, tmp_path: Path
) -> None:
    experiment()
    file = suite("tiny", on="{kafka: 4.3.0}, {kafka: 3.9.1}", more="")
    assert [job.seed for job in jobs(load_suite(file), tmp_path, 77)] == [77, 77]


MISTAKES = (
    (5, "sed: 1", "sed: unknown key; did you mean 'seeds'?"),
    (5, "max_duration: 2", "max_duration: 2 has no unit; write 2s for seconds or 2ms"),
    (5, "seeds: [-1]", "seeds.0: -1 is too small; write 0 or more"),
    (5, "seeds: [3, 3]", "seeds: a seed is listed twice; list it once"),
    (5, "set: {phases.impct: 5s}",
     "set.phases.impct: phases.impct: unknown key; did you mean 'impact'? (in demo)"),
    (5, "set: {phases: 1}",
     "set.phases: phases: 1 is not a mapping; write keys with values (in demo)"),
    (5, "set: {cluster.version: 3.9.1}",
     "set.cluster.version: the platform decides it; set it under on"),
    (5, "set: {cluster.coordinator: java}",
     "set.cluster.coordinator: the platform decides it; set it under on"),
    (2, "experiments: [demo, dem]",
     "experiments.1: the library has no experiment 'dem'; did you mean 'demo'?"),
    (2, "experiments: [demo, demo]", "experiments.1: 'demo' is listed twice; list it once"),
    (2, "experiments: []", "experiments: is empty; give at least one"),
    (4, "  - {kafka: 4.3.0, coordinator: scala}",
     "on.0.coordinator: Kafka 4.3.0 cannot be run with the scala group coordinator; write java"),
    (4, "  - {kafka: 2.3.1}",
     "on.0.kafka: Kafka 2.3.1 is not supported; use 2.4-2.7, 2.8-3.2, 3.3-3.7, 3.8, 3.9 or 4.x"),
    (4, "  - {kafka: 4.3.0, cluter: docker}", "on.0.cluter: unknown key; did you mean 'cluster'?"),
    (4, "  - {kafka: 4.3.0, cluster: dokcer}",
     "on.0.cluster: 'dokcer' is not known; did you mean 'docker'?"),
    (4, "  - {kafka: 4.3}",
     "on.0.kafka: 4.3 is not text; write text (quotes turn numbers and dates into text)"),
)  # fmt: skip
"""A line of a suite, which number it has, and what is said of it."""


def test_a_mistake_is_named_with_its_line_and_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    for number, line, problem in MISTAKES:
        lines = ["name: x", "experiments: [demo]", "on:", "  - {kafka: 4.3.0}", "seeds: [1]"]
        lines[number - 1] = line
        file.write_text("\n".join(lines))
        assert error_lines(file) == [f"{file}:{number}: {problem}"]


def test_the_same_platform_twice(suite: Write, experiment: Write) -> None:
    experiment()
    file = suite("tiny", on="{kafka: 4.3.0}, {kafka: 4.3.0, coordinator: java}")
    assert error_lines(file) == [f"{file}:3: on.1: 4.3.0 java is listed twice; remove one"]


def test_an_experiment_file_is_looked_for_beside_the_suite(suite: Write, tmp_path: Path) -> None:
    file = suite("missing")
    assert error_lines(file) == [
        f"{file}:2: experiments.0: {tmp_path}/missing.yaml: no such file; check the path"
    ]


def test_the_command_refuses_what_it_cannot_run(
    groupquake: Command, suite: Write, tmp_path: Path
) -> None:
    done = groupquake("nightly", "nightli")
    assert done.code == 64
    assert "there is no suite 'nightli' (a file ends in .yaml); did you mean 'nightly'?" in done.err
    done = groupquake("nightly", suite("missing"))
    assert done.code == 64
    assert "no such file" in done.err
    assert not (tmp_path / "nights").exists()


def test_check_lists_the_runs_and_begins_none(groupquake: Command, tmp_path: Path) -> None:
    done = groupquake("nightly", "nightly", "--check")
    assert done.code == 0, done.err
    assert "demo on 3.9.1 scala\n" in done.out
    assert done.out.endswith(f"valid ({3 * len(load_suite(find('nightly')).experiments)} runs)\n")
    assert not (tmp_path / "nights").exists()
