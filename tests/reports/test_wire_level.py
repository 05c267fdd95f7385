"""Level `wire`: real runs of which only requests and answers are left, and lies in them."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_protocol.errors import Error
from kafka_protocol.request_log import COMPLETED
from kafka_protocol.tap_lines import ENDED
from reports.judgement.doubtful import foreign_groups
from reports.judgement.group import check_rows
from reports.judgement.log.log_places import Level, log_of
from reports.judgement.log.split_rows import END_MISSING
from reports.judgement.recording import Recording
from selftest.mutants import wire_run
from selftest.mutants.evidence import KEPT, runs_in
from selftest.mutants.judging import bound, found
from tests.recorded.logs import FETCHES, HISTORIES, RECORDINGS, TAPPED
from tests.reports.conftest import Judge, Unaltered, unpacked
from tests.reports.judged_here import judged_here
from tests.reports.page_run import made_up

Tables = dict[str, list[dict[str, Any]]]
RUNS = RECORDINGS | FETCHES | HISTORIES | TAPPED
NONE = '"errorCode":0}'
SMALL_FILES = (
    "experiment.yaml", "plan.json", "journal.jsonl", "machine.jsonl", "history.jsonl",
)  # fmt: skip
KNOWN_BY_LINES_ALONE = "session_expired"
"""Sessions that end after the last request of a group leave a line, and no answer."""


def tables(recording: Recording, group: str) -> Tables:
    rows: Tables = {"observed": [], "comparison": [], "bound": []}
    for name, row in check_rows(recording.context, group, recording.rows_by_group[group]):
        rows.setdefault(name, []).append(row)
    return rows


def write_run(recording: Recording, target: Path) -> None:
    """Write the run folder that a recording would have been at level `wire`."""
    target.mkdir(parents=True, exist_ok=True)
    for name in SMALL_FILES:
        if (recording.folder / name).is_file():
            shutil.copyfile(recording.folder / name, target / name)
    environment = recording.environment | {"evidence": Level.WIRE}
    (target / "environment.json").write_text(json.dumps(environment, indent=2))
    for broker, texts in wire_run.on_wire(recording.lines, recording.run.brokers).items():
        log = target / log_of(broker, Level.WIRE.folder)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("".join(f"{text}\n" for text in texts))


def on_wire(recording: Recording, folder: Path) -> Recording:
    write_run(recording, folder)
    return Recording(folder)


@pytest.fixture(scope="module", params=RUNS)
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Recording, Recording]:
    """Return a recording, and what the tap saw of it, or would have seen."""
    recording, folder = RUNS[request.param], tmp_path_factory.mktemp("wire") / "run"
    if request.param not in TAPPED:
        return recording, on_wire(recording, folder)
    environment = recording.environment | {"evidence": Level.WIRE}
    (unpacked(recording, folder) / "environment.json").write_text(json.dumps(environment))
    return recording, Recording(folder)


def test_nothing_is_wrong_with_real_runs(both: tuple[Recording, Recording]) -> None:
    _, wire = both
    assert wire.gaps == []
    assert [one for group in wire.groups for one in found(wire, group)] == []


def test_the_wire_tells_the_same_rebalances_as_the_logs(both: tuple[Recording, Recording]) -> None:
    logs, wire = both
    for group in logs.groups:
        of_logs, of_wire = tables(logs, group), tables(wire, group)
        begun = Counter(row["reason"] for row in of_logs["observed"] if row["started_ms"])
        ended = [row["generation"] for row in of_wire["observed"]]
        assert ended == [
            row["generation"]
            for row in of_logs["observed"]
            if (row["members"] and row["assigned_ms"]) or row["generation"] in ended
        ], group
        left = Counter(row["expected_reason"] for row in of_wire["comparison"])
        unknown = left.pop(None, 0)
        missing = begun - left
        assert not left - begun, group
        assert missing.total() - missing[KNOWN_BY_LINES_ALONE] <= unknown <= missing.total(), group


def largest(logs: Iterable[Path]) -> Path:
    return max(logs, key=lambda log: log.stat().st_size)


def cut(folder: Path, left: Callable[[list[str]], list[str]]) -> tuple[Path, list[str]]:
    """Leave some lines of a log of the tap of Kafka 4.3.0; return it, and its lines."""
    write_run(RECORDINGS["kafka-4.3.0"], folder)
    log = largest(folder.glob("tap/*/group.log"))
    lines = left(log.read_text().splitlines(keepends=True))
    log.write_text("".join(lines))
    return log, lines


def test_requests_that_are_not_logged_are_found_in_the_serial_numbers(tmp_path: Path) -> None:
    log, _ = cut(tmp_path / "run", lambda lines: [*lines[:20], *lines[21:]])
    (gap,) = Recording(tmp_path / "run").gaps
    assert (gap.broker, gap.cause) == (log.parent.name, "1 lines missing before serial number 22")


def test_no_fault_of_brokers_explains_that_a_log_of_the_tap_ends(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    log, lines = cut(folder, lambda lines: lines[: len(lines) * 3 // 4])
    assert [(gap.broker, gap.cause) for gap in Recording(folder).gaps] == [
        (log.parent.name, END_MISSING)
    ]
    at = {"at_ms": int(lines[-1].split()[1]), "fault_id": "k"}
    args = {"broker": int(log.parent.name)}
    intent = at | {"event": "intent", "fault": "broker.kill", "target": "b", "args": args}
    with (folder / "journal.jsonl").open("a") as journal:
        journal.writelines(f"{json.dumps(one)}\n" for one in (intent, at | {"event": "injected"}))
    run = Recording(folder)
    assert run.run.killed_between
    assert [gap.cause for gap in run.gaps] == [END_MISSING]


def test_a_broker_without_a_log_of_the_tap_makes_a_verdict_unknown(tmp_path: Path) -> None:
    made = made_up(tmp_path / "run")
    made.environment["evidence"] = "wire"
    missing = lambda: [
        one for one in made.finish()[1]["unknown_because"] if "the whole log is missing" in one
    ]
    assert missing() == []
    del made.starts["2"]
    assert len(missing()) == 1
    assert made.finish()[1]["verdict"] == "unknown"


RULED = [name for name in TAPPED if "tap" in TAPPED[name].run.experiment.needs]


@pytest.mark.parametrize("name", RULED)
def test_what_is_recorded_of_faults_on_the_wire_was_hit_by_them(name: str) -> None:
    """The brokers answered, and no client heard of it; or requests came twice."""
    run, by_request = TAPPED[name].run, TAPPED[name].deliveries.by_request
    assert all(fault["verified"] for fault in run.faults)
    acted = [delivery for answers in by_request.values() for delivery in answers]
    assert len(acted) >= sum(fault["name"].startswith("net.") for fault in run.faults) > 0
    if name.startswith("lost-join-answer"):
        assert sum(one.at_ms is None for one in acted) == 2
    else:
        assert sum(one.is_copy for one in acted) > 50


def all_explained(verdict: dict[str, Any]) -> bool:
    empty = ("findings", "unknown_because", "expectations_unmet", "client_findings")
    counts = [(of["responses_checked"], of["responses_explained"])
              for of in verdict["groups"].values()]  # fmt: skip
    assert all(checked == explained > 0 for checked, explained in counts), counts
    return (verdict["verdict"], *(verdict[name] for name in empty)) == ("pass", [], [], [], [])


@pytest.mark.parametrize("name", RULED)
def test_every_answer_under_faults_on_the_wire_is_explained(name: str, tmp_path: Path) -> None:
    folder = unpacked(TAPPED[name], tmp_path / "run")
    environment = TAPPED[name].environment | {"evidence": Level.WIRE}
    (folder / "environment.json").write_text(json.dumps(environment))
    assert all_explained(judged_here(folder))


@pytest.mark.spark
def test_both_witnesses_of_requests_that_came_twice_agree(unaltered: Unaltered) -> None:
    _, verdict = unaltered(TAPPED["held-and-doubled-4.3.0"])
    assert all_explained(verdict)
    assert verdict["witnesses"]["compared"] > 100


def altered(folder: Path, change: Callable[[dict[str, Any]], str | None]) -> Recording:
    """Rewrite what the tap saw of Kafka 4.3.0: `change` returns the body of each line, or None."""
    write_run(RECORDINGS["kafka-4.3.0"], folder)
    for log in folder.glob("tap/*/group.log"):
        lines = []
        for text in log.read_text().splitlines():
            _, ms, nanos, _, _, rest = text.split(" ", 5)
            body: str | None = rest
            if not rest.startswith(ENDED):
                body = change(json.loads(rest.removeprefix(COMPLETED).rpartition(" (")[0]))
            if body is not None:
                lines.append(f"{len(lines) + 1} {ms} {nanos} tap DEBUG {body}\n")
        log.write_text("".join(lines))
    return Recording(folder)


def printed(content: dict[str, Any]) -> str:
    return f"{COMPLETED}{json.dumps(content)} (kafka.request.logger)"


def test_members_that_pass_the_tap_by_are_counted(tmp_path: Path) -> None:
    of_another = lambda content: content["requestHeader"]["clientId"] == "static-1"
    run = altered(tmp_path / "run", lambda one: None if of_another(one) else printed(one))
    assert bound(run, "static")["unseen_member"] >= 1
    assert "unseen_member" not in bound(run, "dynamic")
    counts = {"static": bound(run, "static"), "dynamic": bound(run, "dynamic")}
    assert foreign_groups(run.run, counts) == set()  # the brokers are the run's own
    external = SimpleNamespace(cluster=SimpleNamespace(kind="external"))
    of_a_user: Any = SimpleNamespace(experiment=external)
    assert foreign_groups(of_a_user, counts) == {"static"}


@pytest.mark.parametrize("api", ["HEARTBEAT", "JOIN_GROUP", "SYNC_GROUP"])
def test_a_wrong_answer_fails_at_its_place(api: str, tmp_path: Path) -> None:
    answered = [
        (row["connection"], row["correlation_id"])
        for row in RECORDINGS["kafka-4.3.0"].rows_by_group["dynamic"]
        if row.get("api") == api and row["error_code"] == 0
    ]
    place = answered[len(answered) // 2]

    def lie(content: dict[str, Any]) -> str:
        if (content["connection"], content["requestHeader"]["correlationId"]) == place:
            content["response"]["errorCode"] = Error.UNKNOWN_MEMBER_ID
        return printed(content)

    run = altered(tmp_path / "run", lie)
    is_it = lambda row: (row.get("connection"), row.get("correlation_id")) == place
    wrong = next(line for line in run.lines if is_it(line.row))
    first = found(run, "dynamic")[0]
    assert (first.broker, first.line, first.proven) == (wrong.broker, wrong.number, True)


@pytest.mark.spark
def test_a_run_is_judged_at_its_level(judge: Judge, unaltered: Unaltered, tmp_path: Path) -> None:
    _, logs = unaltered(HISTORIES["duplicate-4.3.0"])
    on_wire(HISTORIES["duplicate-4.3.0"], tmp_path / "wire")
    wire = judge(tmp_path / "wire")
    assert (logs["evidence_level"], wire["evidence_level"]) == ("requests", "wire")
    assert logs["verdict"] == "pass"
    assert all_explained(wire)
    assert wire["cannot_see"]
    counts = [
        {name: of["rebalances_observed"] for name, of in one["groups"].items()}
        for one in (logs, wire)
    ]
    assert counts[0] == counts[1]
    last = len(list((tmp_path / "wire").glob("tap/*/group.log")))
    assert wire["coverage"]["lines_read"] == wire["coverage"]["used"] + last


def with_another_answer(log: Path) -> int:
    """Refuse the Heartbeat in the middle of those that a log has; return its line."""
    lines = log.read_text().splitlines(keepends=True)
    fine = [place for place, line in enumerate(lines) if '"HEARTBEAT"}' in line and NONE in line]
    place = fine[len(fine) // 2]
    lines[place] = lines[place].replace(NONE, '"errorCode":25}')
    log.write_text("".join(lines))
    return place + 1


def same_request(tap_log: Path, line: int) -> int:
    """Return the line of the broker's log about the request of a line of the tap's."""
    text = tap_log.read_text().splitlines()[line - 1]
    request = text.partition(COMPLETED)[2].partition(',"response":')[0]
    log = tap_log.parents[2] / "brokers" / tap_log.parent.name / tap_log.name
    logged = log.read_text().splitlines()
    (found,) = [number for number, text in enumerate(logged, 1) if request in text]
    return found


def behind_a_nat(folder: Path) -> None:
    """Let the brokers log addresses that the tap does not know, as brokers in containers do."""
    hidden = re.compile(r'"connection":"[^"]*:(\d+)-[^"]*:(\d+)-')
    other = lambda found: f'"connection":"172.27.0.2:9092-172.27.0.1:{int(found[2]) ^ 1}-'
    changed = 0
    for log in folder.glob("brokers/*/group.log"):
        text, times = hidden.subn(other, log.read_text())
        log.write_text(text)
        changed += times
    assert changed


LAST_LINES = 3
"""The lines by which the tap ends its logs."""


@pytest.mark.spark
@pytest.mark.parametrize("name", ["lost-join-answer-4.3.0", "rolling-bounce-4.3.0"])
def test_an_answer_that_the_tap_has_otherwise_is_found(
    name: str, judge: Judge, tmp_path: Path
) -> None:
    """All others agree: behind a NAT by the numbers of requests, else by their connections."""
    folder = unpacked(TAPPED[name], tmp_path / "run")
    compared = "compared"
    if name.startswith("lost"):
        behind_a_nat(folder)
        compared = "compared_by_number"
    log = largest(folder.glob("tap/*/group.log"))
    line = with_another_answer(log)
    verdict = judge(folder)
    (finding,) = verdict["findings"]
    assert (verdict["verdict"], verdict["evidence_level"]) == ("fail", "requests")
    assert finding["kind"] == "broker_and_wire_disagree"
    broker = log.parent.name
    assert finding["observed"].endswith(f"errorCode=25 in tap/{broker}/group.log:{line}")
    assert finding["log"]["file"] == f"brokers/{broker}/group.log"
    assert finding["log"]["line"] == same_request(log, line)
    tap_lines = sum(log.read_bytes().count(b"\n") for log in folder.glob("tap/*/group.log"))
    assert verdict["witnesses"] == {compared: tap_lines - LAST_LINES, "tap_lines": tap_lines}


@pytest.mark.long
def test_nothing_is_wrong_with_any_seed(tmp_path: Path) -> None:
    with runs_in(KEPT / "seeds") as runs:
        for run in (one for mine in runs.values() for one in mine):
            wire = on_wire(run, tmp_path / run.folder.name)
            for group in wire.groups:
                assert found(wire, group) == [], (run.folder.name, group)
