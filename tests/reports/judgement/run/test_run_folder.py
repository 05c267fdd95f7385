"""Errors of a run folder: one line with file, line and what is wrong.

A last line without an end is the work of a runner that died over it, and no more than that.
"""

import json
import shutil
from math import inf
from pathlib import Path

import pytest

from reports import EvidenceError
from reports.judgement import verdict
from reports.judgement.run.run_folder import MACHINE, RunFolder
from tests.recorded.logs import RECORDINGS
from tests.reports.page_run import ZERO_MS, made_up


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = tmp_path / "run"
    shutil.copytree(RECORDINGS["kafka-4.3.0"].folder, folder)
    return RunFolder(folder)


def read(run: RunFolder) -> None:
    """Read all that an analysis reads before Spark starts, and what the verdict reads after."""
    _ = (run.environment, run.settings, run.grammar, run.faults, run.never_began)
    _ = (run.level, run.brokers, run.outside)
    _ = (run.phases, run.killed_between, run.outages, run.stalls, run.failures, run.steady)


def complaint(run: RunFolder) -> str:
    with pytest.raises(EvidenceError) as caught:
        read(run)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_recorded_run_folder_is_read(run):
    read(run)
    assert not run.cut_off


@pytest.mark.parametrize(
    ("allowed", "wrong"), [(True, ()), (False, ("f1",)), ("yes", ("f1",)), (None, ("f1",))]
)
def test_a_step_is_skipped_only_where_the_plan_allows_it(tmp_path, allowed, wrong):
    made = made_up(tmp_path / "run")
    made.journal[3:3] = [{"at_ms": ZERO_MS + 20_000, "event": "skipped", "fault_id": "f1"}]
    run, judged, *_ = made.finish()
    doubt = "fault f1 was skipped, which the plan does not allow"
    assert doubt in judged["unknown_because"], "no step of its plan has that name"
    (run.path / "plan.json").write_text(
        json.dumps({"steps": [{"id": "f1", "allow_empty": allowed}, {"id": "f1.2"}]})
    )
    again = RunFolder(run.path)
    assert again.wrongly_skipped == wrong


MISSING = {
    "phase": "phase", "steady_state": "ok", "intent": "fault", "injected": "fault_id",
    "verified": "verified", "healed": "healed", "failed": "error", "skipped": "fault_id",
}  # fmt: skip
"""What an entry of each event has to have."""
INTENT = {"event": "intent", "fault_id": "f1", "fault": "broker.kill", "target": "b"}
OF_WRONG_TYPE = {
    "at_ms": {"event": "end", "at_ms": "1"},
    "event": {"event": {}},
    "fault_id": {"event": "x", "fault_id": []},
    "fault": INTENT | {"fault": 5},
    "args": INTENT | {"args": 1},
    "log_lines": {"event": "injected", "fault_id": "f1", "log_lines": "7"},
}


