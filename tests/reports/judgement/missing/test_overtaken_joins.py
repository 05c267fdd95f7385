"""A JoinGroup that the client sent again on a new connection, and that is in no log."""

import json
from typing import Any

import pytest

from reports.judgement.findings import MissingEvidence
from reports.judgement.lateness.second_judgement import SecondJudgement
from reports.judgement.missing.overtaken_joins import overtaken_joins
from tests.recorded.logs import RECORDINGS

GROUP = "silent"
AGAIN_MS = 400.0
Row = dict[str, Any]


def member_of(row: Row) -> str:
    member: str = json.loads(row["request"])["memberId"]
    return member


def sent_again(recorded: str, connection: str, more: int) -> list[Row]:
    """Return the group's rows as if a member's second JoinGroup had come once more, and later.

    The coordinator acts on the first, and its line about it stays where it is. The logged one comes
    on a `connection`, with a correlation id that is `more` higher. Nothing else is changed.
    """
    rows = [{**row} for row in RECORDINGS[recorded].rows_by_group[GROUP]]
    joins = [row for row in rows if row["template"] is None and row["api"] == "JOIN_GROUP"]
    line = next(row["message"] for row in rows if row["template"] == "pending_joins")
    first = next(row for row in joins if (member := member_of(row)) and member in line)
    mine = [
        row
        for row in rows
        if row["template"] is None
        and row["client_id"] == first["client_id"]
        and row["arrived_ms"] >= first["arrived_ms"]
    ]
    for row in mine:
        row["connection"] = connection or row["connection"]
        row["correlation_id"] += more
    for time in ("arrived_ms", "earliest_ms", "at_ms", "latest_ms"):
        first[time] += AGAIN_MS
    return rows


@pytest.mark.parametrize("recorded", sorted(RECORDINGS))
@pytest.mark.parametrize(
    ("connection", "more", "doubtful"),
    [("new", 1, True), ("new", 3, True), ("", 1, False), ("new", 0, False)],
    ids=["one number left out", "three", "the same connection", "no number left out"],
)
def test_its_line_is_a_doubt_where_the_client_came_again(
    recorded: str, connection: str, more: int, *, doubtful: bool
) -> None:
    judge = RECORDINGS[recorded].judge
    rows = sent_again(recorded, connection, more)
    second = SecondJudgement(judge, MissingEvidence({}, (), {}), ())
    assert not judge.explains(GROUP, rows)
    doubt = second.doubt(GROUP, rows, rows[0]["at_ms"])
    assert (doubt is not None) == doubtful
    if doubt is not None:
        assert "a JoinGroup of silent-" in doubt


@pytest.mark.parametrize("recorded", sorted(RECORDINGS))
def test_it_excuses_nothing_else(recorded: str) -> None:
    rows = sent_again(recorded, "new", 1)
    requests = (row for row in rows if row["template"] is None)
    beats = (row for row in requests if row["api"] == "HEARTBEAT" and row["error_code"] == 0)
    beat = next(row for row in beats if member_of(row))
    beat["response"] = beat["response"].replace('"errorCode":0', '"errorCode":25')
    second = SecondJudgement(RECORDINGS[recorded].judge, MissingEvidence({}, (), {}), ())
    assert second.doubt(GROUP, rows, rows[0]["at_ms"]) is None


@pytest.mark.parametrize("recorded", sorted(RECORDINGS))
def test_no_recording_has_one(recorded: str) -> None:
    for rows in RECORDINGS[recorded].rows_by_group.values():
        assert overtaken_joins(rows) == []
