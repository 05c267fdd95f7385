"""Rules on when a client leaves: when a dynamic one closes, and else never."""

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.client_rules.client_processes import (
    IN_GENERATION,
    OUT,
    Broken,
    ClientProcess,
    Sent,
    Span,
    last_ms,
    rule,
)
from reports.judgement.clients.client_rules.shown import SHOWN, often, seconds
from reports.timing import CLOSES_MS, COMMITTED_MS, LEARNED_MS


@rule(
    "KIP-345: a static member never sends LeaveGroup at its close",
    mend="Send no LeaveGroup at the close of a member that has a group.instance.id.",
)
def stays_when_static(process: ClientProcess) -> Iterator[Broken]:
    """A static member sends no LeaveGroup, unless its application unsubscribes."""
    # librdkafka sends one then (rd_kafka_cgrp_leave_maybe), Kafka's own client does not
    sent = (one for one in process.sent if one.api == "LEAVE_GROUP")
    leave = next(
        (one for one in sent if not process.is_excused(one.arrived_ms, last_ms(one.seen))), None
    )
    if leave is not None and process.is_static:
        yield Broken(
            leave.arrived_ms,
            f"{process.name} sent LEAVE_GROUP though it is static (it has a group.instance.id): the"
            " group rebalances when it leaves and when it comes back",
            [leave.seen],
        )


@rule(
    "the consumer protocol; AbstractCoordinator.close",
    mend="Close the consumer before the process ends, so that it sends LeaveGroup.",
    on_time=True,
)
def leaves_when_dynamic(process: ClientProcess) -> Iterator[Broken]:
    """A dynamic member sends LeaveGroup at a clean close."""
    if process.closes_ms == inf or process.is_static:
        return
    before = [one for one in process.sent if one.arrived_ms < process.closes_ms]
    since_ms = process.closes_ms - CLOSES_MS
    left = any(one.api == "LEAVE_GROUP" and one.arrived_ms > since_ms for one in process.sent)
    synced = any(one.api == "SYNC_GROUP" and one.is_heard and not one.error for one in before)
    resets = (*OUT, Error.ILLEGAL_GENERATION)  # some forget their member id then, too
    is_out = any(one.error in resets and one.arrived_ms > process.closes_ms for one in process.sent)
    if left or is_out or not synced:
        return
    last = before[-1]
    is_member = last.api in IN_GENERATION and last.is_heard and not last.error
    judged = last.answered_ms, process.closes_ms + LEARNED_MS
    if is_member and not process.is_excused(*judged):
        yield Broken(
            process.closes_ms,
            f"{process.name} ended and sent no LEAVE_GROUP: nobody reads its partitions until its"
            f" session is over, {seconds(process.session_ms(len(process.sent)))} later",
            [last.latest],
            judged=judged,
        )


@rule(
    "KIP-62: max.poll.interval.ms; KIP-345 (a static member sends no LeaveGroup then)",
    mend="Poll within max.poll.interval.ms: raise it, take fewer records a poll"
    " (max.poll.records), or work on records in another thread. Keep one consumer, subscribed,"
    " while the process runs.",
    on_time=True,
)
def stays_while_it_runs(process: ClientProcess) -> Iterator[Broken]:
    """A member that goes on does not leave by itself."""
    gone = [*_departures(process)]
    if not gone:
        return
    first = gone[0]
    away = [one.back.arrived_ms - one.last.arrived_ms for one in gone if one.back is not None]
    number = f" {often(len(gone))}" if len(gone) > 1 else ""
    back = f", and came back {seconds(max(away))} later" if away else ""
    not_polled = (
        ", as a client does that is not polled within its max.poll.interval.ms of"
        f" {seconds(first.timeout_ms)}"
    )
    why = not_polled if first.idle_ms >= first.timeout_ms - COMMITTED_MS else ""
    yield Broken(
        first.last.arrived_ms,
        f"{process.name} left the group by itself{number}, {seconds(first.idle_ms)} after its last"
        f" commit{why}{back}: each time the group rebalances twice",
        [*_shown(gone[:SHOWN])],
        judged=(first.judged[0], gone[:SHOWN][-1].judged[1]),
    )


class _Departure(NamedTuple):
    """What a member sent last, and when it came back; `idle_ms` is how long it had not committed.

    Where it had not, either, since it got its assignment, that counts. `judged` is the time in
    which it was not polled until it left and came back.
    """

    last: Sent
    back: Sent | None
    idle_ms: float
    timeout_ms: float
    judged: Span


def _shown(gone: Iterable[_Departure]) -> Iterator[ObservedRequest]:
    """Yield the requests that show how a member left and came back."""
    for one in gone:
        yield one.last.latest
        if one.back is not None:
            yield one.back.seen


def _departures(process: ClientProcess) -> Iterator[_Departure]:
    """Yield when a member left that no fault acted on, and that did not close then."""
    worked_ms = -inf
    last: Sent | None = None  # to be heard of
    for at, one in enumerate(process.sent):
        back = process.next_join(one.arrived_ms)
        if one.api == "LEAVE_GROUP":
            left = one if back is not None or process.ends_ms < inf else None
        else:
            left, back = _fell_silent(process, last, one), one
        if left is not None and worked_ms > -inf and left.arrived_ms < process.ends_ms - CLOSES_MS:
            left_ms, timeout_ms = last_ms(left.latest), process.timeout_ms(at)
            judged = left_ms - timeout_ms - LEARNED_MS, last_ms(one.latest)
            if not process.is_acted_on(*judged):
                yield _Departure(left, back, left_ms - worked_ms, timeout_ms, judged)
        if one.api in ("SYNC_GROUP", "OFFSET_COMMIT") and not one.error:
            worked_ms = max(worked_ms, last_ms(one.latest))
        if last is None or last_ms(one.latest) > last_ms(last.latest):
            last = one


def _fell_silent(process: ClientProcess, last: Sent | None, one: Sent) -> Sent | None:
    """Return what a static member sent last, if it was silent and joins without its member id.

    So one comes back that was not polled: it gives its membership up without a LeaveGroup.
    """
    if last is None or one.api != "JOIN_GROUP" or one.member_id or not one.instance_id:
        return None
    silent_ms = one.arrived_ms - last_ms(last.latest)
    beats_ms = process.known.heartbeat_ms
    return last if not last.error and beats_ms and silent_ms > 2 * beats_ms + LEARNED_MS else None
