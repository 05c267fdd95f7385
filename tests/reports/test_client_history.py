"""A run with a client history, judged in Spark: as it is, with lies, and without its history."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from reports.ingest import storing
from reports.judgement.breaches import Breach
from reports.judgement.clients.ownership import OWNERSHIP
from reports.judgement.run.run_folder import HISTORY
from tests.recorded.logs import HISTORIES
from tests.reports.conftest import Judge, unpacked

pytestmark = pytest.mark.spark

Json = dict[str, Any]
Lines = list[Json]


def lied(folder: Path, lie: Callable[[Lines], None]) -> None:
    """Alter the history of a run."""
    history = folder / HISTORY
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    lie(lines)
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))


def commit_more(lines: Lines) -> None:
    """Let the last commit of all say that it stored one more offset."""
    [line for line in lines if line["event"] == "committed"][-1]["offsets"] += 1


@pytest.mark.parametrize("name", HISTORIES)
def test_a_run_and_a_lie_in_its_history(name: str, judge: Judge, tmp_path: Path) -> None:
    folder = unpacked(HISTORIES[name], tmp_path / "run")
    verdict = judge(folder)
    assert (verdict["verdict"], verdict["findings"]) == ("pass", [])
    compared = verdict["groups"]["static"]["clients"]
    lines = [json.loads(line) for line in (folder / HISTORY).read_text().splitlines()]
    assert compared["committed"] == sum(line["event"] == "committed" for line in lines)
    late_ms = [line["max_ms"] for line in lines if line["event"] == "hub_lag"]
    hub = verdict["hub_gaps"]
    assert (hub["seconds"], hub["longest_ms"]) == (len(late_ms), max(late_ms))
    lied(folder, commit_more)
    verdict = judge(folder)
    assert verdict["verdict"] == "fail"
    (finding,) = verdict["findings"]
    assert (finding["kind"], finding["proven"]) == (Breach.DISAGREE, True)
    assert finding["history"].startswith("history.jsonl: committed of static-")
    (log,) = folder.glob(f"**/{finding['log']['file']}")
    line = log.read_text().splitlines()[finding["log"]["line"] - 1]
    assert '"requestApiKeyName":"OFFSET_COMMIT"' in line
    page = (folder / "report.html").read_text()
    assert finding["history"] in page
    assert finding["history"] in (folder / "junit.xml").read_text()


def test_a_history_that_is_not_understood_proves_nothing(judge: Judge, tmp_path: Path) -> None:
    """The lie is there as ever, but a line that is altered may have explained it."""
    folder = unpacked(HISTORIES["duplicate-4.3.0"], tmp_path / "run")
    lied(folder, commit_more)
    lines = (folder / HISTORY).read_bytes().splitlines(keepends=True)
    altered = [*lines[:16], b"\0" * len(lines[16]) + b"\n", *lines[17:], lines[-1][:30]]
    (folder / HISTORY).write_bytes(b"".join(altered))
    verdict = judge(folder)
    assert verdict["verdict"] == "unknown"
    (doubt,) = [one for one in verdict["unknown_because"] if one.startswith(HISTORY)]
    assert doubt.startswith("history.jsonl:17 not understood (JSON is malformed: invalid char")
    assert doubt.endswith("; 2 such lines")
    assert not any(finding["proven"] for finding in verdict["findings"])


def test_a_client_id_of_its_own_and_an_end_by_itself_are_told_from_what_is_stored(
    judge: Judge, tmp_path: Path
) -> None:
    folder = unpacked(HISTORIES["duplicate-4.3.0"], tmp_path / "run")
    for log in folder.glob("brokers/*/group.log"):
        log.write_text(log.read_text().replace("static-2", "payments"))
    history = folder / HISTORY
    kept = [line for line in history.read_text().splitlines() if '"static-2"' not in line]
    history.write_text("\n".join(kept) + "\n")
    journal = (folder / "journal.jsonl").read_text().splitlines()
    error = "its process has ended by itself, exit code 1; last in members/static-1.log: '<b>bad'"
    ended = {"event": "ended", "member": "static-1", "group": "static", "error": error}
    at_ms = json.loads(journal[-2])["at_ms"]
    journal.insert(-1, json.dumps({"at_ms": at_ms, "seen_at_ms": at_ms, **ended}))
    (folder / "journal.jsonl").write_text("\n".join(journal) + "\n")
    verdict = judge(folder)
    assert verdict["verdict"] == "unknown"
    absent, end = verdict["findings"]
    assert (absent["kind"], end["kind"]) == ("not_a_member", "member_ended")
    assert absent["expected"].endswith("each member: static-2")
    assert absent["observed"].endswith("nobody was given: payments")
    assert end["observed"] == f"static-1: {error}"
    page = (folder / "report.html").read_text()
    assert "exit code 1; last in members/static-1.log: &#39;&lt;b&gt;bad" in page


def test_a_run_without_a_history_says_so(judge: Judge, tmp_path: Path) -> None:
    folder = unpacked(HISTORIES["duplicate-4.3.0"], tmp_path / "run")
    (folder / HISTORY).unlink()
    verdict = judge(folder)
    assert verdict["verdict"] == "pass"
    assert verdict["groups"]["static"]["clients"] is None
    assert verdict["groups"]["static"]["partitions_moved"] is None
    owned = pq.read_table(folder / "tables" / "ownership")
    assert (owned.num_rows, owned.column_names) == (0, [*storing.schema(OWNERSHIP).names])
    assert "There is no client history" in (folder / "report.html").read_text()
