"""Clients against brokers: histories of real runs, and what clients cannot have seen.

Only the recordings of `HISTORIES` have one. The times are a little less, and a little more, than
the bounds of `docs/trust.md`.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest, Outage
from reports.judgement.breaches import Breach
from reports.judgement.clients.comparison import TWICE, Clients
from reports.judgement.group import check_rows
from reports.judgement.logged import Chunk, LoggedRow, Requests
from reports.judgement.recording import Recording
from reports.judgement.run.history import EVENTS, ClientEvent
from reports.judgement.run.run_folder import HISTORY
from tests.recorded.logs import HISTORIES
from tests.reports.alter import moved
from tests.reports.judgement.contexts import compared, context

GROUP = "static"
ALL = pytest.mark.parametrize("recording", HISTORIES.values(), ids=HISTORIES)
DUPLICATE = HISTORIES["duplicate-4.3.0"]
PROVEN, UNPROVEN = (Breach.DISAGREE, True), (Breach.DISAGREE, False)
Events = list[ClientEvent]


def events_of(recording: Recording) -> Events:
    return list(recording.events_by_group[GROUP])


def clients(
    recording: Recording,
    events: Sequence[ClientEvent],
    rows: Sequence[LoggedRow] | None = None,
    *outages: Outage,
) -> tuple[list[tuple[str, bool]], Counter[str]]:
    """Return the kinds of breaches, each with whether it is proven, and what is counted."""
    logged = recording.rows_by_group[GROUP] if rows is None else rows
    found, judged = compared(logged, events, outages=outages or recording.run.outages)
    return [(row["kind"], row["proven"]) for row in found], judged.counts


def place(events: Events, event: str, nth: int = -1, client: str | None = None) -> int:
    """Return where the nth event of a kind is; no fault on a broker is near."""
    order = EVENTS.index(event)
    found = [
        at for at, one in enumerate(events) if one.order == order and client in (None, one.client)
    ]
    return found[nth]


def changed(events: Events, at: int, **fields: Any) -> Events:
    return [*events[:at], replace(events[at], **fields), *events[at + 1 :]]


@ALL
def test_all_that_real_clients_saw_is_what_brokers_answered(recording):
    """And all of it is compared."""
    found, counts = clients(recording, events_of(recording))
    assert found == []
    lines = map(json.loads, (recording.folder / HISTORY).read_text().splitlines())
    seen = Counter(line["event"] for line in lines if line["group"] == GROUP)
    for event in ("assigned", "committed", "fenced"):
        assert counts[event] == seen[event]


LIES = {
    "a partition less": lambda one: {"partitions": one.partitions - {min(one.partitions)}},
    "a partition more": lambda one: {"partitions": one.partitions | {"orders-99"}},
    "no partitions": lambda _: {"partitions": frozenset()},
    "an id that no broker gave": lambda one: {"member_id": f"{one.member_id}0"},
}


@ALL
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_an_assignment_that_no_broker_gave(recording, lie):
    events = events_of(recording)
    at = place(events, "assigned")
    found, _ = clients(recording, changed(events, at, **lie(events[at])))
    assert PROVEN in found
    assert UNPROVEN not in found


@ALL
def test_java_s_client_does_not_say_its_id(recording):
    events = events_of(recording)
    assert clients(recording, changed(events, place(events, "assigned"), member_id=None))[0] == []


@ALL
@pytest.mark.parametrize(("event", "says", "after_ms"), [
    ("committed", "committed", 1.0), ("closing", "fenced", -1.0)
])  # fmt: skip
def test_an_event_of_which_no_broker_knows(recording, event, says, after_ms):
    events = events_of(recording)
    one = events[place(events, event)]
    invented = replace(one, order=EVENTS.index(says), at_ms=one.at_ms + after_ms)
    assert clients(recording, [*events, invented])[0] == [PROVEN]


@ALL
@pytest.mark.parametrize("more", [-1, 1, 5])
def test_a_commit_of_another_number_of_offsets(recording, more):
    events = events_of(recording)
    at = next(
        at
        for at, one in enumerate(events)
        if one.event == "committed" and one.offsets > 1 and far_from_faults(recording, one)
    )
    found, _ = clients(recording, changed(events, at, offsets=events[at].offsets + more))
    assert found == [PROVEN]


def far_from_faults(recording: Recording, event: ClientEvent) -> bool:
    return all(abs(event.at_ms - one.from_ms) > 10_000 for one in recording.run.outages)


@ALL
def test_a_commit_that_a_client_says_nothing_of(recording):
    """Its connection went on, so the client got the answer."""
    events = events_of(recording)
    at = place(events, "committed", nth=-40)
    found, _ = clients(recording, events[:at] + events[at + 1 :])
    assert found == [PROVEN]


@ALL
@pytest.mark.parametrize("early_ms", [-1.0, 1.0])
@pytest.mark.parametrize("late", [1, 2])
def test_commits_that_a_client_reads_late(recording, late, early_ms):
    """A client that was frozen reads what it was answered before as it is answered the next."""
    events = events_of(recording)
    commits = [at for at, one in enumerate(events) if one.event == "committed"]
    client = events[commits[-40]].client
    mine = [at for at in commits if events[at].client == client]
    mine = mine[: mine.index(commits[-40]) + late + 1]
    *read_late, after = mine[-late - 1 :]
    assert events[after].at_ms - events[read_late[0]].at_ms > 500, "it would not be late"
    for number, at in enumerate(read_late):
        events = changed(events, at, at_ms=events[after].at_ms - early_ms + number * 0.1)
    events = changed(events, after, at_ms=max(events[after].at_ms, events[at].at_ms) + 0.1)
    assert clients(recording, events)[0] == []


def last_of(recording: Recording, api: str, client: str) -> ObservedRequest:
    """Return the last request of a client that was answered NONE."""
    observed = Requests.of(Chunk.of(recording.rows_by_group[GROUP])).observed
    mine = [one for one in observed if (one.api, one.client_id) == (api, client)]
    return [one for one in mine if not one.response_fields.get("errorCode")][-1]


@ALL
@pytest.mark.parametrize(
    ("early_ms", "expected"), [(240, []), (260, [UNPROVEN]), (490, [UNPROVEN]), (2_500, [UNPROVEN])]
)
def test_an_assignment_that_is_known_before_it_is_answered(recording, early_ms, expected):
    """The clocks of the machine, and of what a busy broker writes, leave some time."""
    events = events_of(recording)
    at = place(events, "assigned")
    sync = last_of(recording, "SYNC_GROUP", events[at].client)
    found, _ = clients(recording, changed(events, at, at_ms=sync.answered_ms - early_ms))
    assert {one for one in found if one[0] == Breach.DISAGREE} == set(expected)


def ending(events: Events, at: int, ended_ms: float) -> Events:
    """Let a client end at a time, and say nothing from one of its events on."""
    one = events[at]
    said = lambda other: other.client == one.client and other.at_ms > one.at_ms - 500
    end = replace(one, at_ms=ended_ms, order=EVENTS.index("closing"))
    return [end, *(other for other in events if not said(other))]


@ALL
@pytest.mark.parametrize(("before_ms", "expected"), [(4_900, []), (5_100, [UNPROVEN])])
def test_a_client_that_is_about_to_end_says_nothing_more(recording, before_ms, expected):
    """Closing takes up to five seconds; what it was answered before, it reports."""
    events = events_of(recording)
    at = place(events, "committed")
    commit = last_of(recording, "OFFSET_COMMIT", events[at].client)
    seen = ending(events, at, commit.answered_ms + before_ms)
    assert clients(recording, seen)[0] == expected


@ALL
@pytest.mark.parametrize(("after_ms", "expected"), [(900, []), (1_100, [PROVEN])])
def test_a_client_that_goes_on_after_an_answer_that_fences_it(recording, after_ms, expected):
    """The broker's log is the liar; one answer may have been under way."""
    events, rows = events_of(recording), list(recording.rows_by_group[GROUP])
    last = events[place(events, "committed")]
    commit = last_of(recording, "OFFSET_COMMIT", last.client)
    row = next(row for row in rows if row["template"] is None and row["id"] == commit.id)
    error = int(Error.FENCED_INSTANCE_ID)
    fenced = {"api": "HEARTBEAT", "error_code": error, "response": f'{{"errorCode":{error}}}'}
    earlier = {**moved(row, -after_ms), **fenced, "id": "9:9"}
    found, _ = clients(recording, events, [*rows, earlier])
    assert found == expected


