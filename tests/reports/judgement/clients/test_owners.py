"""Owners by the clients' own account, in made-up groups and in a recorded one."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import Breach
from reports.judgement.clients.ownership import UNTIL_ANSWERED, Owners
from reports.judgement.run.history import EVENTS, ClientEvent
from tests.recorded.logs import HISTORIES
from tests.reports.judgement.contexts import compared

Found = list[tuple[str, bool]]
TWICE, MAYBE_TWICE = (Breach.OWNED_TWICE, True), (Breach.OWNED_TWICE, False)


def request(api: str, client: str, at_ms: float, generation: int, **more: Any) -> ObservedRequest:
    body = {"memberId": f"{client}-id", "generationId": generation, "groupInstanceId": None, **more}
    response = {"errorCode": 0, "generationId": generation}
    return ObservedRequest(
        "1:1", "1", api, 5, client, "c", at_ms - 1, at_ms, at_ms, at_ms, body, response
    )


def commit(client: str, at_ms: float, *numbers: int) -> ObservedRequest:
    partitions = [{"partitionIndex": number, "committedOffset": 1} for number in numbers]
    answers = [{"partitionIndex": number, "errorCode": 0} for number in numbers]
    return replace(
        request(
            "OFFSET_COMMIT", client, at_ms, 1, topics=[{"name": "o", "partitions": partitions}]
        ),
        response={"topics": [{"name": "o", "partitions": answers}]},
    )


def event(at_ms: float, client: str, name: str, *numbers: int) -> ClientEvent:
    partitions = frozenset(f"o-{number}" for number in numbers)
    return ClientEvent(at_ms, EVENTS.index(name), client, partitions)


class Group:
    """A group of a and b in generation 1, each with two partitions."""

    def __init__(self, **instances: str) -> None:
        self.owners = Owners(Counter())
        self.instances = instances
        self.found: list[dict[str, Any]] = []
        for client, numbers in (("a", (0, 1)), ("b", (2, 3))):
            self.join(client, 1)
            self.assign(client, 1_000, 1, *numbers)

    def join(self, client: str, generation: int) -> None:
        instance = self.instances.get(client)
        self.owners.joined(request("JOIN_GROUP", client, 0, generation, groupInstanceId=instance))

    def assign(self, client: str, at_ms: float, generation: int, *numbers: int) -> None:
        sync = request("SYNC_GROUP", client, at_ms, generation)
        self.owners.assigned(event(at_ms, client, "assigned", *numbers), sync)

    def revoke(self, client: str, at_ms: float, *numbers: int) -> None:
        given = event(at_ms, client, "revoked", *numbers)
        self.found += [row for _, row in self.owners.gave_up(given)]

    def commit(self, client: str, at_ms: float, *numbers: int) -> None:
        given = event(at_ms, client, "committed")
        rows = self.owners.committed(given, commit(client, at_ms, *numbers))
        self.found += [row for _, row in rows]

    def end(self) -> Found:
        self.found += [row for _, row in self.owners.end()]
        return [(row["kind"], row["proven"]) for row in self.found]


@pytest.mark.parametrize(
    ("after_ms", "expected"),
    [(-1.0, []), (99.0, []), (101.0, [MAYBE_TWICE]), (999.0, [MAYBE_TWICE]), (1_001.0, [TWICE]),
     (None, [TWICE])],
)  # fmt: skip
def test_a_member_gives_up_before_another_has_it(after_ms, expected):
    group = Group()
    group.join("a", 2)
    group.join("b", 2)
    if after_ms is not None and after_ms < 0:
        group.revoke("a", 2_000 + after_ms, 0, 1)
    group.revoke("b", 1_900, 2, 3)
    group.assign("b", 2_000, 2, 0, 2)
    if after_ms is not None and after_ms > 0:
        group.revoke("a", 2_000 + after_ms, 0, 1)
    assert group.end() == expected
    assert not group.owners.counts


def test_a_cooperative_member_keeps_the_rest():
    group = Group()
    for client in ("a", "b"):
        group.join(client, 2)
    group.revoke("a", 1_900, 1)
    group.assign("a", 2_000, 2)
    for client in ("a", "b"):
        group.join(client, 3)
    group.assign("b", 2_500, 3, 1)
    assert group.end() == []
    held = {client: {*mine} for client, mine in group.owners.held.items()}
    assert held == {"a": {"o-0"}, "b": {"o-1", "o-2", "o-3"}}


def test_a_member_that_did_not_join_owns_until_it_is_told():
    group = Group()
    group.join("b", 2)
    group.assign("b", 2_000, 2, 0, 1)
    assert group.owners.counts == {UNTIL_ANSWERED: 2}
    group.owners.answered("a", 5_000)
    group.revoke("a", 5_001, 0, 1)
    assert group.end() == []


def test_the_second_process_of_an_instance_owns_what_the_first_does():
    group = Group(a="i", second="i")
    group.join("second", 1)
    group.assign("second", 2_000, 1, 0, 1)
    assert group.end() == []
    assert group.owners.counts == {UNTIL_ANSWERED: 2}
    other = Group(a="i", second="j")
    other.join("second", 1)
    other.assign("second", 2_000, 1, 0, 1)
    assert other.end() == [TWICE]


@pytest.mark.parametrize(
    ("knows_ms", "numbers", "expected"),
    [
        (None, (0,), []),
        (5_000.0, (0,), [TWICE]),
        (5_000.0, (2,), []),
        (6_000.0, (0,), []),
    ],
)
def test_a_member_that_was_told_commits_no_more(knows_ms, numbers, expected):
    group = Group()
    group.join("b", 2)
    group.assign("b", 2_000, 2, 0, 1)
    if knows_ms is not None:
        group.owners.answered("a", knows_ms)
    group.commit("a", 6_000, *numbers)
    assert group.end() == expected


@pytest.mark.parametrize(("again", "expected"), [((0,), []), ((1,), [TWICE])])
def test_a_member_that_is_assigned_it_again_owns_it(again, expected):
    """Its client said nothing of what it lost: some report no loss."""
    group = Group()
    group.join("b", 2)
    group.assign("b", 2_000, 2, 0)
    group.owners.answered("a", 5_000)
    group.revoke("b", 5_500, 0)
    for client in ("a", "b"):
        group.join(client, 3)
    group.assign("a", 5_600, 3, *again)
    group.commit("a", 6_000, 0)
    assert group.end() == expected


REMOVAL = HISTORIES["removal-3.9.1-java"]


@pytest.mark.parametrize(
    ("late_ms", "expected"),
    [(0.0, set()), (80.0, set()), (500.0, {MAYBE_TWICE}), (2_000.0, {TWICE})],
)
def test_a_recorded_member_that_gives_up_too_late(late_ms, expected):
    """Java's coordinator, eager members: what moves is revoked after it was assigned to another."""
    events = list(REMOVAL.events_by_group["static"])
    revoked, assigned = handover(events)
    if late_ms:
        at = events.index(revoked)
        events[at] = replace(revoked, at_ms=assigned.at_ms + late_ms)
        later = [one for one in events if one.client == revoked.client]
        for one in later:  # its next assignment comes after that, as long as it is known
            if one.event == "assigned" and revoked.at_ms < one.at_ms <= events[at].at_ms:
                events.remove(one)
    rows = REMOVAL.rows_by_group["static"]
    found, _ = compared(rows, events, outages=REMOVAL.run.outages)
    overlaps = [(row["kind"], row["proven"]) for row in found if row["kind"] == Breach.OWNED_TWICE]
    assert {*overlaps} == expected


def handover(events: list[ClientEvent]) -> tuple[ClientEvent, ClientEvent]:
    """Find partitions that one member gives up, and another is assigned in that rebalance."""
    for at, one in enumerate(events):
        if one.event == "revoked" and one.partitions:
            for other in events[at:]:
                soon = other.event == "assigned" and other.at_ms - one.at_ms < 10_000
                if soon and other.client != one.client and other.partitions & one.partitions:
                    return one, other
    raise LookupError("nothing moves")


def test_answers_that_say_that_a_member_is_out():
    """Clients passes on what a recorded broker answered: after a duplicate, the first is out."""
    recording = HISTORIES["duplicate-4.3.0"]
    rows, events = recording.rows_by_group["static"], recording.events_by_group["static"]
    found, judged = compared(rows, events, outages=recording.run.outages)
    assert found == []
    fenced = [row for row in rows if row.get("error_code") == Error.FENCED_INSTANCE_ID]
    assert len(fenced) == 2
    # each duplicate has the four partitions of the member whose instance id it took
    assert judged.counts[UNTIL_ANSWERED] == 8
