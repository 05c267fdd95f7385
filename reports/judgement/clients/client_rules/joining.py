"""Rules about joining: when a client sends JoinGroup and SyncGroup, and under which id."""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from math import inf

from kafka_protocol.errors import NOT_SERVED_YET, Error
from reports.judgement.clients.client_rules.lives import Life, Sent
from reports.judgement.clients.client_rules.rules import (
    AFTER_MS,
    IN_GENERATION,
    NOTICED_MS,
    OUT,
    SHOWN,
    Broken,
    error_of,
    first_join,
    rule,
)

LOOP = 15
"""More JoinGroups than this in a second are a loop: Kafka's client waits 100 ms between two."""
LOOP_MS = 1_000.0
UNASKED = 3
"""From how many JoinGroups without a cause on a client is taken to send them needlessly."""
UNASKED_MS = 10_000.0
ASKED = (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION, *OUT)
"""The answers that ask a client to join again, or forbid it."""


@rule("KIP-62 (the rebalance timeout); AbstractCoordinator's heartbeat handler", on_time=True)
def rejoins(life: Life) -> Iterator[Broken]:
    """A member that is asked to joins again within its rebalance timeout."""
    until_ms = -inf
    for at, one in enumerate(life.sent):
        asked = one.api in (*IN_GENERATION, "JOIN_GROUP") and one.error in ASKED
        if not asked or one.error == Error.FENCED_INSTANCE_ID or one.answered_ms <= until_ms:
            continue
        asked_ms, wait_ms = one.answered_ms, life.timeout_ms(at)
        deadline_ms = asked_ms + wait_ms + NOTICED_MS
        followed = any(
            later.answered_ms >= asked_ms and later.arrived_ms <= deadline_ms
            for later in life.sent
            if later is not one and later.api in ("JOIN_GROUP", "LEAVE_GROUP")
        )
        shows = life.goes_on(deadline_ms)
        if followed or shows is None or life.is_excused(asked_ms, deadline_ms):
            continue
        until_ms = deadline_ms
        yield Broken(
            asked_ms,
            f"no JOIN_GROUP within its rebalance timeout of {wait_ms:.0f} ms after the answer"
            f" {error_of(one)} to {one.api}; it sends {shows.api} later",
            (one.seen, shows.seen),
        )


@rule("AbstractCoordinator.resetStateOnResponseError (UNKNOWN_MEMBER_ID)", on_time=True)
def rejoins_afresh(life: Life) -> Iterator[Broken]:
    """A member that is unknown joins without a member id, or with another."""
    for at, one in enumerate(life.sent):
        lost = one.member_id
        if one.error != Error.UNKNOWN_MEMBER_ID or not lost or one.api == "LEAVE_GROUP":
            continue
        again = first_join(life, one.answered_ms + AFTER_MS)
        if again is None or again.member_id != lost or life.may_be_late(again):
            continue
        if again.is_fresh(AFTER_MS):
            yield Broken(
                again.arrived_ms,
                f"JOIN_GROUP with the member id {lost} again, after the answer UNKNOWN_MEMBER_ID"
                f" to {one.api}",
                (one.seen, again.seen),
                by_order=one.api == "JOIN_GROUP" or not _is_asked_before(life, at),
            )
            return


def _is_asked_before(life: Life, at: int) -> bool:
    """Whether an answer before the request at a place may be why its member joins again.

    If none is, a JoinGroup shows that its sender has read the answer to that request.
    """
    for one in reversed(life.sent[:at]):
        if one.api in ("JOIN_GROUP", "SYNC_GROUP"):
            return one.error != Error.NONE or one.api == "JOIN_GROUP"
        if one.error:
            return True
    return True


@rule("KIP-62; AbstractCoordinator (REBALANCE_IN_PROGRESS keeps the generation)")
def keeps_its_id(life: Life) -> Iterator[Broken]:
    """A dynamic member that learns of a rebalance joins it under its member id."""
    for one in life.sent:
        if one.error != Error.REBALANCE_IN_PROGRESS or not one.member_id or one.instance_id:
            continue
        again = first_join(life, one.answered_ms)
        if again is None or again.member_id or life.is_excused(one.answered_ms, again.arrived_ms):
            continue
        between = (
            other.error in OUT or other.api == "LEAVE_GROUP"
            for other in life.sent
            if one.arrived_ms < other.arrived_ms < again.arrived_ms
        )
        if not any(between):
            yield Broken(
                again.arrived_ms,
                "JOIN_GROUP without a member id, after the answer REBALANCE_IN_PROGRESS to"
                f" {one.api} of {one.member_id}: the group waits for that one",
                (one.seen, again.seen),
            )
            return


