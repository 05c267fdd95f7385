"""Rules on when a client joins: as soon as it is asked to, and not before."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from kafka_protocol.bodies import generation_in
from kafka_protocol.errors import NOT_SERVED_YET, Error
from reports.judgement.clients.assignments import EAGER, listed
from reports.judgement.clients.client_answers import share
from reports.judgement.clients.client_rules.client_processes import (
    IN_GENERATION,
    MANY,
    Broken,
    ClientProcess,
    Sent,
    rule,
)
from reports.judgement.clients.client_rules.shown import SHOWN, error_of, often, seconds
from reports.timing import LEARNED_MS, LOOP_MS, UNASKED_MS

LOOP, UNASKED = 16, 3
"""So many JoinGroups are a loop within LOOP_MS, and sent needlessly within UNASKED_MS."""
ASKED = (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID)
"""The answers that ask a client to join again."""


@rule(
    "KIP-62 (the rebalance timeout); AbstractCoordinator's heartbeat handler",
    mend="Join again as soon as an answer says REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION or"
    " UNKNOWN_MEMBER_ID, within max.poll.interval.ms.",
    on_time=True,
)
def rejoins(process: ClientProcess) -> Iterator[Broken]:
    """A member that is asked to joins again within its rebalance timeout."""
    until_ms = -inf
    for at, one in process.refused(*ASKED):
        if one.answered_ms <= until_ms or _joined_since(process, one):
            continue
        if removed := _removed(process, at):
            until_ms = removed.arrived_ms
            after = seconds(until_ms - one.answered_ms)
            yield Broken(
                one.answered_ms,
                f"{process.name} was asked to join again (the answer {error_of(one)} to its"
                f" {one.api}) and did not: after {after} the group removed it, whose rebalance"
                f" timeout is {seconds(process.timeout_ms(at))}{_waits(process, one, removed)}",
                (one.seen, removed.seen),
                by_order=process.committed(one.answered_ms, until_ms) >= MANY,
            )
        elif shows := _goes_on_without(process, at, "JOIN_GROUP", "LEAVE_GROUP"):
            until_ms = _deadline_ms(process, at)
            yield Broken(
                one.answered_ms,
                f"{process.name} sent no JOIN_GROUP within its rebalance timeout of"
                f" {seconds(process.timeout_ms(at))} after the answer {error_of(one)} to its"
                f" {one.api}; it sent {shows.api} later",
                (one.seen, shows.seen),
            )


def _joined_since(process: ClientProcess, one: Sent) -> bool:
    """Whether a client was in a newer generation by the time that a request was refused.

    `ConsumerCoordinator` does not join again then, either: the answer is about an older generation.
    """
    used = generation_in(one.seen.request)
    return one.error == Error.ILLEGAL_GENERATION and any(
        join.arrived_ms < one.answered_ms and used is not None and join.generation > used
        for join in process.joins
    )


def _removed(process: ClientProcess, at: int) -> Sent | None:
    """Return what shows that the group went on without a member that it had asked to join.

    The rebalance timeout began at most a heartbeat before the member was asked.
    """
    asked = process.sent[at]
    due_ms = asked.answered_ms + process.timeout_ms(at) - LEARNED_MS
    due_ms -= process.known.heartbeat_ms or LEARNED_MS
    later = (
        one
        for one in process.sent[at + 1 :]
        if one.api in ("JOIN_GROUP", "LEAVE_GROUP") or one.error == Error.UNKNOWN_MEMBER_ID
    )
    first = next(later, None)
    if first is None or asked.error == Error.UNKNOWN_MEMBER_ID or not first.member_id:
        return None
    is_out = first.error == Error.UNKNOWN_MEMBER_ID and first.member_id == asked.member_id
    in_time = first.api in ("JOIN_GROUP", "LEAVE_GROUP") or first.arrived_ms < due_ms
    if not is_out or in_time or process.is_excused(asked.answered_ms, first.arrived_ms):
        return None
    return first


def _waits(process: ClientProcess, asked: Sent, removed: Sent) -> str:
    """Return in words how long other members waited for one that was asked and did not come."""
    waits = [
        (other.name, one.answered_ms - one.arrived_ms)
        for other in process.others
        for one in other.joins
        if one.is_heard
        and one.arrived_ms < removed.arrived_ms
        and one.answered_ms > asked.answered_ms
        and one.answered_ms - one.arrived_ms > LEARNED_MS
    ]
    if not waits:
        return ""
    names = listed(sorted({name for name, _ in waits}))
    return f"; {names} had waited for it, up to {seconds(max(ms for _, ms in waits))}"


@rule(
    "the consumer protocol; KAFKA-9752 (the pending-sync timer)",
    mend="Send SyncGroup right after JoinGroup is answered, before anything that may take long.",
    on_time=True,
)
def syncs(process: ClientProcess) -> Iterator[Broken]:
    """A member that has joined sends SyncGroup within its rebalance timeout."""
    for at, one in enumerate(process.sent):
        if one.api != "JOIN_GROUP" or one.error != Error.NONE:
            continue
        if shows := _goes_on_without(process, at, "SYNC_GROUP", "JOIN_GROUP", "LEAVE_GROUP"):
            generation = one.seen.response_fields.get("generationId")
            yield Broken(
                one.answered_ms,
                f"{process.name} sent no SYNC_GROUP within its rebalance timeout of"
                f" {seconds(process.timeout_ms(at))} after it joined generation {generation}; it"
                f" sent {shows.api} later",
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


@rule(
    "retry.backoff.ms, 100 ms by default; KIP-580",
    mend="Wait for retry.backoff.ms, 100 ms or more, before JoinGroup is sent again.",
)
def does_not_loop(process: ClientProcess) -> Iterator[Broken]:
    """A client waits between two attempts to join."""
    if loop := _within(process.joins, LOOP, LOOP_MS):
        yield Broken(
            loop[-1].arrived_ms,
            f"{process.name} sent {LOOP} JOIN_GROUP within {seconds(LOOP_MS)}, without a pause",
            [one.seen for one in loop[:SHOWN]],
        )


@rule(
    "the consumer protocol: a new subscription or new metadata asks for it",
    mend="Join again only when an answer, new metadata or a new subscription asks for it.",
)
def joins_when_asked(process: ClientProcess) -> Iterator[Broken]:
    """A member of a stable generation does not join again and again unless it is asked to."""
    every = [*_unasked(process)]
    if unasked := _within(every, UNASKED, UNASKED_MS):
        yield Broken(
            unasked[-1].arrived_ms,
            f"{process.name} sent JOIN_GROUP {often(len(every))} though no answer asked for it,"
            f" {UNASKED} of them within {seconds(UNASKED_MS)}: it stops reading each time, and all"
            " members do if it leads the group",
            [one.seen for one in unasked],
        )


def _unasked(process: ClientProcess) -> Iterator[Sent]:
    """Yield the JoinGroups that a member of a stable generation was let in with.

    A cooperative one that gives a partition up joins again at once (KIP-429).
    """
    settled, is_cooperative, owned = False, False, frozenset[str]()
    for one in process.sent:
        if one.api == "JOIN_GROUP":
            if settled and not one.error:
                yield one
            settled = False
            is_cooperative = one.seen.response_fields.get("protocolName") not in EAGER
        elif one.api == "SYNC_GROUP" and one.error == Error.NONE:
            given = share(one.seen) or frozenset()
            settled, owned = not (is_cooperative and owned - given), given
        elif one.api == "SYNC_GROUP" or one.error:
            settled = False


def _within(sent: Iterable[Sent], count: int, ms: float) -> Sequence[Sent]:
    """Return the first so many in a row that arrived within a time; nothing if none did."""
    every = [*sent]
    rows = (every[at : at + count] for at in range(len(every) - count + 1))
    return next((row for row in rows if row[-1].arrived_ms - row[0].arrived_ms <= ms), ())


@rule(
    "NOT_COORDINATOR is retriable; AbstractCoordinator keeps its generation",
    mend="Look for the new coordinator after NOT_COORDINATOR, and go on there with the "
    "same member id and generation.",
)
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
                f"{process.name} sent JOIN_GROUP with{'' if mine else 'out'} its member id to its"
                " new coordinator, which did not ask for it: the group rebalances",
                (settled.latest, one.seen),
            )
            return
        if one.error not in NOT_SERVED_YET:
            settled = None