def test_a_fenced_client_was_answered_so():
    events = events_of(DUPLICATE)
    client = events[place(events, "fenced")].client
    rows = [
        row
        for row in DUPLICATE.rows_by_group[GROUP]
        if row["template"] is not None
        or row["client_id"] != client
        or row["error_code"] != Error.FENCED_INSTANCE_ID
    ]
    found, _ = clients(DUPLICATE, events, rows)
    assert found == [PROVEN]


def test_a_client_that_goes_on_though_it_was_fenced():
    """Its history has no end of it: as if the duplicate's events were its own."""
    events = events_of(DUPLICATE)
    fenced = events[place(events, "fenced")]
    ends = ("fenced", "closing", "closed", "created")
    after = lambda one: one.client == fenced.client and one.at_ms >= fenced.at_ms
    kept = [one for one in events if not (after(one) and one.event in ends)]
    found, _ = clients(DUPLICATE, kept)
    assert PROVEN in found


@ALL
def test_an_answer_that_was_altered(recording):
    """The broker's log is the liar: it has another assignment than the client got."""
    rows = list(recording.rows_by_group[GROUP])
    syncs = [
        at
        for at, row in enumerate(rows)
        if row["template"] is None and row["api"] == "SYNC_GROUP" and row["error_code"] == 0
    ]
    shares = [json.loads(rows[at]["response"])["assignment"] for at in syncs]
    at = syncs[-1]
    other = next(share for share in shares if share != shares[-1])
    response = json.loads(rows[at]["response"]) | {"assignment": other}
    rows[at] = {**rows[at], "response": json.dumps(response)}
    found, _ = clients(recording, events_of(recording), rows)
    assert found == [PROVEN]


