"""What true clients and brokers do though it looks as if they disagreed, and what they never do."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafka_protocol.consumer_protocol import Assignment, TopicPartition
from kafka_protocol.errors import BrokerError, Error
from reference_coordinator.replay import Outage
from reports.judgement.logged import LoggedRow
from reports.judgement.recording import Recording
from reports.judgement.run.history import EVENTS, ClientEvent
from reports.timing import GOES_ON_MS, UNLOGGED_MS
from tests.reports.alter import moved
from tests.reports.judgement.clients.test_comparison import (
    ALL,
    GROUP,
    PROVEN,
    UNPROVEN,
    clients,
    events_of,
    far_from_faults,
    place,
)
from tests.reports.judgement.contexts import compared

Rows = Sequence[LoggedRow]


def rows_of(recording: Recording, api: str, client: str) -> list[LoggedRow]:
    """Return the requests of an API that a client sent, in order of time."""
    of = lambda row: row["template"] is None and (row["api"], row["client_id"]) == (api, client)
    return sorted(filter(of, recording.rows_by_group[GROUP]), key=lambda row: row["at_ms"])


def answered(row: LoggedRow, **fields: Any) -> LoggedRow:
    """Change what a request was answered."""
    response = {**json.loads(row["response"]), **fields}
    return {**row, "response": json.dumps(response), "error_code": response["errorCode"]}


@ALL
@pytest.mark.parametrize(("connection", "found"), [("dead", []), ("its own", [PROVEN])])
def test_a_join_group_of_a_dead_process_is_fenced_by_the_next_one(recording, connection, found):
    """It waits as its process is killed; the broker logs the answer to a closed connection too."""
    events = events_of(recording)
    last = events[place(events, "committed", client="static-1")]
    join = rows_of(recording, "JOIN_GROUP", "static-1")[-1]
    fenced_ms = last.at_ms - GOES_ON_MS - 500
    times = dict.fromkeys(("at_ms", "earliest_ms", "latest_ms", "arrived_ms"), fenced_ms - 3_000)
    row = answered(join, errorCode=Error.FENCED_INSTANCE_ID, generationId=-1)
    row = {**row, **times, "answered_ms": fenced_ms, "id": "1:999999", "line": 999999}
    if connection == "dead":
        row["connection"] += "-dead"
    seen, _ = clients(recording, events, [*recording.rows_by_group[GROUP], row])
    assert sorted(set(seen)) == found


@ALL
@pytest.mark.parametrize(
    ("killed", "found"),
    [
        (None, [PROVEN]),
        ("before it gave it", [PROVEN]),
        ("then", [UNPROVEN]),
        ("long after", [PROVEN]),
    ],
)
def test_a_member_id_that_a_killed_broker_gave(recording, killed, found):
    """It stored a static member's return, answered it, and was killed before it wrote the line."""
    events = events_of(recording)
    given = events[place(events, "assigned")].member_id
    assigned = next(one for one in events if one.event == "assigned" and one.member_id == given)
    joins = rows_of(recording, "JOIN_GROUP", assigned.client)
    gave = [row for row in joins if (given or "-") in row["response"]]
    rows = [row for row in recording.rows_by_group[GROUP] if row not in gave]
    others = [row for row in joins if row not in gave and row["answered_ms"] < assigned.at_ms]
    before = max((row["answered_ms"] for row in others), default=0.0)
    kills = {
        None: [],
        "before it gave it": [before - UNLOGGED_MS - 10],
        "then": [assigned.at_ms - 1.0],
        "long after": [assigned.at_ms + UNLOGGED_MS + 5_000],
    }
    outages = [Outage(at_ms, at_ms + 20_000) for at_ms in kills[killed]]
    assert disagreements(recording, events, rows, outages) == found


def disagreements(
    recording: Recording, events: Sequence[ClientEvent], rows: Rows, outages: Sequence[Outage]
) -> list[tuple[str, bool]]:
    """Judge with such outages alone."""
    found, _ = compared(rows, events, outages=outages)
    return [(row["kind"], row["proven"]) for row in found]


