"""What answers alone tell of generations: members past the tap, and reasons."""

from dataclasses import replace
from typing import Any

import pytest

from reference_coordinator.classic.effects import Reason
from reference_coordinator.replay import ObservedRequest
from reports.judgement.timelines.timeline import Generations

MADE = "i-0c4ee9b1-8319-4106-a901-689a912bada8"


def join(
    member: str, answer: dict[str, Any] | None, at_ms: float = 1_000.0, instance: str | None = "i"
) -> ObservedRequest:
    return ObservedRequest(
        "1:1", "1", "JOIN_GROUP", 9, "c", "connection", at_ms, at_ms, at_ms + 5, at_ms + 5,
        {"groupId": "g", "memberId": member, "groupInstanceId": instance}, answer,
    )  # fmt: skip


def naming(*members: str) -> dict[str, Any]:
    listed = [{"memberId": one, "groupInstanceId": None} for one in members]
    return {"errorCode": 0, "memberId": "a", "generationId": 2, "leader": "a", "members": listed}


def generations(*unanswered: ObservedRequest, named: tuple[str, ...] = (MADE,)) -> Generations:
    found = Generations("g", lambda *_: 1)
    found.add_unanswered(unanswered)
    found.add([join("a", naming("a", *named), 2_000.0, None)])
    return found


OTHER = MADE.replace("0c4e", "1d5f")


@pytest.mark.parametrize(
    ("unanswered", "named", "unseen"),
    [
        ([], [MADE], 1),
        ([join("", None, instance="j")], [MADE], 1),
        ([join("", None)], [MADE], 0),
        ([join(MADE, None)], [MADE], 0),
        ([join("", None, instance=None)], [MADE.replace("i-", "c-", 1)], 0),
        ([join("", None)], [MADE, OTHER], 1),
        ([join("", None)], ["i-no-id"], 1),
    ],
    ids=["nothing passed the tap", "of another instance", "may have made it", "had it",
         "of the client", "makes one at most", "no id of a broker"],
)  # fmt: skip
def test_a_member_of_which_nothing_passed_the_tap_is_unseen(unanswered, named, unseen):
    """A JoinGroup without an answer may have made an id."""
    assert generations(*unanswered, named=tuple(named)).unseen_members == unseen


@pytest.mark.parametrize(
    ("member", "metadata", "certain"), [("a", "2", False), ("a", "1", True), ("b", "2", True)]
)
def test_a_member_that_rejoins_twice_with_other_metadata(member, metadata, certain):
    """The leader rejoined as it was, or its metadata changed: no answer says which began it."""
    found = Generations("g", lambda *_: 1)
    first, *again = (
        join(who, {**naming("a", "b"), "memberId": who}, at_ms, None)
        for who, at_ms in (("a", 100.0), ("b", 200.0), ("a", 2_000.0), (member, 2_010.0))
    )
    with_metadata = [
        replace(one, request={**one.request, "protocols": [{"name": "range", "metadata": data}]})
        for one, data in zip(again, ("1", "1", metadata), strict=True)
    ]
    found.add([first, *with_metadata])
    row = {"earliest_ms": 1_900.0, "latest_ms": 2_400.0, "reason": Reason.LEADER_REJOIN}
    assert (found.forced([row])[0]["reason"] is not None) == certain


@pytest.mark.parametrize("reason", [Reason.SESSION_EXPIRED, Reason.PENDING_SYNC])
def test_a_timer_is_no_certain_reason_where_a_request_may_have_come_first(reason):
    found = generations()
    row = {"earliest_ms": 1_900.0, "latest_ms": 2_400.0, "reason": reason}
    assert found.forced([row])[0]["reason"] is None
    assert found.forced([{**row, "earliest_ms": 2_100.0}])[0]["reason"] == reason
    assert found.forced([{**row, "reason": Reason.NEW_MEMBER}])[0]["reason"] == Reason.NEW_MEMBER
