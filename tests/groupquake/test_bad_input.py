"""Bad input: one clear line, the documented exit code, nothing left running."""

import json
import shutil
import socket
from pathlib import Path

import pytest

from tests.groupquake.conftest import Command, Done, running

RECORDED = Path(__file__).parents[1] / "recorded" / "kafka-4.3.0"


def error_line(done: Done, code: int) -> str:
    """Return the one line of a refusal."""
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    return done.err.strip().splitlines()[-1]


def test_an_unknown_command(groupquake: Command, process: Command) -> None:
    for run in (groupquake, process):
        assert "No such command 'rum'" in error_line(run("rum"), 64)


REFUSED = (
    # the options of a run, and what is said of them
    (("--set", "cluster.brokers=nine"), 64, "cluster.brokers"),
    (("--set", "cluster.config.log.dirs=/x"), 64, "log.dirs: is set by the cluster itself"),
    (("--kafka", "4.99.0"), 3, "4.99.0"),
    (("--runs", "/proc/x"), 64, "give another with --runs"),
    (("--ports", "nine"), 64, "not a list of ports"),
    (("--ports", "0"), 64, "not a list of ports"),
    (("--ports", "9092,99999"), 64, "not a list of ports"),
    (("--ports", "19092,19093"), 64, "give --ports 1 different ports"),
    (("--ports", "19092,19092"), 64, "give --ports 1 different ports"),
)


def test_bad_options_of_a_run(groupquake: Command, small: Path) -> None:
    assert "rolling-bounce" in error_line(groupquake("run", "rolling-bonce"), 64)
    for options, code, why in REFUSED:
        assert why in error_line(groupquake("run", small, *options), code)


def test_a_broken_file(groupquake: Command, small: Path) -> None:
    text = small.read_text()
    small.write_text(text.replace("count: 2, instance", "cuont: 2, instance"))
    line = error_line(groupquake("run", small), 64)
    assert f"{small}:16:" in line
    assert "did you mean 'count'?" in line
    small.write_text(text.replace("target: all, group: dynamic", "target: static, group: dynamic"))
    line = error_line(groupquake("run", small), 64)
    assert "group 'dynamic' has no static members" in line


def test_a_master_that_does_not_answer_is_found_before_the_load(
    groupquake: Command, small: Path, tmp_path: Path
) -> None:
    for problem in (
        "spark://127.0.0.1:1: Spark cannot be reached there",
        "sprak: no master of Spark",
    ):
        master = problem.rpartition(": ")[0]
        done = groupquake("run", small, "--master", master, "--runs", tmp_path / "runs")
        assert problem in error_line(done, 64)
        assert not (tmp_path / "runs").exists()


def test_no_java(groupquake: Command, small: Path, tmp_path: Path) -> None:
    for words in (("run", small), ("report", tmp_path)):
        done = groupquake(*words, env={"JAVA_HOME": str(tmp_path / "nowhere")})
        assert "Java" in error_line(done, 3)