@rule("KIP-394")
def takes_its_id(life: Life) -> Iterator[Broken]:
    """A member that is given an id to join with (MEMBER_ID_REQUIRED) joins with it."""
    for at, one in enumerate(life.sent):
        if one.api != "JOIN_GROUP" or one.error != Error.MEMBER_ID_REQUIRED:
            continue
        given = one.seen.response_fields.get("memberId")
        # the next by order: on a busy machine it may seem to arrive before the answer was sent
        again = next((later for later in life.sent[at + 1 :] if later.api == "JOIN_GROUP"), None)
        if again is None or again.member_id == given or again.arrived_ms <= one.answered_ms:
            continue
        if not life.is_excused(one.answered_ms, again.arrived_ms):
            yield Broken(
                again.arrived_ms,
                f"JOIN_GROUP as {again.member_id or 'a member without an id'}, though the answer"
                f" MEMBER_ID_REQUIRED gave it {given}",
                (one.seen, again.seen),
            )
            return


@rule("the consumer protocol; KAFKA-9752 (the pending-sync timer)", on_time=True)
def syncs(life: Life) -> Iterator[Broken]:
    """A member that has joined sends SyncGroup within its rebalance timeout."""
    for at, one in enumerate(life.sent):
        if one.api != "JOIN_GROUP" or one.error != Error.NONE:
            continue
        deadline_ms = one.answered_ms + life.timeout_ms(at) + NOTICED_MS
        followed = any(
            later.api in ("SYNC_GROUP", "JOIN_GROUP", "LEAVE_GROUP")
            and one.arrived_ms < later.arrived_ms < deadline_ms
            for later in life.sent
        )
        shows = life.goes_on(deadline_ms)
        if not followed and shows and not life.is_excused(one.answered_ms, deadline_ms):
            generation = one.seen.response_fields.get("generationId")
            yield Broken(
                one.answered_ms,
                f"no SYNC_GROUP within its rebalance timeout after it joined generation"
                f" {generation}; it sends {shows.api} later",
                (one.seen, shows.seen),
            )


@rule("retry.backoff.ms, 100 ms by default; KIP-580")
def does_not_loop(life: Life) -> Iterator[Broken]:
    """A client waits between two attempts to join."""
    recent: deque[Sent] = deque()
    for one in life.sent:
        if one.api != "JOIN_GROUP":
            continue
        recent.append(one)
        while recent[0].arrived_ms < one.arrived_ms - LOOP_MS:
            recent.popleft()
        if len(recent) > LOOP:
            yield Broken(
                one.arrived_ms,
                f"{len(recent)} JOIN_GROUP within a second",
                [other.seen for other in islice(recent, SHOWN)],
            )
            return


@rule("the consumer protocol: a new subscription or new metadata asks for it")
def joins_when_asked(life: Life) -> Iterator[Broken]:
    """A member of a stable generation does not join again and again unless it is asked to."""
    unasked: deque[Sent] = deque()
    settled = False
    for one in life.sent:
        if one.api == "JOIN_GROUP":
            if settled and not one.error:
                unasked.append(one)
                while unasked[0].arrived_ms < one.arrived_ms - UNASKED_MS:
                    unasked.popleft()
            settled = False
        elif one.api == "SYNC_GROUP":
            settled = one.error == Error.NONE
        elif one.error:
            settled = False
        if len(unasked) >= UNASKED:
            yield Broken(
                one.arrived_ms,
                f"{len(unasked)} JOIN_GROUP within {UNASKED_MS / 1000:.0f} s, though no answer"
                " asked for it",
                [other.seen for other in unasked],
            )
            return


@rule("NOT_COORDINATOR is retriable; AbstractCoordinator keeps its generation")
def stays_when_its_coordinator_moves(life: Life) -> Iterator[Broken]:
    """A member goes on in its generation when another broker coordinates its group.

    After a session timeout without an answer it may take its membership for lost.
    """
    settled: Sent | None = None
    for at, one in enumerate(life.sent):
        if one.api == "JOIN_GROUP":
            let_in = one.error in (Error.NONE, Error.MEMBER_ID_REQUIRED)
            since_ms = settled.answered_ms if settled else -inf
            in_time = one.arrived_ms - since_ms < life.session_ms(at)
            if settled and settled.seen.broker != one.seen.broker and let_in and in_time:
                mine = one.member_id == settled.member_id
                yield Broken(
                    one.arrived_ms,
                    f"JOIN_GROUP with{'' if mine else 'out'} its member id at its new coordinator,"
                    " which did not ask for it",
                    (settled.latest, one.seen),
                )
                return
            if one.error not in NOT_SERVED_YET:
                settled = None
        elif not one.is_heard:
            continue
        elif not one.error:
            settled = one if one.api in IN_GENERATION else None
        elif one.error not in NOT_SERVED_YET:
            settled = None