@ALL
@pytest.mark.parametrize("says", ["nothing", "all", "those stored"])
def test_a_commit_that_was_refused_for_one_partition(recording, says):
    """librdkafka says that it failed; others may say what was stored, or how much was sent."""
    events, rows = events_of(recording), list(recording.rows_by_group[GROUP])
    at, partitions = commit_of_several(recording, events)
    event = events.pop(at)
    refused = dict(partitions[0], errorCode=int(BrokerError.UNKNOWN_TOPIC_OR_PARTITION))
    row = next(row for row in rows if answers(row, event))
    body = json.loads(row["response"])
    body["topics"][0]["partitions"] = [refused, *partitions[1:]]
    rows[rows.index(row)] = {**row, "response": json.dumps(body)}
    stored = len(partitions) - 1
    if says != "nothing":
        count = stored + (says == "all")
        events.append(replace(event, offsets=count))
    assert clients(recording, events, rows)[0] == []
    # a commit that was stored as a whole has to be reported
    refused["errorCode"] = 0
    rows[rows.index(next(row for row in rows if answers(row, event)))] = row
    if says != "all":
        assert clients(recording, events, rows)[0] == [PROVEN]


def commit_of_several(
    recording: Recording, events: Sequence[ClientEvent]
) -> tuple[int, list[dict[str, Any]]]:
    """Find a commit of several partitions; return its event's place, and its answer's parts."""
    for at, event in enumerate(events):
        if event.event == "committed" and event.offsets > 1 and far_from_faults(recording, event):
            for row in recording.rows_by_group[GROUP]:
                if answers(row, event):
                    return at, json.loads(row["response"])["topics"][0]["partitions"]
    raise LookupError("every commit is of one partition")


def answers(row: LoggedRow, event: ClientEvent) -> bool:
    """Tell whether a row is the commit that an event tells of."""
    mine = row["template"] is None and row["api"] == "OFFSET_COMMIT"
    return (
        mine
        and row["client_id"] == event.client
        and event.at_ms - 50 <= row["answered_ms"] <= event.at_ms + 1
    )


@ALL
@pytest.mark.parametrize(("other", "found"), [(False, []), (True, [UNPROVEN])])
def test_an_assignment_that_is_given_twice_within_a_moment_is_told_once(recording, other, found):
    """The client joins again before it tells of the first; seen on a machine that was starved."""
    events, rows = events_of(recording), list(recording.rows_by_group[GROUP])
    assigned = next(one for one in events if one.event == "assigned" and one.client == "static-1")
    sync = next(
        row
        for row in rows_of(recording, "SYNC_GROUP", "static-1")
        if row["error_code"] == 0 and row["answered_ms"] <= assigned.at_ms + 1
    )
    earlier = {**moved(sync, -40.0), "id": "1:999999", "line": 999999}
    if other:
        share = Assignment((TopicPartition("orders", 99),)).encode()
        earlier = answered(earlier, assignment=base64.b64encode(share).decode())
    assert clients(recording, events, [*rows, earlier])[0] == found


@ALL
@pytest.mark.parametrize("changed", [False, True], ids=["the same offsets", "other offsets"])
@pytest.mark.parametrize("until_ms", [-1_000, 1_000], ids=["before", "in the outage"])
def test_a_commit_that_is_sent_again_as_a_broker_goes_is_reported_once(
    recording, until_ms, changed
):
    """The broker's log is the liar: it has a commit twice, the second 5 ms later."""
    events, rows = events_of(recording), list(recording.rows_by_group[GROUP])
    event = events[place(events, "committed", nth=9, client="static-2")]
    row = next(row for row in rows if answers(row, event))
    request = json.loads(row["request"])
    if changed:
        request["topics"][0]["partitions"][0]["committedOffset"] += 1
    rows.append({**moved(row, 5), "id": "9:9", "request": json.dumps(request)})
    outage = Outage(event.at_ms - 9_000, event.at_ms + until_ms)
    found = disagreements(recording, events, rows, [outage])
    assert found == ([] if until_ms > 0 and not changed else [PROVEN])


@ALL
@pytest.mark.parametrize("took_ms", [10.0, 5_200.0])
def test_what_a_client_is_answered_while_it_ends(recording, took_ms):
    """Its commit is stored at the end of a close that takes long; it does not report that."""
    events, rows = events_of(recording), list(recording.rows_by_group[GROUP])
    at = place(events, "closing")
    closing = events[at]
    events = [one for one in events if one.client != closing.client or one.at_ms <= closing.at_ms]
    commit = rows_of(recording, "OFFSET_COMMIT", closing.client)[-1]
    by_ms = closing.at_ms + 5_100.0 - commit["answered_ms"]
    late = {**moved(commit, by_ms), "id": "1:999999"}
    gone = replace(closing, at_ms=closing.at_ms + took_ms, order=EVENTS.index("killed"))
    found, _ = clients(recording, [*events, gone], [*rows, late])
    assert found == ([UNPROVEN] if took_ms < 5_000 else [])
