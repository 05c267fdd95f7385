"""Rules on the ids and the generation that a client gives: each is its own, and the newest."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise

from kafka_protocol.bodies import generation_in
from kafka_protocol.errors import Error
from reports.judgement.clients.client_rules.client_processes import (
    IN_GENERATION,
    OUT,
    Broken,
    ClientProcess,
    Sent,
    rule,
)
from reports.judgement.clients.client_rules.shown import SHOWN, error_of, often, seconds
from reports.timing import AFTER_MS, LEARNED_MS


@rule(
    "AbstractCoordinator.resetStateOnResponseError (UNKNOWN_MEMBER_ID)",
    mend="Forget the member id when an answer says UNKNOWN_MEMBER_ID, and join with an empty one.",
    on_time=True,
)
def rejoins_afresh(process: ClientProcess) -> Iterator[Broken]:
    """A member that is unknown joins without a member id, or with another."""
    for at, one in process.refused(Error.UNKNOWN_MEMBER_ID):
        again = process.next_join(one.arrived_ms)
        # on one connection a client sends no second JoinGroup before it has read the first answer
        in_order = one.api == "JOIN_GROUP" and again is not None and again.follows(one)
        if not in_order:
            again = process.next_join(one.answered_ms + AFTER_MS)
        if not one.member_id or again is None or again.member_id != one.member_id:
            continue
        if in_order or process.knew(one, again, AFTER_MS):
            joins = [join for join in process.joins if join.member_id == one.member_id]
            late = [join for join in joins if join.arrived_ms > one.arrived_ms]
            yield Broken(
                again.arrived_ms,
                f"{process.name} sent JOIN_GROUP {often(len(late))} with the member id that it had"
                f" lost, after the answer UNKNOWN_MEMBER_ID to its {one.api}: none lets it in",
                (one.seen, *(join.seen for join in late[:SHOWN])),
                by_order=in_order or not _is_asked_before(process, at),
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


@rule(
    "KIP-62; AbstractCoordinator (REBALANCE_IN_PROGRESS keeps the generation)",
    mend="Keep the member id at a rebalance, and send it in the next JoinGroup.",
)
def keeps_its_id(process: ClientProcess) -> Iterator[Broken]:
    """A dynamic member that learns of a rebalance joins it under its member id."""
    for at, one in process.refused(Error.REBALANCE_IN_PROGRESS):
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
                f"{process.name} sent JOIN_GROUP without a member id after the answer"
                f" REBALANCE_IN_PROGRESS to its {one.api}: the group waits up to"
                f" {seconds(process.timeout_ms(at))} for the member id that it had",
                (one.seen, again.seen),
            )
            return


@rule(
    "KIP-394",
    mend="Send the next JoinGroup with the member id that MEMBER_ID_REQUIRED gives.",
)
def takes_its_id(process: ClientProcess) -> Iterator[Broken]:
    """A member that is given an id to join with (MEMBER_ID_REQUIRED) joins with it."""
    for one, again in pairwise(process.joins):
        given = one.seen.response_fields.get("memberId")
        if one.error != Error.MEMBER_ID_REQUIRED or again.member_id == given:
            continue
        if again.follows(one):  # the client had read the answer, then
            yield Broken(
                again.arrived_ms,
                f"{process.name} did not join with the member id that MEMBER_ID_REQUIRED gave it:"
                f" its next JOIN_GROUP had {'another' if again.member_id else 'none'}, and a"
                " rebalance waits for the given one up to the session timeout of"
                f" {seconds(float(one.seen.request.get('sessionTimeoutMs') or 0))}",
                (one.seen, again.seen),
            )
            return


@rule(
    "KIP-345; AbstractCoordinator.resetStateOnResponseError",
    mend="Stop heartbeats and commits under a member id that is unknown or fenced.",
    on_time=True,
)
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
            number = often(sum(other.count for other in later))
            apis = ", ".join(dict.fromkeys(other.api for other in later))
            yield Broken(
                later[0].arrived_ms,
                f"{process.name} sent {apis} {number} under the member id that it had lost, from"
                f" {seconds(later[0].arrived_ms - one.answered_ms)} after the answer"
                f" {error_of(one)} to its {one.api} on",
                (one.seen, *(other.seen for other in later[:SHOWN])),
            )


@rule(
    "KIP-345: FENCED_INSTANCE_ID is fatal",
    mend="Take FENCED_INSTANCE_ID as fatal: end the process, and do not join again under this id.",
    on_time=True,
)
def stops_when_fenced(process: ClientProcess) -> Iterator[Broken]:
    """A process that is fenced does not join under its instance id again."""
    # under an older member id of its own, or none, no other process fenced it
    fenced = (
        one
        for at, one in process.refused(Error.FENCED_INSTANCE_ID)
        if one.member_id and one.member_id == _member_id(process, at)
    )
    for one in islice(fenced, 1):
        again = [
            other
            for other in process.joins
            if other.instance_id == one.instance_id
            if (other.follows(one) and other.member_id != one.member_id)  # so it has read that
            or process.knew(one, other, AFTER_MS)
        ]
        if again:
            fences = any(other.error == Error.NONE for other in again)
            so = "it fences the process that took the id over" if fences else "none lets it in"
            yield Broken(
                again[0].arrived_ms,
                f"{process.name} sent JOIN_GROUP {often(len(again))} as {one.instance_id} after the"
                f" answer FENCED_INSTANCE_ID to its {one.api}: {so}",
                (one.seen, *(other.seen for other in again[:SHOWN])),
                by_order=one.api == "JOIN_GROUP" or len(again) > 1,
            )


def _member_id(process: ClientProcess, at: int) -> str | None:
    """Return the member id that a client was let in with before its request at a place."""
    joins = (one for one in reversed(process.sent[:at]) if one.api == "JOIN_GROUP")
    let_in = (one.seen.response_fields.get("memberId") for one in joins if not one.error)
    return next(filter(None, let_in), None)


@rule(
    "KIP-345: group.instance.id in Heartbeat v3, SyncGroup v3 and OffsetCommit v7",
    mend="Send group.instance.id in each Heartbeat, SyncGroup and OffsetCommit, too.",
)
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
            f"{process.name} sent {named} without its group.instance.id: a second process with this"
            " id cannot fence it",
            sorted(lacking.values(), key=lambda seen: seen.earliest_ms),
        )


@rule(
    "KIP-345: an instance id is of one process; a second one fences the first",
    mend="Set group.instance.id to a value that differs per process, e.g. the pod's name.",
)
def has_an_instance_id_of_its_own(process: ClientProcess) -> Iterator[Broken]:
    """Two members that are up at one time have two instance ids."""
    fenced = [one for _, one in process.refused(Error.FENCED_INSTANCE_ID)]
    joins = _namesakes(process, {one.instance_id for one in fenced}) if fenced else []
    found = ((one, join) for one in fenced if (join := _namesake(joins, one)) is not None)
    one, join = next(found, (None, None))
    if one is None or join is None:
        return
    since = [later for later in fenced[fenced.index(one) :] if later.instance_id == one.instance_id]
    other = join.seen.client_id
    is_back = any(
        later.api == "SYNC_GROUP" and later.arrived_ms > one.arrived_ms for later in process.sent
    )
    yield Broken(
        one.arrived_ms,
        f"{process.name} and {other} both use the group.instance.id {one.instance_id}:"
        f" {process.name} was fenced {often(len(since))} as {other} joined"
        f"{'' if is_back else ', and has read nothing since'}",
        (join.seen, one.seen),
    )


def _namesakes(process: ClientProcess, instance_ids: Collection[str | None]) -> Sequence[Sent]:
    """Return the JoinGroups of other clients under some instance ids.

    None where a fault gave one of them its id.
    """
    return [
        join
        for other in process.others
        if not (other.known.given_id or process.known.given_id)
        for join in other.joins
        if join.instance_id in instance_ids
    ]


def _namesake(joins: Sequence[Sent], fenced: Sent) -> Sent | None:
    """Return the last of these JoinGroups under the instance id of a request that was fenced."""
    before = (
        join
        for join in joins
        if join.instance_id == fenced.instance_id and join.arrived_ms < fenced.answered_ms
    )
    return max(before, key=lambda join: (not join.error, join.arrived_ms), default=None)


@rule(
    "AbstractCoordinator.Generation: each request has that of the last JoinGroup",
    mend="Give Heartbeat, SyncGroup and OffsetCommit the generation that the last JoinGroup was"
    " answered; keep none from before.",
    on_time=True,
)
def uses_its_generation(process: ClientProcess) -> Iterator[Broken]:
    """A member gives the generation of its last JoinGroup in every request."""
    stale = [
        (one, join)
        for _, one in process.refused(Error.ILLEGAL_GENERATION)
        if (join := _newer(process, one)) is not None
    ]
    if not stale:
        return
    (first, _), (last, joined) = stale[0], stale[-1]
    apis = Counter(one.api for one, _ in stale)
    sent = " and ".join(f"{count} {api}" for api, count in apis.most_common())
    lasted = f" over {seconds(last.arrived_ms - first.arrived_ms)}" if len(stale) > 1 else ""
    cost = _joins_because(process, {id(one) for one, _ in stale})
    rejoined = (
        f"; because of that it joined again {often(cost)}, each time a rebalance" if cost else ""
    )
    yield Broken(
        first.arrived_ms,
        f"{process.name} sent {sent} under generation {generation_in(last.seen.request)}{lasted},"
        f" while it was in generation {joined.generation}: all were refused with"
        f" {error_of(last)}{rejoined}",
        (joined.seen, *[one.seen for one, join in stale if join is joined][-SHOWN:]),
        by_order=len(stale) > SHOWN,
    )


def _newer(process: ClientProcess, one: Sent) -> Sent | None:
    """Return the last JoinGroup that a client had known the answer to for a time, if newer."""
    sent_ms, used = one.arrived_ms, generation_in(one.seen.request)
    known = [
        join
        for join in process.joins
        if not join.error and join.is_heard and join.answered_ms + LEARNED_MS < sent_ms
    ]
    excused = process.is_excused(sent_ms - LEARNED_MS, sent_ms)
    if not known or used is None or excused or not 0 <= used < known[-1].generation:
        return None
    return known[-1]


def _joins_because(process: ClientProcess, stale: set[int]) -> int:
    """Return how many JoinGroups followed stale requests (by `id`), with no other cause."""
    count, because = 0, False
    for one in process.sent:
        if one.api == "JOIN_GROUP":
            count += because and not one.error
            because = False
        elif one.error:
            because = id(one) in stale
    return count
