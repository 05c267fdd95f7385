"""Rules about being a member: what a client sends while it is one, at its end, and afterwards."""

from collections.abc import Iterator
from itertools import islice
from math import inf

from kafka_protocol.errors import Error
from reports.judgement.clients.client_rules.lives import Life, last_ms
from reports.judgement.clients.client_rules.rules import (
    AFTER_MS,
    IN_GENERATION,
    NOTICED_MS,
    OUT,
    SHOWN,
    Broken,
    Rule,
    error_of,
    rule,
    times,
)

FEW_BEATS = 6
"""From how many heartbeats in a row on their interval is judged."""
OFF = 2.0
"""How many times rarer or denser heartbeats may be than configured."""
CLOSES_MS = 1_000.0
"""How much earlier than its history says a clean close may begin."""


@rule("KIP-345; AbstractCoordinator.resetStateOnResponseError", on_time=True)
def gives_up_what_it_lost(life: Life) -> Iterator[Broken]:
    """A member that is removed or fenced sends nothing more under its lost member id."""
    reported = {""}
    for _, one in life.refused(*OUT):
        lost = one.member_id
        if lost in reported:
            continue
        later = [
            other
            for other in life.sent
            if other.member_id == lost
            and other.api in IN_GENERATION
            and life.knew(one, other, NOTICED_MS)
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
def stops_when_fenced(life: Life) -> Iterator[Broken]:
    """A process that is fenced does not join under its instance id again."""
    # without a member id it had given its id up itself: no other process fenced it
    fenced = (one for _, one in life.refused(Error.FENCED_INSTANCE_ID) if one.member_id)
    for one in islice(fenced, 1):
        again = [
            other
            for other in life.joins
            if other.instance_id == one.instance_id and life.knew(one, other, AFTER_MS)
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
def stays_when_static(life: Life) -> Iterator[Broken]:
    """A static member sends no LeaveGroup."""
    leave = next((one for one in life.sent if one.api == "LEAVE_GROUP"), None)
    if leave is not None and life.is_static:
        yield Broken(
            leave.arrived_ms,
            "a static member sends LEAVE_GROUP: the group rebalances",
            [leave.seen],
        )


@rule("the consumer protocol; AbstractCoordinator.close")
def leaves_when_dynamic(life: Life) -> Iterator[Broken]:
    """A dynamic member sends LeaveGroup at a clean close."""
    if life.closes_ms == inf or life.is_static:
        return
    before = [one for one in life.sent if one.arrived_ms < life.closes_ms]
    since_ms = life.closes_ms - CLOSES_MS
    left = any(one.api == "LEAVE_GROUP" and one.arrived_ms > since_ms for one in life.sent)
    synced = any(one.api == "SYNC_GROUP" and one.is_heard and not one.error for one in before)
    if left or not synced:
        return
    last = before[-1]
    is_member = last.api in IN_GENERATION and last.is_heard and not last.error
    if is_member and not life.is_excused(last.answered_ms, life.closes_ms + NOTICED_MS):
        yield Broken(
            life.closes_ms,
            "a dynamic member closes and sends no LEAVE_GROUP: its partitions wait for its session"
            " to end",
            [last.latest],
        )


@rule("KIP-62: heartbeat.interval.ms", on_time=True)
def heartbeats_at_its_interval(life: Life) -> Iterator[Broken]:
    """A member sends heartbeats at its configured interval."""
    if life.heartbeat_ms is None:
        return
    for one in life.sent:
        if one.api != "HEARTBEAT" or one.count < FEW_BEATS:
            continue
        until_ms = one.latest.earliest_ms
        every_ms = (until_ms - one.arrived_ms) / (one.count - 1)
        off = every_ms > OFF * life.heartbeat_ms or every_ms < life.heartbeat_ms / OFF
        if off and not life.is_excused(one.arrived_ms, until_ms):
            yield Broken(
                one.arrived_ms,
                f"a HEARTBEAT every {every_ms:.0f} ms ({one.count} of them), and its interval is"
                f" {life.heartbeat_ms:.0f} ms",
                one.apart,
            )
            return


@rule("KIP-62: heartbeats go on while the application processes records", on_time=True)
def keeps_its_session(life: Life) -> Iterator[Broken]:
    """A member that goes on does not let its session expire."""
    for at, one in life.refused(Error.UNKNOWN_MEMBER_ID):
        before = max(life.sent[:at], key=lambda other: last_ms(other.latest), default=None)
        if before is None or before.error or before.member_id not in ("", one.member_id):
            continue
        since_ms, session_ms = last_ms(before.latest), life.session_ms(at)
        silent_ms = one.arrived_ms - since_ms
        if silent_ms > session_ms and not life.is_excused(since_ms, one.arrived_ms):
            yield Broken(
                one.arrived_ms,
                f"silent for {silent_ms:.0f} ms with a session timeout of {session_ms:.0f} ms, and"
                " removed",
                (before.latest, one.seen),
            )
            return


@rule("KIP-345: group.instance.id in Heartbeat v3, SyncGroup v3 and OffsetCommit v7")
def carries_its_instance_id(life: Life) -> Iterator[Broken]:
    """A static member gives its instance id in every request of its membership."""
    if not life.is_static:
        return
    lacking = {
        one.api: one.seen
        for one in reversed(life.sent)
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


OWNS_ALONE = Rule(
    "owns-alone",
    "A member gives up a partition before another is assigned it, or once it is out.",
    "the consumer protocol; KIP-429",
    on_time=True,
)
"""A rule about what clients print, which `judgement.clients.owners` judges."""
COMMITS_ON = Rule(
    "commits-on",
    "A member goes on from the offset of its partition that was committed last.",
    "the consumer protocol: an owner fetches the committed offset and goes on from it",
)
"""A rule about what clients commit, which `judgement.clients.offsets` judges."""