def test_an_old_java(groupquake: Command, small: Path, tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    line = error_line(groupquake("run", small, env={"JAVA_HOME": str(tmp_path / "jdk")}), 3)
    assert "Java 11" in line
    assert "17" in line


def test_a_port_in_use(groupquake: Command, small: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = error_line(groupquake("run", small, "--ports", port), 3)
    assert f"port {port} on 127.0.0.1 is in use" in line


def test_a_release_that_cannot_be_run(groupquake: Command, small: Path, tmp_path: Path) -> None:
    """Whatever looks at a release says so at once, with those that can."""
    suite = tmp_path / "suite.yaml"
    suite.write_text("name: x\nexperiments: [demo]\non: [{kafka: 9.9.9}]\n")
    small.write_text(small.read_text().replace("brokers: 1", "version: 9.9.9"))
    known = "Kafka 9.9.9 is not supported; use 2.4-2.7, 2.8-3.2, 3.3-3.7, 3.8, 3.9 or 4.x"
    for words in (
        ("plan", "demo", "--kafka", "9.9.9"),
        ("run", "demo", "--kafka", "9.9.9"),
        ("validate", small),
        ("nightly", "--check", suite),
        ("dev", "image", "build", "--kafka", "9.9.9"),
    ):
        assert known in error_line(groupquake(*words), 64)
    fuzzed = error_line(groupquake("dev", "fuzz", "--kafka", "9.9.9"), 64)
    assert "the oracle has no rules for Kafka 9.9.9 with coordinator java" in fuzzed


def test_a_release_is_written_in_full(groupquake: Command) -> None:
    for words in (("image", "build"), ("fuzz",)):
        line = error_line(groupquake("dev", *words, "--kafka", "4.3"), 64)
        assert "'4.3' is not allowed; write a whole release, such as 4.3.0" in line


@pytest.mark.cluster
def test_a_broker_that_does_not_start(groupquake: Command, small: Path, tmp_path: Path) -> None:
    done = groupquake("run", small, "--set", "cluster.config.num.io.threads=nonsense")
    assert "nonsense" in error_line(done, 3)
    assert running(str(tmp_path)) == []


@pytest.mark.cluster
def test_a_steady_state_that_never_comes(groupquake: Command, small: Path, tmp_path: Path) -> None:
    text = small.read_text().replace("within: 30s", "within: 1s")
    small.write_text(text.replace("tolerance: Stable", "tolerance: CompletingRebalance"))
    line = error_line(groupquake("run", small), 3)
    assert "steady state not met" in line
    assert "not CompletingRebalance" in line
    assert running(str(tmp_path)) == []


def test_a_run_folder_that_cannot_be_read(groupquake: Command, tmp_path: Path, small: Path) -> None:
    missing = error_line(groupquake("report", tmp_path / "nowhere"), 64)
    assert "no such run folder" in missing
    assert "not the folder of a run" in error_line(groupquake("report", tmp_path), 64)
    (tmp_path / "environment.json").write_text("{")
    assert "environment.json: no JSON" in error_line(groupquake("report", tmp_path), 64)
    (tmp_path / "environment.json").write_text(json.dumps({"kafka_version": "4.3.0"}))
    assert "environment.json" in error_line(groupquake("report", tmp_path), 64)


def test_a_run_folder_with_a_piece_altered(groupquake: Command, tmp_path: Path) -> None:
    for file in ("plan.json", "journal.jsonl", "experiment.yaml"):
        run = tmp_path / file
        shutil.copytree(RECORDED, run)
        (run / file).write_text('{"event": "intent", "at_ms": 1}\n')
        assert file in error_line(groupquake("report", run), 64)


def test_nothing_but_the_folder_of_a_run_is_healed(groupquake: Command, tmp_path: Path) -> None:
    line = error_line(groupquake("heal", tmp_path), 64)
    assert f"{tmp_path}/journal.jsonl: cannot be read (No such file or directory)" in line
    assert line.endswith("; name the folder of a run")


def test_a_journal_that_cannot_be_healed_from(groupquake: Command, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"event": "phase"}\n{"event": "healed"}\n')
    line = error_line(groupquake("heal", tmp_path), 64)
    assert f"{tmp_path}/journal.jsonl:2: no journal entry: 'fault_id' is missing" in line


def test_validate(groupquake: Command, small: Path) -> None:
    done = groupquake("validate", small, "demo")
    assert done.code == 0
    assert f"{small}: valid (4 members, 3 faults)" in done.out
    schema = groupquake("validate", "--schema")
    assert json.loads(schema.out)["properties"]["workload"]
    assert error_line(groupquake("validate"), 64)


def test_the_same_seed_gives_the_same_plan(groupquake: Command) -> None:
    first, again, other = (
        groupquake("plan", "rolling-bounce", "--seed", seed, "--json").out for seed in (7, 7, 8)
    )
    assert first == again
    assert json.loads(first)["steps"] != json.loads(other)["steps"]
