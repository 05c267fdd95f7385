"""Requests that clients say were never answered, though they had to be.

LeaveGroup removed their member, or their broker gave the group up.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reports.judgement.breaches import Breach
from reports.judgement.clients.client_answers import Unanswered
from reports.judgement.findings import Finding, unanswered
from reports.judgement.logged import Chunk, LoggedRow, Requests
from reports.judgement.recording import Recording
from reports.judgement.run.history import EVENTS, ClientEvent, Said, event_of
from tests.reports.judgement.contexts import compared

NEVER = EVENTS.index("unanswered")
GROUP = "dynamic"
"""Its members send heartbeats for 28 s after the first of them has left."""


def first_to_leave(rows: Sequence[LoggedRow]) -> tuple[str, float]:
    """Return the member id in a group's first LeaveGroup, and when that was answered, ms."""
    seen = next(s for s in Requests.of(Chunk.of(rows)).observed if s.api == "LEAVE_GROUP")
    assert seen.response_fields["errorCode"] == 0
    return seen.request["memberId"], seen.answered_ms


def seconds_after(answered_ms: float, seconds: int) -> float:
    """Return a time with so many whole seconds between it and the second of the answer."""
    return (answered_ms // 1000 + 1 + seconds) * 1000.0


def judged(
    recording: Recording, rows: Sequence[LoggedRow], silent_from_ms: float = inf, **event: Any
) -> list[tuple[str, bool]]:
    """Return the kinds of breaches if a client tells of an event, and whether they are proven.

    No request was answered after `silent_from_ms`.
    """
    never = ClientEvent(order=NEVER, client="removed", api="SYNC_GROUP", **event)
    found, _ = compared(rows, [never], silent_from_ms, outages=recording.run.outages)
    return [(row["kind"], row["proven"]) for row in found]


@pytest.mark.parametrize(
    ("other", "proven"),
    [
        ({"seconds": 1}, None),
        ({"seconds": 2}, False),
        ({"seconds": 4}, False),
        # a coordinator that answers others for five seconds does not stand still
        ({"seconds": 5}, True),
        ({"seconds": 20}, True),
        ({"member_id": "another"}, None),
        ({"sent_after_ms": 1}, None),
        ({"until_ms": -1}, None),
        ({"silent": True}, None),
    ],
    ids=str,
)
def test_a_removed_members_request_is_answered(recording, other, proven):
    """But where its member was not removed, or later; or where the coordinator answers nobody."""
    rows = recording.rows_by_group[GROUP]
    member_id, answered_ms = first_to_leave(rows)
    at_ms = seconds_after(answered_ms, other.get("seconds", 20))
    found = judged(
        recording,
        rows,
        answered_ms if "silent" in other else inf,
        at_ms=answered_ms - 1 if "until_ms" in other else at_ms,
        sent_at_ms=answered_ms + other.get("sent_after_ms", -500),
        member_id=other.get("member_id", member_id),
    )
    assert found == ([] if proven is None else [(Breach.NEVER_ANSWERED, proven)])


@pytest.mark.parametrize(("instance", "proven"), [("c", False), ("ghost", None), ("a", None)])
def test_an_operator_names_the_instance(recording, instance, proven):
    """A batch that removes c and d, and finds no ghost; the group ends some seconds later."""
    rows = recording.rows_by_group["removal"]
    requests = Requests.of(Chunk.of(rows)).observed
    batch = next(
        seen.answered_ms
        for seen in requests
        if seen.api == "LEAVE_GROUP" and len(seen.response_fields["members"]) == 3
    )
    last_ms = seconds_after(max(seen.answered_ms for seen in requests), 0)
    found = judged(
        recording, rows, at_ms=last_ms, sent_at_ms=batch - 500, member_id="x", instance_id=instance
    )
    assert found == ([] if proven is None else [(Breach.NEVER_ANSWERED, proven)])


@pytest.mark.parametrize(
    ("other", "proven"),
    [
        ({}, True),
        ({"member_id": "another"}, None),  # it never joined there
        ({"sent_after_ms": 1}, None),
        # the broker may have coordinated no more by then
        ({"sent_after_ms": -100}, None),
        ({"served": {"errorCode": Error.COORDINATOR_LOAD_IN_PROGRESS}}, None),
        ({"served": {"topics": []}}, None),  # an OffsetCommit: NOT_COORDINATOR is in it, or not
        ({"until_ms": 1_000}, None),
        ({"later_by": "elsewhere"}, None),  # the broker may stand still since then
        ({"joins": "elsewhere"}, None),  # its request may wait there
    ],
    ids=str,
)
def test_a_broker_that_gives_the_group_up_answers_what_waits(recording, other, proven):
    """KAFKA-20115: a member's broker answers NOT_COORDINATOR from a time on."""
    rows = recording.rows_by_group[GROUP]
    seen = Requests.of(Chunk.of(rows)).observed
    joined = next(s for s in seen if s.api == "JOIN_GROUP" and not s.response_fields["errorCode"])
    beat = next(s for s in seen if s.api == "HEARTBEAT" and s.broker == joined.broker)
    gone_ms = 1_000 * (joined.answered_ms // 1_000 + 2)
    served = replace(
        beat, answered_ms=gone_ms - 200, response=other.get("served", {"errorCode": Error.NONE})
    )
    refused = [
        replace(
            beat,
            broker=other.get("later_by", joined.broker) if second else joined.broker,
            answered_ms=gone_ms + 1_000 * second,
            response={"errorCode": Error.NOT_COORDINATOR},
        )
        for second in range(12)
    ]
    again = replace(joined, broker=other.get("joins", joined.broker))
    watched = Unanswered()
    for each in (joined, again, served, *refused):
        watched.add(each)
    event = ClientEvent(
        gone_ms + other.get("until_ms", 12_000), NEVER, "waits", api="SYNC_GROUP",
        member_id=other.get("member_id", joined.response_fields["memberId"]),
        sent_at_ms=gone_ms + other.get("sent_after_ms", -500),
    )  # fmt: skip
    found = [(row["kind"], row["proven"], row["expected"]) for row in watched.reported(event)]
    expected = "SYNC_GROUP of waits is answered once its broker gives the group up"
    assert found == ([] if proven is None else [(Breach.NEVER_ANSWERED, proven, expected)])


@pytest.mark.parametrize(
    ("later_by", "joined_at", "found"),
    [
        (None, None, 1),
        ("elsewhere", None, 0),  # the broker that removed it may stand still since
        (None, "elsewhere", 0),  # the request may wait there
    ],
)
def test_the_broker_that_removed_it_has_the_request_and_does_not_stand_still(
    recording, later_by, joined_at, found
):
    seen = Requests.of(Chunk.of(recording.rows_by_group[GROUP])).observed
    leave = next(s for s in seen if s.api == "LEAVE_GROUP")
    name = leave.request["memberId"]
    joined = next(
        s
        for s in seen
        if s.api == "JOIN_GROUP"
        and (s.response_fields["errorCode"], s.response_fields["memberId"]) == (0, name)
    )
    seconds = [leave.answered_ms + 1_000 * second for second in range(12)]
    watched = Unanswered()
    watched.add(replace(joined, broker=joined_at or joined.broker))
    watched.add(leave)
    for at_ms in seconds:
        watched.add(
            replace(leave, api="HEARTBEAT", broker=later_by or leave.broker, answered_ms=at_ms)
        )
    event = ClientEvent(
        seconds[-1], NEVER, "waits", api="SYNC_GROUP", member_id=name,
        sent_at_ms=leave.answered_ms - 500,
    )  # fmt: skip
    assert len([*watched.reported(event)]) == found


def test_a_line_of_the_history():
    line = Said(
        at_ms=20.0, member="g-b", group="g", event="unanswered", api="SYNC_GROUP",
        sent_at_ms=10.0, member_id="b-1", instance_id="b",
    )  # fmt: skip
    assert event_of(line) == ClientEvent(
        20.0, NEVER, "g-b", member_id="b-1", instance_id="b", api="SYNC_GROUP", sent_at_ms=10.0
    )


def test_groups_with_nothing_else_wrong():
    never = Breach.NEVER_ANSWERED.value
    wrong = [("g", never), ("g", never), ("both", never), ("both", "late"), ("other", "late")]
    found = [Finding(kind, group, 0.0, 0.0, 0.0, "", "", "1", 1) for group, kind in wrong]
    assert unanswered(found) == {"g"}