def without(event: str, name: str) -> str:
    """Write an entry that lacks what it has to have."""
    about = {} if name == "fault_id" else {"fault_id": "f1"}
    return json.dumps({"at_ms": 1, "event": event, **about})


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ('{"at_ms": 1, "eve', "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"at_ms": 1, "event": "x", "why": "\\ud800"}', "no JSON"),
        ("17", "no JSON object"),
        ('{"at_ms": NaN, "event": "end"}', "no JSON (JSON is malformed"),
        ('{"at_ms": 1}', "'event' is missing"),
        ('{"event": "end"}', "'at_ms' is missing"),
        ('{"at_ms": 1e300, "event": "phase", "phase": "impact"}', "'at_ms' is no time"),
        *((without(event, name), f"'{name}' is missing") for event, name in MISSING.items()),
        *((json.dumps({"at_ms": 1, **entry}), f"'{name}' is of the wrong type")
          for name, entry in OF_WRONG_TYPE.items()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("last", [False, True])
def test_a_line_that_is_no_journal_entry(line, wrong, last, run):
    journal = run.path / "journal.jsonl"
    lines = journal.read_text().splitlines()
    lines.insert(len(lines) if last else 4, line)
    journal.write_text("\n".join(lines) + "\n")
    number = len(lines) if last else 5
    assert f"{journal}:{number}: " in complaint(run)
    assert wrong in complaint(run)


def test_an_entry_is_not_long_after_the_next_one(run):
    """A time of another year would move what the journal says to where no log is."""
    journal = run.path / "journal.jsonl"
    lines = journal.read_text().splitlines()
    changed = json.loads(lines[2]) | {"at_ms": 4_102_444_800_000}
    journal.write_text("\n".join([*lines[:2], json.dumps(changed), *lines[3:]]) + "\n")
    assert f"{journal}:3: no journal entry: 'at_ms' is after the next one" in complaint(run)


def test_a_log_is_whole_if_it_is_as_long_as_when_its_broker_was_killed(run):
    log = run.path / "brokers" / "1" / "group.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("1 line\n" * 10)
    last_ms = run.journal[-1]["at_ms"]
    with (run.path / "journal.jsonl").open("a") as journal:
        for broker, size in (("1", log.stat().st_size), ("2", 7)):
            entry = {"at_ms": last_ms, "event": "cut_short", "broker": int(broker)}
            entry["log_bytes"] = size
            journal.write(json.dumps(entry) + "\n")
    assert RunFolder(run.path).cut_short == {"1"}
    log.write_text("1 line\n" * 9)
    assert RunFolder(run.path).cut_short == set()


@pytest.mark.parametrize(
    ("version", "reconnects"),
    [("2.8.1", True), ("3.2.3", True), ("3.3.2", False), ("4.3.0", False)],
)
def test_brokers_before_3_3_have_a_zookeeper(version, run, reconnects):
    run.environment["kafka_version"] = version
    assert (run.reconnects_ms > 0) == reconnects


def test_half_a_last_line_is_the_work_of_a_crash(tmp_path):
    made = made_up(tmp_path / "run")
    run, before, data, *_ = made.finish()
    assert before["verdict"] == "pass"
    journal = run.path / "journal.jsonl"
    journal.write_text(journal.read_text() + '{"at_ms": 1, "event": "int')
    after = verdict.evaluate(RunFolder(run.path), data, "4.3")
    assert (after["verdict"], after["faults"]) == ("unknown", before["faults"])
    assert "the journal ends within a line" in after["unknown_because"][0]


LAG = "replica.lag.time.max.ms"
SETTINGS = {"group.max.size": {}, LAG: "30s", "offsets.commit.timeout.ms": "0"}
WRONG_TYPES = {"coordinator": [], "kafka_version": 4.3, "seed": None, "broker_config": [],
               "broker_ids": 5, "unsure": 5, "repeat_command": 5}  # fmt: skip
NO_RELEASES = ("abc", "", "4", "4.3.0-SNAPSHOT", "4.3.0\n", "4.3.0.0", "٤.3.0", "-4.3")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        *(({name: value}, f"'{name}' is of the wrong type") for name, value in WRONG_TYPES.items()),
        *(({"broker_config": {name: value}}, "broker_config: ")
          for name, value in (*SETTINGS.items(), (LAG, None))),
        *(({"broker_config": {LAG: value}}, "no JSON (JSON is malformed")
          for value in (inf, float("nan"))),
        *(({"kafka_version": version}, f"kafka_version: {version!r} is no release; it was alt")
          for version in NO_RELEASES),
        ({"coordinator": "zookeeper"}, "no coordinator is called 'zookeeper'"),
        ({"evidence": "coordinator"}, "a run has no evidence level 'coordinator'"),
        ({"evidence": []}, "a run has no evidence level []"),
        ({"seed": 10**400}, "'seed' is too large"),
    ],
)  # fmt: skip
def test_an_environment_that_is_none(change, wrong, run):
    file = run.path / "environment.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert f"{file}: {wrong}" in complaint(run)


def test_what_is_not_certain_of_a_cluster_may_be_null(run):
    run.environment.update(cluster_id="c", unsure=None)
    assert run.outside is not None
    assert run.outside.unsure == ()


@pytest.mark.parametrize(
    ("plan", "wrong"),
    [
        ([], "no JSON object"),
        ({}, "'steps' is missing"),
        ({"steps": {"id": "f1"}}, "'steps' is of the wrong type"),
        ({"steps": ["f1"]}, "a step: no JSON object"),
        ({"steps": [{"id": "f1"}, {"id": 2}]}, "a step: 'id' is of the wrong type"),
    ],
)
def test_a_plan_that_is_none(plan, wrong, run):
    file = run.path / "plan.json"
    file.write_text(json.dumps(plan))
    assert f"{file}: {wrong}" in complaint(run)


@pytest.mark.parametrize("noted", [True, None], ids=["a sampler ran", "an older run"])
@pytest.mark.parametrize("last_ms", [None, -2_001, -2_000], ids=["no file", "short", "whole"])
def test_samples_of_the_machine_that_are_missing(tmp_path, noted, last_ms):
    """The machine may have been busy, so that what lateness explains proves nothing."""
    made = made_up(tmp_path / "run")
    made.environment |= {} if noted is None else {"machine_samples": noted}
    _, _, data, *_ = made.finish()
    teardown_ms = made.recovery_ms + 5_000
    if last_ms is not None:
        sample = {"event": "sample", "at_ms": teardown_ms + last_ms, "interval_ms": 1_000}
        (made.folder / MACHINE).write_text(json.dumps(sample) + "\n")
    run = RunFolder(made.folder)
    missing = bool(noted) and last_ms != -2_000
    since = [one.from_ms for one in run.busy]
    assert since == ([-inf if last_ms is None else teardown_ms + last_ms] if missing else [])
    judged = verdict.evaluate(run, data, "4.3")
    assert judged["verdict"] == ("unknown" if missing else "pass")
    doubt = "samples of the machine are missing up to the teardown: machine.jsonl"
    assert judged["unknown_because"] == ([doubt] if missing else [])
