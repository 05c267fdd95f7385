"""Assignments that recorded coordinators accepted, and such as no assignor gives.

A lie is on both sides: to the leader's SyncGroup, and to the response that the member got, so
that the broker itself did nothing wrong.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from reference_coordinator.assignors import Assignment, TopicPartition
from reference_coordinator.replay import Outage
from reports.judgement.breaches import Breach
from reports.judgement.group import check_rows
from reports.judgement.logged import LoggedRow
from reports.judgement.recording import Recording
from reports.judgement.run.disturbance import Deletion
from tests.recorded.logs import RECORDINGS

GROUP = "static"
Shares = dict[str, tuple[TopicPartition, ...]]

EVERY = [(name, group) for name, recording in RECORDINGS.items() for group in recording.groups]
ALL = pytest.mark.parametrize("recording", RECORDINGS.values(), ids=RECORDINGS)


def read(share: str) -> Assignment:
    return Assignment.decode(base64.b64decode(share))


def written(partitions: Sequence[TopicPartition], like: str) -> str:
    blob = replace(read(like), partitions=tuple(partitions)).encode(0)
    return base64.b64encode(blob).decode()


def syncs(rows: Sequence[LoggedRow]) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Yield the SyncGroups answered NONE: place, request and response."""
    for place, row in enumerate(rows):
        if row["template"] is None and row["api"] == "SYNC_GROUP" and row["error_code"] == 0:
            yield place, json.loads(row["request"]), json.loads(row["response"])


def last_shares(recording: Recording) -> tuple[int, Mapping[str, str]]:
    """Return the last generation whose leader assigned, and its shares by member."""
    found = list(syncs(recording.rows_by_group[GROUP]))
    request = [request for _, request, _ in found if request["assignments"]][-1]
    shares = {one["memberId"]: one["assignment"] for one in request["assignments"]}
    return request["generationId"], shares


def altered(recording: Recording, shares: Mapping[str, str], generation: int) -> list[LoggedRow]:
    """Return a group's rows with other shares in one generation, on both sides."""
    rows = list(recording.rows_by_group[GROUP])
    changed = 0
    for place, request, response in syncs(rows):
        if request["generationId"] != generation:
            continue
        for one in request["assignments"]:
            one["assignment"] = shares[one["memberId"]]
        if (mine := shares.get(request["memberId"])) is not None:
            response["assignment"] = mine
        texts = {"request": json.dumps(request), "response": json.dumps(response)}
        rows[place] = {**rows[place], **texts}
        changed += 1
    assert changed
    return rows


def breaches(recording: Recording, rows: Sequence[LoggedRow], **changed: Any) -> list[str]:
    judge = replace(recording.context, **changed)
    tables = list(check_rows(judge, GROUP, rows))
    assert not [row for name, row in tables if name == "violations"], "it is on both sides"
    return [row["kind"] for name, row in tables if name == "breaches"]


@pytest.mark.parametrize(("name", "group"), EVERY)
def test_recorded_assignments_give_each_partition_once(name: str, group: str) -> None:
    tables = check_rows(RECORDINGS[name].context, group, RECORDINGS[name].rows_by_group[group])
    assert [row for table, row in tables if table == "breaches"] == []


@ALL
@pytest.mark.parametrize("count", [1, 2])
def test_a_partition_that_two_members_are_assigned(recording: Recording, count: int) -> None:
    generation, shares = last_shares(recording)
    one, other = sorted(shares)[:2]
    both = [*read(shares[one]).partitions, *read(shares[other]).partitions[:count]]
    lie = {**shares, one: written(both, shares[one])}
    assert breaches(recording, altered(recording, lie, generation)) == [Breach.ASSIGNED_TWICE]


@ALL
@pytest.mark.parametrize("count", [1, 2])
def test_a_partition_that_no_member_is_assigned(recording: Recording, count: int) -> None:
    generation, shares = last_shares(recording)
    one = min(shares)
    lie = {**shares, one: written(read(shares[one]).partitions[count:], shares[one])}
    rows = altered(recording, lie, generation)
    assert breaches(recording, rows) == [Breach.NOT_ASSIGNED]


@ALL
@pytest.mark.parametrize(
    ("from_ms", "until_ms", "found"),
    [(-9_000, -1, True), (-9_000, 1, False), (-1, 9_000, False), (1, 9_000, True)],
)
def test_a_leader_may_not_know_its_topics_while_brokers_are_down(
    recording: Recording, from_ms: float, until_ms: float, *, found: bool
) -> None:
    generation, shares = last_shares(recording)
    one = min(shares)
    lie = {**shares, one: written(read(shares[one]).partitions[1:], shares[one])}
    rows = altered(recording, lie, generation)
    answered_ms = min(
        rows[place]["answered_ms"]
        for place, request, _ in syncs(rows)
        if request["generationId"] == generation and request["assignments"]
    )
    outages = (Outage(answered_ms + from_ms, answered_ms + until_ms),)
    assert breaches(recording, rows, outages=outages) == [Breach.NOT_ASSIGNED] * found


@ALL
def test_nothing_of_a_topic_that_was_deleted_is_due(recording: Recording) -> None:
    generation, shares = last_shares(recording)
    one = min(shares)
    lie = {**shares, one: written((), shares[one])}
    deleted = {"orders": Deletion(0.0, inf)}
    assert breaches(recording, altered(recording, lie, generation), deleted=deleted) == []


@ALL
def test_a_partition_that_goes_to_another_member(recording: Recording) -> None:
    """The coordinator does not know the assignor's rules; neither need all shares be equal."""
    generation, shares = last_shares(recording)
    one, other = sorted(shares)[:2]
    mine, theirs = read(shares[one]).partitions, read(shares[other]).partitions
    lie = {
        **shares,
        one: written(mine[1:], shares[one]),
        other: written([*theirs, mine[0]], shares[other]),
    }
    assert breaches(recording, altered(recording, lie, generation)) == []


@ALL
def test_partitions_that_were_added_later_are_due_at_no_instant(recording: Recording) -> None:
    """A leader learns of them with its next metadata; `expect: owners` says when they are due."""
    rows = list(recording.rows_by_group[GROUP])
    orders = recording.run.first_partitions["orders"]
    assert breaches(recording, rows, partitions={"orders": orders - 1}) == []
    assert set(breaches(recording, rows, partitions={"orders": orders + 1})) == {
        Breach.NOT_ASSIGNED
    }
