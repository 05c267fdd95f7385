"""A JoinGroup that the client sent again on a new connection, and that is in no log."""

import json
from dataclasses import replace
from typing import Any

import pytest

from reports.judgement.findings import MissingEvidence
from reports.judgement.group import Judge
from reports.judgement.lateness.second_judgement import SecondJudgement
from reports.judgement.missing.overtaken_joins import overtaken_joins
from tests.recorded.logs import RECORDINGS
from tests.reports.explained import explains

GROUPS = ("silent", "pending")
"""In `pending` others send requests between a member's answer and its second JoinGroup."""
AGAIN_MS = 400.0
Row = dict[str, Any]


def member_of(row: Row) -> str:
    member: str = json.loads(row["request"])["memberId"]
    return member


def sent_again(recorded: str, group: str, connection: str, more: int) -> list[Row]:
    """Return the group's rows as if a member's second JoinGroup had come once more, and later.

    The coordinator acts on the first, and its line about it stays where it is. The logged one comes
    on a `connection`, with a correlation id that is `more` higher. Nothing else is changed.
    """
    rows = [{**row} for row in RECORDINGS[recorded].rows_by_group[group]]
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


def judge_of(recorded: str, rows: list[Row]) -> Judge:
    """Return the recording's judge, to whom all clients are of librdkafka."""
    judge = RECORDINGS[recorded].judge
    ids = dict.fromkeys((row["client_id"] for row in rows if row["template"] is None), 300_000.0)
    return replace(judge, clients=replace(judge.clients, librdkafka=ids))


def doubt_of(judge: Judge, group: str, rows: list[Row]) -> str | None:
    second = SecondJudgement(judge, MissingEvidence({}, (), {}), ())
    return second.doubt(group, rows, rows[0]["at_ms"])


@pytest.mark.parametrize("recorded", sorted(RECORDINGS))
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    ("connection", "more", "doubtful"),
    [("new", 2, True), ("new", 4, True), ("", 2, False), ("new", 1, False)],
    ids=["one more was sent", "three more", "the same connection", "a connection was made"],
)
def test_its_line_is_a_doubt_where_the_client_came_again(
    recorded: str, group: str, connection: str, more: int, *, doubtful: bool
) -> None:
    rows = sent_again(recorded, group, connection, more)
    judge = judge_of(recorded, rows)
    assert not explains(judge, group, rows)
    doubt = doubt_of(judge, group, rows)
    assert (doubt is not None) == doubtful
    if doubt is not None:
        assert f"a JoinGroup of {group}-" in doubt


@pytest.mark.parametrize("recorded", sorted(RECORDINGS))
def test_other_clients_may_number_otherwise(recorded: str) -> None:
    rows = sent_again(recorded, "silent", "new", 4)
    judge = judge_of(recorded, rows)
    assert doubt_of(RECORDINGS[recorded].judge, "silent", rows) is None
    everybody = judge.clients.librdkafka
    (join,) = overtaken_joins(rows, everybody)
    again = next(row for row in rows if row.get("id", "") == join["id"].removesuffix(" overtook"))
    for other in ({"broker": "9"}, {"connection": join["connection"], "api": "HEARTBEAT"}):
        later = {**again, **other, "arrived_ms": again["arrived_ms"] - 1, "id": "other"}
        assert overtaken_joins([*rows, later], everybody) == []


@pytest.mark.parametrize("recorded", sorted(RECORDINGS))
def test_it_excuses_nothing_else(recorded: str) -> None:
    rows = sent_again(recorded, "silent", "new", 2)
    requests = (row for row in rows if row["template"] is None)
    beats = (row for row in requests if row["api"] == "HEARTBEAT" and row["error_code"] == 0)
    beat = next(row for row in beats if member_of(row))
    beat["response"] = beat["response"].replace('"errorCode":0', '"errorCode":25')
    assert doubt_of(judge_of(recorded, rows), "silent", rows) is None


@pytest.mark.parametrize("recorded", sorted(RECORDINGS))
def test_no_recording_has_one(recorded: str) -> None:
    for rows in RECORDINGS[recorded].rows_by_group.values():
        everybody = {row["client_id"] for row in rows if row["template"] is None}
        assert overtaken_joins(rows, everybody) == []
