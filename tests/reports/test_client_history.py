"""A run with a client history, judged: as it is, with lies, and without its history."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from reports.ingest import storing
from reports.judgement.breaches import Breach
from reports.judgement.clients.ownership import OWNERSHIP
from reports.judgement.run.run_folder import HISTORY, RunFolder
from tests.recorded.logs import HISTORIES, RECORDINGS
from tests.reports.conftest import Judge, Unaltered, unpacked
from tests.reports.judged_here import judged_here

Json = dict[str, Any]
DUPLICATE = HISTORIES["duplicate-4.3.0"]


def lines_of(folder: Path) -> list[Json]:
    return [json.loads(line) for line in (folder / HISTORY).read_text().splitlines()]


def write(folder: Path, lines: list[Json]) -> None:
    (folder / HISTORY).write_text("".join(json.dumps(line) + "\n" for line in lines))


def commit_more(folder: Path) -> None:
    """Let the last commit of all say that it stored one more offset."""
    lines = lines_of(folder)
    [line for line in lines if line["event"] == "committed"][-1]["offsets"] += 1
    write(folder, lines)


@pytest.mark.spark
def test_a_run_is_compared_with_its_history(unaltered: Unaltered) -> None:
    folder, verdict = unaltered(DUPLICATE)
    assert (verdict["verdict"], verdict["findings"]) == ("pass", [])
    lines = lines_of(folder)
    committed = sum(line["event"] == "committed" for line in lines)
    assert verdict["groups"]["static"]["clients"]["committed"] == committed
    late_ms = [line["max_ms"] for line in lines if line["event"] == "hub_lag"]
    hub = verdict["hub_gaps"]
    assert (hub["seconds"], hub["longest_ms"]) == (len(late_ms), max(late_ms))


def require_the_lie(folder: Path, verdict: Json) -> Json:
    assert verdict["verdict"] == "fail"
    (finding,) = verdict["findings"]
    assert (finding["kind"], finding["proven"]) == (Breach.DISAGREE, True)
    assert finding["history"].startswith("history.jsonl: committed of static-")
    (log,) = folder.glob(f"**/{finding['log']['file']}")
    line = log.read_text().splitlines()[finding["log"]["line"] - 1]
    assert '"requestApiKeyName":"OFFSET_COMMIT"' in line
    return finding


@pytest.mark.parametrize("name", [name for name in HISTORIES if HISTORIES[name] is not DUPLICATE])
def test_a_lie_in_a_history(name: str, tmp_path: Path) -> None:
    folder = unpacked(HISTORIES[name], tmp_path / "run")
    assert judged_here(folder)["verdict"] == "pass"
    commit_more(folder)
    require_the_lie(folder, judged_here(folder))


@pytest.mark.spark
def test_a_lie_in_a_history_is_on_the_page(judge: Judge, tmp_path: Path) -> None:
    folder = unpacked(DUPLICATE, tmp_path / "run")
    commit_more(folder)
    finding = require_the_lie(folder, judge(folder))
    for page in ("report.html", "junit.xml"):
        assert finding["history"] in (folder / page).read_text()


def test_a_history_that_is_not_understood_proves_nothing(tmp_path: Path) -> None:
    """The lie is there as ever, but a line that is altered may have explained it."""
    folder = unpacked(DUPLICATE, tmp_path / "run")
    commit_more(folder)
    lines = (folder / HISTORY).read_bytes().splitlines(keepends=True)
    altered = [*lines[:16], b"\0" * len(lines[16]) + b"\n", *lines[17:], lines[-1][:30]]
    (folder / HISTORY).write_bytes(b"".join(altered))
    verdict = judged_here(folder)
    assert verdict["verdict"] == "unknown"
    (doubt,) = [one for one in verdict["unknown_because"] if one.startswith(HISTORY)]
    assert doubt.startswith("history.jsonl:17 not understood (JSON is malformed: invalid char")
    assert doubt.endswith("; 2 such lines")
    assert not any(finding["proven"] for finding in verdict["findings"])


@pytest.mark.spark
def test_a_client_id_of_its_own_and_an_end_by_itself_are_told_from_what_is_stored(
    judge: Judge, tmp_path: Path
) -> None:
    folder = unpacked(DUPLICATE, tmp_path / "run")
    for log in folder.glob("brokers/*/group.log"):
        log.write_text(log.read_text().replace("static-2", "payments"))
    write(folder, [line for line in lines_of(folder) if '"static-2"' not in json.dumps(line)])
    *before, last = (folder / "journal.jsonl").read_text().splitlines()
    error = "its process has ended by itself, exit code 1; last in members/static-1.log: '<b>bad'"
    ended = {"event": "ended", "member": "static-1", "group": "static", "error": error}
    at_ms = json.loads(before[-1])["at_ms"]
    entry = json.dumps({"at_ms": at_ms, "seen_at_ms": at_ms, **ended})
    (folder / "journal.jsonl").write_text("\n".join([*before, entry, last]) + "\n")
    verdict = judge(folder)
    assert verdict["verdict"] == "unknown"
    absent, end = verdict["findings"]
    assert (absent["kind"], end["kind"]) == ("not_a_member", "member_ended")
    assert absent["expected"].endswith("that was given: static-2")
    assert absent["observed"].endswith("nobody was given: payments")
    assert end["observed"] == f"static-1: {error}"
    page = (folder / "report.html").read_text()
    assert "exit code 1; last in members/static-1.log: &#39;&lt;b&gt;bad" in page


@pytest.mark.spark
def test_a_run_without_a_history_says_so(unaltered: Unaltered) -> None:
    folder, verdict = unaltered(RECORDINGS["kafka-4.3.0"])
    static = verdict["groups"]["static"]
    assert (static["clients"], static["partitions_moved"]) == (None, None)
    owned = pq.read_table(folder / "tables" / "ownership")
    assert (owned.num_rows, owned.column_names) == (0, [*storing.schema(OWNERSHIP).names])
    assert "There is no client history" in (folder / "report.html").read_text()


def test_a_run_whose_history_is_gone_is_judged_without_it(tmp_path: Path) -> None:
    folder = unpacked(DUPLICATE, tmp_path / "run")
    (folder / HISTORY).unlink()
    assert judged_here(folder)["verdict"] == "pass"


@pytest.mark.spark
def test_costs_of_a_run_are_those_that_a_search_finds(recorded: Path, judge: Judge) -> None:
    """A member loses its partition to another in the impact phase; the last line is cut off."""
    run = RunFolder(recorded)
    first, *others = [group.name for group in run.experiment.workload.groups]
    began_ms = dict(run.phases)["impact"]
    write(recorded, [
        {"at_ms": began_ms + after_ms, "member": member, "group": first, "kind": "static",
         "event": event, "partitions": [f"orders-{number}"]}
        for after_ms, member, event, number in (
            (100, "a", "assigned", 0), (200, "a", "revoked", 0), (230, "b", "assigned", 0),
            (250, "a", "assigned", 0), (260, "b", "assigned", 47), (260, "b", "assigned", 48),
        )
    ])  # fmt: skip
    with (recorded / HISTORY).open("a") as history:
        history.write('{"at_ms": 17')
    groups = judge(recorded)["groups"]
    assert groups[first]["stop_the_world_ms"] == {
        "stops": 1, "p50": 50.0, "p99": 50.0, "max": 50.0, "total": 50.0,
    }  # fmt: skip
    assert groups[first]["partitions_moved"]["impact"] == 2
    assert all(groups[name]["partitions_moved"] is None for name in others)
    logs = "".join(log.read_text() for log in recorded.glob("brokers/*/group.log"))
    found = {"fences": r'"errorCode":82\b', "evictions": "has failed, removing it"}
    for name, group in groups.items():
        about = (f'"groupId":"{name}"', f" in group {name} ")
        mine = [line for line in logs.splitlines() if any(words in line for words in about)]
        for what, pattern in found.items():
            assert group[what]["total"] == sum(bool(re.search(pattern, line)) for line in mine)
        causes = sum(sum(counts.values()) for counts in group["by_cause"].values())
        assert causes == group["rebalances_observed"]["total"]
    assert all(sum(group[what]["total"] for group in groups.values()) for what in found)
    page = (recorded / "report.html").read_text()
    assert page.count('id="owners-') == 1
    assert '"orders-47"' in page
    assert '"orders-48"' not in page  # the owners of the first 48 partitions are drawn
