"""Members die while their group forms: what the tap saw of them has requests without an answer."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.driving.simulation import Exchange
from reports.judgement.findings import Finding, proven_roots
from selftest.mutants.judging import found
from tests.recorded.logs import UNANSWERED
from tests.reports.forming_groups import (
    GROUP,
    NEVER,
    ONE_STEP,
    START_MS,
    TWO_STEPS,
    Broker,
    Death,
    Member,
)
from tests.reports.judged_here import judged_here

SEEDS = range(48)
APIS = ("JOIN_GROUP",) * 4 + ("SYNC_GROUP",) * 2 + ("HEARTBEAT", "LEAVE_GROUP")
AFTER_MS = (0.05, 20.0, 60.0, 500.0, 1_500.0, 4_000.0)
"""How long after a request its sender dies: at once, or while the group forms."""
APART_MS = 60.0
"""How far two JoinGroups are apart that no broker takes up in the other order."""
EARLIER_MS = 1_600.0
"""More than a broker may take to send an answer."""


def test_an_unanswered_join_that_came_first_leads() -> None:
    for name, verdict in (("join-early-4.3.0", "unknown"), ("join-leader-4.3.0", "pass")):
        judged = judged_here(UNANSWERED[name].folder)
        assert (judged["verdict"], judged["findings"]) == (verdict, [])
        assert all("payments-0 was not verified" in why for why in judged["unknown_because"])


def death(draw: random.Random) -> Death:
    """Draw how a process ends."""
    api = draw.choice(APIS)
    nth = 1 if api == "LEAVE_GROUP" else draw.choice((1, 1, 2, 2, 3))
    down_ms = draw.choice((500.0, 2_500.0, 7_000.0))
    return Death(api, nth, draw.choice(AFTER_MS), draw.random() < 0.8, down_ms)


def members(draw: random.Random) -> list[Member]:
    """Draw a group: static, dynamic or both, of which one or more members die."""
    cooperative, version = draw.random() < 0.35, draw.choice((TWO_STEPS, TWO_STEPS, ONE_STEP))
    statics = draw.choice(((True,), (False,), (True, False)))
    found = []
    for number in range(draw.randint(2, 5)):
        dies = draw.random() < (0.9 if number == 0 else 0.4)
        deaths = tuple(death(draw) for _ in range(draw.choice((1, 1, 1, 2)) if dies else 0))
        leaves = draw.random() < 0.2 or any(one.api == "LEAVE_GROUP" for one in deaths)
        static = draw.choice(statics)
        starts_ms = draw.choice((0, 0, 30, 60, 200, 700, 3_500, 9_000)) + draw.uniform(0, 20)
        of_version = TWO_STEPS if static else version
        leaves_ms = START_MS + 18_000.0 if leaves else NEVER
        member = Member(f"m{number}", starts_ms, static, deaths, of_version, cooperative, leaves_ms)
        found.append(member)
    return found


def forming(seed: int) -> Broker:
    draw = random.Random(seed)
    begins_ms = draw.uniform(0.0, 300.0)
    loads_ms = draw.choice((None, (begins_ms, begins_ms + draw.uniform(1.0, 500.0))))
    return Broker(members(draw), seed, loads_ms=loads_ms)


def judged(broker: Broker, folder: Path) -> list[Finding]:
    recording = broker.write_run(folder)
    assert recording.gaps == []
    return found(recording, GROUP)


def unanswered(broker: Broker) -> set[str]:
    """Return the APIs of which requests have no answer."""
    return {one.api for one in broker.exchanges.values() if one.note.response is None}


def test_what_became_of_unanswered_requests_is_explained(tmp_path: Path) -> None:
    lost = []
    for seed in SEEDS:
        broker = forming(seed)
        assert judged(broker, tmp_path / str(seed)) == [], seed
        lost.append(unanswered(broker))
    assert sum(map(bool, lost)) > len(SEEDS) / 2
    assert set.union(*lost) == set(APIS)


def first_joins(broker: Broker) -> list[Exchange]:
    """Return the JoinGroups that were answered with generation 1, in the order they were sent."""
    answered = (one for one in broker.exchanges.values() if one.note.response)
    joins = (one for one in answered if one.api == "JOIN_GROUP")
    joined = lambda one: (one["errorCode"], one["generationId"]) == (Error.NONE, 1)
    return [one for one in joins if joined(one.note.response)]


def with_wrong_leader(broker: Broker) -> bool:
    """Let the last member lead generation 1; False if it may have been the first."""
    joins = first_joins(broker)
    if not joins or joins[-1].at_ms < joins[0].at_ms + APART_MS:
        return False
    last = joins[-1].note.response
    leads = last["memberId"] == last["leader"]  # of an instance whose first process had no answer
    for join in joins:
        broker.alter(join, leader=last["memberId"])
    return not leads


def with_early_answer(broker: Broker) -> bool:
    """Let one JoinGroup of generation 1 be answered before others; False if none waits so long."""
    joins = first_joins(broker)
    waits = [one for one in joins if one.note.ended_ms > one.at_ms + EARLIER_MS]
    if len(joins) < 2 or not waits:
        return False
    broker.alter(waits[0], earlier_ms=EARLIER_MS)
    return True


@pytest.mark.parametrize("lie", [with_wrong_leader, with_early_answer])
def test_unanswered_requests_hide_no_lie(lie: Callable[[Broker], bool], tmp_path: Path) -> None:
    seen = 0
    for seed in SEEDS[:24]:
        broker = forming(seed)
        if unanswered(broker) and lie(broker):
            seen += 1
            assert proven_roots(judged(broker, tmp_path / str(seed))), seed
    assert seen > 4


def test_the_first_request_after_a_load_may_have_no_answer(tmp_path: Path) -> None:
    """Before it the broker refused another member, which it accepts a little later."""
    first = Member("m0", 460.0, static=True, deaths=(Death("JOIN_GROUP"),))
    refused = [Member("m1", 320.0, static=True), Member("m2", 330.0, static=True)]
    broker = Broker([first, *refused], busy_ms=2.0, loads_ms=(440.0, 450.0))
    assert {join.note.response["leader"][:2] for join in first_joins(broker)} == {"m0"}
    assert judged(broker, tmp_path / "run") == []
