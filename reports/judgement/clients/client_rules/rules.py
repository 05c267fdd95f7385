"""The rules: when a client joins, and under which id; what it sends as a member, and afterwards."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from math import inf

from kafka_protocol.errors import NOT_SERVED_YET, Error, name_of
from reports.judgement.clients.client_rules.client_processes import (
    Broken,
    ClientProcess,
    Sent,
    last_ms,
    rule,
)
from reports.timing import AFTER_MS, CLOSES_MS, LEARNED_MS, LOOP_MS, UNASKED_MS

SHOWN = 3  # how many requests of a kind a finding names
OUT = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID)
"""The answers that say to a client that it is no member any more."""
IN_GENERATION = ("HEARTBEAT", "SYNC_GROUP", "OFFSET_COMMIT")
"""The requests of a member that has joined."""
LOOP, UNASKED = 16, 3
"""So many JoinGroups are a loop within LOOP_MS, and sent needlessly within UNASKED_MS."""
ASKED = (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID)
"""The answers that ask a client to join again."""
FEW_BEATS = 6  # from how many heartbeats in a row on their interval is judged
OFF = 2.0  # how many times rarer or denser heartbeats may be than configured


# joining


@rule("KIP-62 (the rebalance timeout); AbstractCoordinator's heartbeat handler", on_time=True)
def rejoins(process: ClientProcess) -> Iterator[Broken]:
    """A member that is asked to joins again within its rebalance timeout."""
    until_ms = -inf
    for at, one in process.refused(*ASKED):
        if one.answered_ms <= until_ms:
            continue
        if shows := _goes_on_without(process, at, "JOIN_GROUP", "LEAVE_GROUP"):
            until_ms = _deadline_ms(process, at)
            yield Broken(
                one.answered_ms,
                f"no JOIN_GROUP within its rebalance timeout of {process.timeout_ms(at):.0f} ms"
                f" after the answer {error_of(one)} to {one.api}; it sends {shows.api} later",
                (one.seen, shows.seen),
            )


@rule("the consumer protocol; KAFKA-9752 (the pending-sync timer)", on_time=True)
def syncs(process: ClientProcess) -> Iterator[Broken]:
    """A member that has joined sends SyncGroup within its rebalance timeout."""
    for at, one in enumerate(process.sent):
        if one.api != "JOIN_GROUP" or one.error != Error.NONE:
            continue
        if shows := _goes_on_without(process, at, "SYNC_GROUP", "JOIN_GROUP", "LEAVE_GROUP"):
            generation = one.seen.response_fields.get("generationId")
            yield Broken(
                one.answered_ms,
                f"no SYNC_GROUP within its rebalance timeout after it joined generation"
                f" {generation}; it sends {shows.api} later",
                (one.seen, shows.seen),
            )


def _deadline_ms(process: ClientProcess, at: int) -> float:
    return process.sent[at].answered_ms + process.timeout_ms(at) + LEARNED_MS


def _goes_on_without(process: ClientProcess, at: int, *apis: str) -> Sent | None:
    """Return what a member sends after its rebalance timeout, within which it sent none of these.

    The time begins with the answer to its request at a place.
    """
    asked, deadline_ms = process.sent[at], _deadline_ms(process, at)
    followed = any(
        later.arrived_ms > asked.arrived_ms or later.answered_ms >= asked.answered_ms
        for later in process.sent
        if later is not asked and later.api in apis and later.arrived_ms <= deadline_ms
    )
    if followed or process.is_excused(asked.answered_ms, deadline_ms):
        return None
    return process.goes_on(deadline_ms)


@rule("AbstractCoordinator.resetStateOnResponseError (UNKNOWN_MEMBER_ID)", on_time=True)
def rejoins_afresh(process: ClientProcess) -> Iterator[Broken]:
    """A member that is unknown joins without a member id, or with another."""
    for at, one in process.refused(Error.UNKNOWN_MEMBER_ID):
        again = process.next_join(one.answered_ms + AFTER_MS)
        if not one.member_id or again is None or again.member_id != one.member_id:
            continue
        if process.knew(one, again, AFTER_MS):
            yield Broken(
                again.arrived_ms,
                f"JOIN_GROUP with the member id {one.member_id} again, after the answer"
                f" UNKNOWN_MEMBER_ID to {one.api}",
                (one.seen, again.seen),
                by_order=one.api == "JOIN_GROUP" or not _is_asked_before(process, at),
            )
            return


def _is_asked_before(process: ClientProcess, at: int) -> bool:
    """Whether an answer before the request at a place may be why its member joins again.

    If none is, a JoinGroup shows that its sender has read the answer to that request.
    """
    for one in reversed(process.sent[:at]):
        if one.api in ("JOIN_GROUP", "SYNC_GROUP"):
            return one.error != Error.NONE or one.api == "JOIN_GROUP"
        if one.error:
            return True
    return True


@rule("KIP-62; AbstractCoordinator (REBALANCE_IN_PROGRESS keeps the generation)")
def keeps_its_id(process: ClientProcess) -> Iterator[Broken]:
    """A dynamic member that learns of a rebalance joins it under its member id."""
    for _, one in process.refused(Error.REBALANCE_IN_PROGRESS):
        again = process.next_join(one.answered_ms)
        if not one.member_id or one.instance_id or again is None or again.member_id:
            continue
        may_be_out = any(
            other.error in OUT or other.api == "LEAVE_GROUP"
            for other in process.sent
            if one.arrived_ms < other.arrived_ms < again.arrived_ms
        )
        if not may_be_out and not process.is_excused(one.answered_ms, again.arrived_ms):
            yield Broken(
                again.arrived_ms,
                "JOIN_GROUP without a member id, after the answer REBALANCE_IN_PROGRESS to"
                f" {one.api} of {one.member_id}: the group waits for that one",
                (one.seen, again.seen),
            )
            return


@rule("KIP-394")
def takes_its_id(process: ClientProcess) -> Iterator[Broken]:
    """A member that is given an id to join with (MEMBER_ID_REQUIRED) joins with it."""
    # the next by order: on a busy machine it may seem to arrive before the answer was sent
    for one, again in pairwise(process.joins):
        given = one.seen.response_fields.get("memberId")
        if one.error != Error.MEMBER_ID_REQUIRED or again.member_id == given:
            continue
        was_told = again.arrived_ms > one.answered_ms
        if was_told and not process.is_excused(one.answered_ms, again.arrived_ms):
            yield Broken(
                again.arrived_ms,
                f"JOIN_GROUP as {again.member_id or 'a member without an id'}, though the answer"
                f" MEMBER_ID_REQUIRED gave it {given}",
                (one.seen, again.seen),
            )
            return


@rule("retry.backoff.ms, 100 ms by default; KIP-580")
def does_not_loop(process: ClientProcess) -> Iterator[Broken]:
    """A client waits between two attempts to join."""
    if loop := _within(process.joins, LOOP, LOOP_MS):
        yield Broken(
            loop[-1].arrived_ms,
            f"{LOOP} JOIN_GROUP within a second",
            [one.seen for one in loop[:SHOWN]],
        )


@rule("the consumer protocol: a new subscription or new metadata asks for it")
def joins_when_asked(process: ClientProcess) -> Iterator[Broken]:
    """A member of a stable generation does not join again and again unless it is asked to."""
    if unasked := _within(_unasked(process), UNASKED, UNASKED_MS):
        yield Broken(
            unasked[-1].arrived_ms,
            f"{UNASKED} JOIN_GROUP within {UNASKED_MS / 1000:.0f} s, though no answer asked for it",
            [one.seen for one in unasked],
        )


def _unasked(process: ClientProcess) -> Iterator[Sent]:
    """Yield the JoinGroups that a member of a stable generation was let in with."""
    settled = False
    for one in process.sent:
        if one.api == "JOIN_GROUP":
            if settled and not one.error:
                yield one
            settled = False
        elif one.api == "SYNC_GROUP" or one.error:
            settled = one.error == Error.NONE


def _within(sent: Iterable[Sent], count: int, ms: float) -> Sequence[Sent]:
    """Return the first so many in a row that arrived within a time; nothing if none did."""
    every = [*sent]
    rows = (every[at : at + count] for at in range(len(every) - count + 1))
    return next((row for row in rows if row[-1].arrived_ms - row[0].arrived_ms <= ms), ())


@rule("NOT_COORDINATOR is retriable; AbstractCoordinator keeps its generation")
def stays_when_its_coordinator_moves(process: ClientProcess) -> Iterator[Broken]:
    """A member goes on in its generation when another broker coordinates its group.

    After a session timeout without an answer it may take its membership for lost.
    """
    settled: Sent | None = None
    for at, one in enumerate(process.sent):
        if one.api != "JOIN_GROUP":
            if one.is_heard and one.error not in NOT_SERVED_YET:
                settled = one if one.api in IN_GENERATION and not one.error else None
            continue
        let_in = one.error in (Error.NONE, Error.MEMBER_ID_REQUIRED)
        in_time = settled and one.arrived_ms - settled.answered_ms < process.session_ms(at)
        if settled and in_time and let_in and settled.seen.broker != one.seen.broker:
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


# being a member


@rule("KIP-345; AbstractCoordinator.resetStateOnResponseError", on_time=True)
def gives_up_what_it_lost(process: ClientProcess) -> Iterator[Broken]:
    """A member that is removed or fenced sends nothing more under its lost member id."""
    reported = {""}
    for _, one in process.refused(*OUT):
        lost = one.member_id
        if lost in reported:
            continue
        later = [
            other
            for other in process.sent
            if other.member_id == lost
            and other.api in IN_GENERATION
            and process.knew(one, other, LEARNED_MS)
        ]
        if len(later) > 1:
            reported.add(lost)
            apis = ", ".join(dict.fromkeys(other.api for other in later))
            yield Broken(
                later[0].arrived_ms,
                f"{times(later)} {apis} under the member id {lost} from"
                f" {later[0].arrived_ms - one.answered_ms:.0f} ms after the answer {error_of(one)}"
                " on",
                (one.seen, *(other.seen for other in later[:SHOWN])),
            )


@rule("KIP-345: FENCED_INSTANCE_ID is fatal", on_time=True)
def stops_when_fenced(process: ClientProcess) -> Iterator[Broken]:
    """A process that is fenced does not join under its instance id again."""
    # without a member id it had given its id up itself: no other process fenced it
    fenced = (one for _, one in process.refused(Error.FENCED_INSTANCE_ID) if one.member_id)
    for one in islice(fenced, 1):
        again = [
            other
            for other in process.joins
            if other.instance_id == one.instance_id and process.knew(one, other, AFTER_MS)
        ]
        if again:
            yield Broken(
                again[0].arrived_ms,
                f"{times(again)} JOIN_GROUP as {one.instance_id} after the answer"
                f" FENCED_INSTANCE_ID to {one.api}",
                (one.seen, *(other.seen for other in again[:SHOWN])),
                by_order=one.api == "JOIN_GROUP" or len(again) > 1,
            )


@rule("KIP-345: a static member never sends LeaveGroup at its close")
def stays_when_static(process: ClientProcess) -> Iterator[Broken]:
    """A static member sends no LeaveGroup, unless its application unsubscribes."""
    # librdkafka sends one then (rd_kafka_cgrp_leave_maybe), Kafka's own client does not
    leave = next(
        (
            one
            for one in process.sent
            if one.api == "LEAVE_GROUP"
            and not process.is_excused(one.arrived_ms, last_ms(one.seen))
        ),
        None,
    )
    if leave is not None and process.is_static:
        yield Broken(
            leave.arrived_ms,
            "a static member sends LEAVE_GROUP: the group rebalances",
            [leave.seen],
        )


@rule("the consumer protocol; AbstractCoordinator.close")
def leaves_when_dynamic(process: ClientProcess) -> Iterator[Broken]:
    """A dynamic member sends LeaveGroup at a clean close."""
    if process.closes_ms == inf or process.is_static:
        return
    before = [one for one in process.sent if one.arrived_ms < process.closes_ms]
    since_ms = process.closes_ms - CLOSES_MS
    left = any(one.api == "LEAVE_GROUP" and one.arrived_ms > since_ms for one in process.sent)
    synced = any(one.api == "SYNC_GROUP" and one.is_heard and not one.error for one in before)
    if left or not synced:
        return
    last = before[-1]
    is_member = last.api in IN_GENERATION and last.is_heard and not last.error
    if is_member and not process.is_excused(last.answered_ms, process.closes_ms + LEARNED_MS):
        yield Broken(
            process.closes_ms,
            "a dynamic member closes and sends no LEAVE_GROUP: its partitions wait for its session"
            " to end",
            [last.latest],
        )


@rule("KIP-62: heartbeat.interval.ms", on_time=True)
def heartbeats_at_its_interval(process: ClientProcess) -> Iterator[Broken]:
    """A member sends heartbeats at its configured interval."""
    if process.heartbeat_ms is None:
        return
    for one in process.sent:
        if one.api != "HEARTBEAT" or one.count < FEW_BEATS:
            continue
        until_ms = one.latest.earliest_ms
        every_ms = (until_ms - one.arrived_ms) / (one.count - 1)
        off = every_ms > OFF * process.heartbeat_ms or every_ms < process.heartbeat_ms / OFF
        if off and not process.is_excused(one.arrived_ms, until_ms):
            yield Broken(
                one.arrived_ms,
                f"a HEARTBEAT every {every_ms:.0f} ms ({one.count} of them), and its interval is"
                f" {process.heartbeat_ms:.0f} ms",
                one.apart,
            )
            return


@rule("KIP-62: heartbeats go on while the application processes records", on_time=True)
def keeps_its_session(process: ClientProcess) -> Iterator[Broken]:
    """A member that goes on does not let its session expire."""
    for at, one in process.refused(Error.UNKNOWN_MEMBER_ID):
        before = max(process.sent[:at], key=lambda other: last_ms(other.latest), default=None)
        if before is None or before.error or before.member_id not in ("", one.member_id):
            continue
        since_ms, session_ms = last_ms(before.latest), process.session_ms(at)
        silent_ms = one.arrived_ms - since_ms
        if silent_ms > session_ms and not process.is_excused(since_ms, one.arrived_ms):
            yield Broken(
                one.arrived_ms,
                f"silent for {silent_ms:.0f} ms with a session timeout of {session_ms:.0f} ms, and"
                " removed",
                (before.latest, one.seen),
            )
            return


@rule("KIP-345: group.instance.id in Heartbeat v3, SyncGroup v3 and OffsetCommit v7")
def carries_its_instance_id(process: ClientProcess) -> Iterator[Broken]:
    """A static member gives its instance id in every request of its membership."""
    if not process.is_static:
        return
    lacking = {
        one.api: one.seen
        for one in reversed(process.sent)
        if one.api in IN_GENERATION and one.member_id and not one.instance_id
    }
    if lacking:
        named = ", ".join(f"{api} v{seen.api_version}" for api, seen in lacking.items())
        yield Broken(
            min(seen.earliest_ms for seen in lacking.values()),
            f"{named} of a static member without its group.instance.id: a second process with its"
            " id cannot fence it",
            sorted(lacking.values(), key=lambda seen: seen.earliest_ms),
        )


def error_of(one: Sent) -> str:
    """Return the name of the error that a request was answered."""
    return name_of(one.error or 0)


def times(sent: Iterable[Sent]) -> str:
    """Return how often something was sent, in words."""
    count = sum(one.count for one in sent)
    return f"{count} times" if count > 1 else "once"
