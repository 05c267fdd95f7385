"""On a machine that is late, a finding is proven only if no lateness explains it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reports.judgement.group import DIFFERENCES, check_rows
from reports.judgement.run.run_folder import MACHINE
from tests.recorded.logs import RECORDINGS
from tests.reports.alter import Log, differences, moved
from tests.reports.conftest import unpacked
from tests.reports.judged_here import judged_here

RECORDED = RECORDINGS["kafka-4.3.0"]
LATE_MS = 1_000.0
CONTEXT = replace(RECORDED.context, late_ms=LATE_MS)
"""Of a recording whose brokers may be late by so much."""
GROUPS = ("static", "dynamic", "mixed", "returning", "leading")
MEMBERSHIP = ("JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP")
WRONG = '"errorCode":0', '"errorCode":27'
"""REBALANCE_IN_PROGRESS, which a stable group answers to no Heartbeat, in the place of no error."""


def despite_lateness(group: str, rows: list[Any]) -> list[Any]:
    found = check_rows(CONTEXT, group, rows)
    return [row for name, row in found if name in DIFFERENCES and row["despite_lateness"]]


@pytest.mark.parametrize("group", GROUPS)
def test_a_line_that_is_late_proves_nothing(group):
    """Each request about who is in the group is logged late once, all its times with it."""
    rows, differ = list(RECORDED.rows_by_group[group]), 0
    places = [place for place, row in enumerate(rows) if row.get("api") in MEMBERSHIP]
    places = places[:: 3 if group in ("static", "dynamic") else 1]  # they are long, and alike
    for place in places:
        altered = [*rows[:place], moved(rows[place], LATE_MS - 50.0), *rows[place + 1 :]]
        assert despite_lateness(group, altered) == [], rows[place]
        differ += bool(differences(RECORDED.context, group, altered))
    assert differ > len(places) / 4, "without that much lateness these are differences"


@pytest.mark.parametrize(
    ("error", "stands"),
    [(Error.REBALANCE_IN_PROGRESS, True), (Error.COORDINATOR_NOT_AVAILABLE, False)],
)
def test_a_wrong_answer_is_one_however_late_it_is(error, stands):
    """A stable group answers one Heartbeat as if it rebalanced; or as if a write had failed."""
    rows = list(RECORDED.rows_by_group["static"])
    lines = [row["at_ms"] for row in rows if row["template"]]
    calm = lambda at_ms: min(abs(at_ms - of_line) for of_line in lines)
    place = max(
        (place for place, row in enumerate(rows) if row.get("api") == "HEARTBEAT"),
        key=lambda place: calm(rows[place]["at_ms"]),
    )
    assert calm(rows[place]["at_ms"]) > 2 * LATE_MS
    response = rows[place]["response"].replace('"errorCode":0', f'"errorCode":{error}')
    rows[place] = {**rows[place], "response": response}
    assert differences(RECORDED.context, "static", rows) == ["answer"]
    found = [(one["rule"], one["line"]) for one in despite_lateness("static", rows)]
    assert found == ([("answer", rows[place]["line"])] if stands else [])


@pytest.mark.parametrize(
    ("waiting", "verdict"), [(0.95, "fail"), ("?", "unknown")], ids=["busy", "unsampled"]
)
def test_a_wrong_answer_on_a_busy_machine(tmp_path, waiting, verdict):
    """How late it may be is known where the machine was sampled, and nowhere else."""
    folder = unpacked(RECORDED, tmp_path / "run")
    log = Log.of(folder, "static")
    of_static = '"requestApiKeyName":"HEARTBEAT"', '"groupId":"static"'
    number = sum(all(part in line for part in of_static) for line in log.lines)
    place = log.find(*of_static, nth=number // 2)
    log.lines[place] = log.lines[place].replace(*WRONG)
    log.save()
    journal = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    first_ms, last_ms = (round(journal[at]["at_ms"]) for at in (0, -1))
    sample = {"event": "sample", "interval_ms": 1_000, "cpu_waiting": waiting}
    samples = ({**sample, "at_ms": at_ms} for at_ms in range(first_ms, last_ms, 1_000))
    (folder / MACHINE).write_text("".join(json.dumps(one) + "\n" for one in samples))
    judged = judged_here(folder)
    assert judged["verdict"] == verdict
    (finding,) = judged["findings"]
    assert (finding["kind"], finding["log"]["line"]) == ("wrong_answer", place + 1)
