"""Committed offsets of recorded groups, and such as went back."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import Breach
from reports.judgement.clients.comparison import Clients
from reports.judgement.clients.offsets import NOT_THEIRS, Offsets
from reports.judgement.logged import LoggedRow
from reports.judgement.recording import Recording
from reports.judgement.run.disturbance import Deletion, Deletions
from tests.recorded.logs import HISTORIES, RECORDINGS
from tests.reports.judgement.clients.test_assignments import blob
from tests.reports.judgement.contexts import compared, context

GROUP = "static"
NOTHING_DELETED: Deletions = MappingProxyType({})
ALL = pytest.mark.parametrize(
    "recording", [*RECORDINGS.values(), *HISTORIES.values()], ids=[*RECORDINGS, *HISTORIES]
)


def commits(rows: Sequence[LoggedRow]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield place and body of the commits, in order of time."""
    found = [place for place, row in enumerate(rows) if row.get("api") == "OFFSET_COMMIT"]
    for place in sorted(found, key=lambda place: rows[place]["at_ms"]):
        yield place, json.loads(rows[place]["request"])


def only(body: dict[str, Any]) -> dict[str, Any]:
    """Return what a commit says of its first partition."""
    found: dict[str, Any] = body["topics"][0]["partitions"][0]
    return found


def judged(recording: Recording, rows: Sequence[LoggedRow]) -> tuple[Sequence[dict[str, Any]], int]:
    """Return the breaches, and how many partitions were committed by others than their owners."""
    found, clients = compared(rows, outages=recording.run.outages)
    return found, clients.counts[NOT_THEIRS]


def twice(rows: Sequence[LoggedRow]) -> tuple[int, int, int]:
    """Find the last commit of a partition that was committed before; return that offset, too."""
    last: dict[int, int] = {}
    found = None
    for place, body in commits(rows):
        number = only(body)["partitionIndex"]
        if number in last:
            found = place, number, last[number]
        for one in body["topics"][0]["partitions"]:
            last[one["partitionIndex"]] = one["committedOffset"]
    assert found is not None
    return found


def altered(rows: Sequence[LoggedRow], place: int, **fields: Any) -> list[LoggedRow]:
    """Change what a commit says of its first partition, and its answer."""
    row = rows[place]
    request, response = json.loads(row["request"]), json.loads(row["response"])
    only(request).update(fields)
    if "partitionIndex" in fields:
        only(response)["partitionIndex"] = fields["partitionIndex"]
    texts = {"request": json.dumps(request), "response": json.dumps(response)}
    return [*rows[:place], {**row, **texts}, *rows[place + 1 :]]


@ALL
def test_recorded_offsets_never_go_back(recording):
    for rows in recording.rows_by_group.values():
        assert judged(recording, rows) == ([], 0)


@ALL
@pytest.mark.parametrize(("more", "went_back"), [(1, False), (0, False), (-1, True), (-9, True)])
def test_an_offset_below_the_one_before(recording, more, went_back):
    rows = recording.rows_by_group[GROUP]
    place, number, before = twice(rows)
    rows, _ = judged(recording, altered(rows, place, committedOffset=before + more))
    assert [row["kind"] for row in rows] == [Breach.OFFSET_WENT_BACK] * went_back
    if went_back:
        assert (
            f"committed orders-{number} back from offset {before:,} to {before + more:,}"
            in rows[0]["observed"]
        )
        assert f"offset {before}," in rows[0]["expected"]


@ALL
@pytest.mark.parametrize(("after_ms", "went_back"), [(-9, False), (-1, False), (1, True)])
def test_commits_that_overlap_have_no_order(recording, after_ms, went_back):
    """The later one arrives before, or after, the answer to the one before it."""
    rows = recording.rows_by_group[GROUP]
    place, number, before = twice(rows)
    answered_ms = next(
        row["answered_ms"]
        for at, body in reversed([*commits(rows)])
        for row in [rows[at]]
        if at != place
        and number in {p["partitionIndex"] for p in body["topics"][0]["partitions"]}
        and row["at_ms"] < rows[place]["at_ms"]
    )
    lie = altered(rows, place, committedOffset=before - 1)
    lie[place] = {**lie[place], "earliest_ms": answered_ms + after_ms}
    found, _ = judged(recording, lie)
    assert [row["kind"] for row in found] == [Breach.OFFSET_WENT_BACK] * went_back


@ALL
def test_a_commit_of_a_partition_that_is_not_the_member_s(recording):
    """It is counted, and it is a cause: what follows it may be lower."""
    rows = recording.rows_by_group[GROUP]
    place, _, _ = twice(rows)
    assert judged(recording, altered(rows, place, partitionIndex=99, committedOffset=0)) == ([], 1)


def commit(number: int, at_ms: float, offset: int, error: int = 0) -> ObservedRequest:
    partition = {"partitionIndex": 0, "committedOffset": offset}
    answer = {"partitionIndex": 0, "errorCode": error}
    body = {
        "generationId": 5,
        "memberId": "m",
        "topics": [{"name": "t", "partitions": [partition]}],
    }
    return ObservedRequest(
        f"1:{number}", "1", "OFFSET_COMMIT", 8, "c", "x", at_ms, at_ms, at_ms, at_ms + 1, body,
        {"topics": [{"name": "t", "partitions": [answer]}]},
    )  # fmt: skip


