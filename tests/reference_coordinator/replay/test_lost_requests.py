"""Requests whose answers never came: they were acted on at some time after they were sent, or not.

The evidence is that of clients, without any line of a coordinator.
"""

from dataclasses import replace as altered

import pytest

from reference_coordinator.replay import Replay, replay
from tests.reference_coordinator.event_files.event_lines import of_story, one
from tests.reference_coordinator.replay.conftest import (
    IDS,
    PROFILE,
    Story,
    rejoin,
    stable,
    unexplained,
    wrong,
)

AGAIN = 27


def lose(story: Story, request: str) -> str:
    """Let the client of a request go before its answer comes."""
    place = next(i for i, seen in enumerate(story.requests) if seen.id == request)
    gone = altered(story.requests[place], response=None, answered_ms=float("inf"))
    story.requests[place] = gone
    return request


def judged(story: Story) -> Replay:
    """Replay what the clients saw."""
    return replay(one(of_story(story)).evidence, PROFILE)


def left(told_from: float | None, until: float = float("inf")) -> Story:
    """b says at 2000 that it leaves, and is gone; a is told to come again for some time."""
    story = stable()
    story.heartbeats("b", 1_510, 1_510)
    lose(story, story.leave("b", 2_000))
    for at in range(1_500, 4_000, 100):
        again = told_from is not None and told_from <= at < until
        story.heartbeat("a", at, AGAIN if again else 0)
    return story


@pytest.mark.parametrize("told_from", [2_100, 2_900, None], ids=["at once", "late", "never"])
def test_it_may_have_been_acted_on_at_any_time_or_never(told_from: float | None) -> None:
    outcome = judged(left(told_from))
    assert outcome.violations == ()
    assert unexplained(outcome) == []
    assert [row.reason for row in outcome.rows[1:]] == (["leave"] if told_from else [])


def test_it_was_not_acted_on_before_it_was_sent() -> None:
    assert wrong(judged(left(1_900))) == ["HEARTBEAT:a:1900"]


def test_it_was_not_acted_on_and_then_not() -> None:
    """What began with it does not end by itself."""
    assert wrong(judged(left(2_100, until=2_500)))


def test_what_it_has_no_part_in_stays_a_violation() -> None:
    story = left(2_100)
    story.change("HEARTBEAT:a:1700", errorCode=82)
    outcome = judged(story)
    assert wrong(outcome) == unexplained(outcome) == ["HEARTBEAT:a:1700"]
    assert outcome.violations[0].searched


def silent(told_from: float) -> Story:
    """b is heard last at 2010, and sends something at 3000 that nobody answers."""
    story = stable()
    story.heartbeats("b", 1_510, 2_010)
    lose(story, story.heartbeat("b", 3_000))
    for at in range(1_500, 7_500, 100):
        story.heartbeat("a", at, AGAIN if at >= told_from else 0)
    return story


@pytest.mark.parametrize("told_from", [5_100, 6_100, 7_400])
def test_a_lost_heartbeat_may_have_kept_a_session_alive(told_from: float) -> None:
    story = silent(told_from)
    assert judged(story).violations == ()
    story.requests = [seen for seen in story.requests if seen.response is not None]
    assert bool(judged(story).violations) is (told_from > 5_600)


def test_a_lost_heartbeat_ends_no_session_early() -> None:
    assert wrong(judged(silent(4_900))) == ["HEARTBEAT:a:4900"]


def joined_and_gone(member_id: str) -> Story:
    """c joins and waits, and its process is gone before it is told who it is."""
    story = stable()
    story.heartbeats("a", 1_500, 1_900)
    lose(story, story.join("c", 2_000, 9_000))
    story.heartbeat("a", 2_100, AGAIN)
    story.heartbeat("b", 2_110, AGAIN)
    rejoin(story, 2_500, 2)
    census = next(s for s in story.requests if s.id == "JOIN_GROUP:a:2500")
    newcomer = {"memberId": member_id, "groupInstanceId": "c", "metadata": "bQ=="}
    story.change(census.id, members=[*census.told["members"], newcomer])
    for at in range(2_600, 5_000, 500):
        story.ask("HEARTBEAT", "a", at, {"generationId": 2}, {})
        story.ask("HEARTBEAT", "b", at + 10, {"generationId": 2}, {})
    return story


def test_a_lost_join_waits_as_any_other_and_its_member_is_named_by_the_leader_s_answer() -> None:
    outcome = judged(joined_and_gone("c-1234"))
    assert outcome.violations == ()
    assert [row.members for row in outcome.rows] == [2, 3]


@pytest.mark.parametrize("member_id", ["x-1234", IDS["b"]])
def test_a_member_goes_by_no_other_name(member_id: str) -> None:
    assert wrong(judged(joined_and_gone(member_id)))[0] == "JOIN_GROUP:a:2500"


NAMED = {name: {"memberId": f"{name}-4711", "groupInstanceId": name, "metadata": "bQ=="}
         for name in "abc"}  # fmt: skip


@pytest.mark.parametrize(
    ("leader", "members", "answered", "fine"),
    [
        ("a", "", 1_501, True),
        ("b", "", 1_501, True),
        ("c", "c", 1_201, True),  # neither was acted on
        ("c", "abc", 1_701, True),  # both were after c, and made the initial delay go on
        ("c", "abc", 1_501, False),
        ("c", "cc", 1_501, False),
    ],
)
def test_two_clients_may_be_gone_at_once(
    leader: str, members: str, answered: float, *, fine: bool
) -> None:
    """a and b join and are lost; whoever came first leads, and c is told so."""
    story = Story()
    lose(story, story.join("a", 0, 1_001))
    lose(story, story.join("b", 20, 1_001))
    told = story.join("c", 700, answered)
    story.change(
        told,
        leader=NAMED[leader]["memberId"],
        memberId=NAMED["c"]["memberId"],
        members=[NAMED[name] for name in members],
    )
    assert (judged(story).violations == ()) is fine


def test_a_request_that_waits_at_the_end_is_no_violation() -> None:
    story = stable()
    lose(story, story.join("c", 2_000, 9_000))
    assert judged(story).violations == ()


def test_joins_that_overlap_come_in_any_order() -> None:
    """b leads, so its join was the first, though it was sent after that of a."""
    story = Story()
    for who, at, members in (("a", 0, ""), ("b", 20, "ab")):
        told = story.join(who, at, 1_001, members=members)
        story.change(told, leader=IDS["b"])
    assert judged(story).violations == ()
    story.change("JOIN_GROUP:a:0", leader=IDS["c"])
    assert wrong(judged(story))


@pytest.mark.parametrize(("protocol", "fine"), [("x", True), ("y", True), ("z", False)])
def test_a_tied_vote_goes_either_way(protocol: str, *, fine: bool) -> None:
    """a prefers x and b y; z is the last choice of both."""
    story = Story()
    for who, at, order, members in (("a", 0, "xyz", "ab"), ("b", 20, "yxz", "")):
        told = story.join(who, at, 1_001, members=members)
        story.change(told, protocolName=protocol)
        place = next(i for i, seen in enumerate(story.requests) if seen.id == told)
        seen = story.requests[place]
        protocols = [{"name": name, "metadata": "bQ=="} for name in order]
        story.requests[place] = altered(seen, request={**seen.request, "protocols": protocols})
    assert (judged(story).violations == ()) is fine