@ALL
@pytest.mark.parametrize(
    ("after_ms", "expected"),
    [(-2_100, [PROVEN]), (-1_900, []), (0, []), (1_900, []), (2_100, [PROVEN]), (9_000, [PROVEN])],
)
def test_what_a_broker_that_is_down_never_logged(recording, after_ms, expected):
    """A client may know it, up to two seconds from when the fault is announced."""
    events = events_of(recording)
    at = place(events, "committed", nth=9, client="static-2")
    down_ms = events[at].at_ms - after_ms
    invented = replace(events[at], offsets=99)
    outage = Outage(down_ms, down_ms + 20_000)
    assert clients(recording, [*events, invented], None, outage)[0] == expected


@ALL
def test_a_run_is_judged_with_its_history(recording):
    events = events_of(recording)
    at = place(events, "assigned")
    lie = changed(events, at, member_id="another")
    rows = recording.rows_by_group[GROUP]
    for seen, expected in ((events, []), (lie, [Breach.DISAGREE])):
        tables = list(check_rows(recording.context, GROUP, rows, seen))
        assert [row["kind"] for name, row in tables if name == "breaches"] == expected
        counted = {row["name"]: row["count"] for name, row in tables if name == "clients"}
        assert bool(counted.get("assigned")) == bool(seen)


@pytest.mark.parametrize(("kind", "twice"), [("librdkafka", 1), ("command", 0)])
def test_a_program_whose_times_are_whole_ms_may_commit_twice_in_one(kind, twice):
    judged = Clients(context(members={"c": kind}))
    judged.add((), 2 * [ClientEvent(1.0, EVENTS.index("committed"), "c", offsets=1)], inf)
    assert judged.counts[TWICE] == twice