def offsets_of(
    *requests: ObservedRequest, deleted: Deletions = NOTHING_DELETED
) -> list[tuple[str, bool]]:
    """Judge the commits of a member that has the partition in generation 5."""
    offsets, found = Offsets(context(deleted=deleted)), list[dict[str, Any]]()
    body = {"memberId": "m", "generationId": 5}
    sync = ObservedRequest("1:1", "1", "SYNC_GROUP", 5, "c", "x", 1, 1, 1, 2, body, {})
    offsets.assigned(sync, frozenset({"t-0"}))
    for one in requests:
        found += (row for _, row in offsets.committed(one))
    return [(row["kind"], row["proven"]) for row in found]


@pytest.mark.parametrize(
    ("error", "again", "proven"),
    [
        (Error.COORDINATOR_LOAD_IN_PROGRESS, 100, False),
        (Error.REQUEST_TIMED_OUT, 100, False),
        (Error.COORDINATOR_LOAD_IN_PROGRESS, 99, True),
        (Error.REBALANCE_IN_PROGRESS, 100, True),
        (Error.NONE, 100, True),
    ],
)
def test_a_refused_commit_is_sent_again_after_a_later_one(error, again, proven):
    found = offsets_of(commit(2, 100, 100, error), commit(3, 200, 110), commit(4, 300, again))
    assert found == [(Breach.OFFSET_WENT_BACK, proven)]


@pytest.mark.parametrize(
    ("changed", "went_back"),
    [
        ({"serial": 7, "connection": "old"}, False),
        ({"serial": 9, "connection": "old"}, True),
        ({"serial": 7}, True),
        ({"serial": 7, "connection": "old", "client_id": "d"}, True),
    ],
)
def test_a_commit_that_waited_in_a_connection_was_sent_before(changed, went_back):
    """Java gave the connection up; its broker read what it held later (4.3.0)."""
    newer = replace(commit(2, 100, 110), serial=8)
    older = replace(commit(3, 200, 100), **changed)
    assert offsets_of(newer, older) == [(Breach.OFFSET_WENT_BACK, True)] * went_back


@pytest.mark.parametrize(
    ("topic", "deletion", "went_back"),
    [
        ("t", Deletion(250, 1_250), False),
        ("t", Deletion(305, 1_305), True),
        ("t", Deletion(50, 150), True),
        ("other", Deletion(250, 1_250), True),
    ],
)
def test_a_topic_that_was_deleted_begins_anew(topic, deletion, went_back):
    """It is made again, and its first messages are consumed again."""
    found = offsets_of(commit(2, 200, 110), commit(3, 300, 5), deleted={topic: deletion})
    assert found == [(Breach.OFFSET_WENT_BACK, True)] * went_back


@pytest.mark.parametrize(
    ("kind", "serials", "found"),
    [
        ("librdkafka", (None, None), Breach.OFFSET_WENT_BACK),
        ("java", (None, None), Breach.OFFSET_WENT_BACK),
        ("aiokafka", (None, None), "commits-on"),
        ("command", (None, None), "commits-on"),
        # a lower number on a new connection: the commit was sent before, if numbers go on
        ("librdkafka", (8, 2), None),
        ("java", (8, 2), None),
        ("franz-go", (8, 2), "commits-on"),
        ("command", (8, 2), "commits-on"),
    ],
)
def test_offsets_and_numbers_of_other_clients_are_their_own_choice(kind, serials, found):
    clients = Clients(context(members={"c": kind}))
    given = {"assignment": blob(("t", 0))}
    body = {"memberId": "m", "generationId": 5}
    sync = replace(commit(1, 1, 1), api="SYNC_GROUP", request=body, response=given)
    newer, back = commit(2, 100, 110), commit(3, 200, 100)
    if serials[0] is not None:
        newer = replace(newer, serial=serials[0])
        back = replace(back, serial=serials[1], connection="new")
    rows = clients.add([(one, 0, one.at_ms) for one in (sync, newer, back)], (), float("inf"))
    kinds = [row["kind"] for row in rows] + [row["rule"] for row in clients.about_clients]
    assert kinds == ([] if found is None else [found])
    assert [row["requests"] for row in clients.about_clients] == ["1:3"] * (found == "commits-on")


def test_a_client_whose_offsets_go_back_again_and_again_is_named_once():
    clients = Clients(context(members={"c": "command"}))
    given, body = {"assignment": blob(("t", 0))}, {"memberId": "m", "generationId": 5}
    sync = replace(commit(1, 1, 1), api="SYNC_GROUP", request=body, response=given)
    commits = [commit(at, at * 100, offset) for at, offset in enumerate((80, 66, 67, 60), 2)]
    clients.add([(one, 0, one.at_ms) for one in (sync, *commits)], (), float("inf"))
    [found] = clients.about_clients
    assert found["what"] == (
        "c committed t-0 back from offset 80 to 66: the next owner reads 14 records again;"
        " it did so twice"
    )


def test_what_members_had_long_ago_is_forgotten():
    offsets = Offsets(context())
    for number in range(1, 50):
        for restart in range(3):
            body = {"memberId": f"i-{number}-{restart}", "groupInstanceId": "i"}
            sync = commit(number, number, 1)
            sync = replace(sync, request={**body, "generationId": number})
            offsets.assigned(sync, frozenset())
    assert list(offsets._shares) == [47, 48, 49]
    assert all(len(of) == 1 for of in offsets._shares.values())
