"""Rules on when a client leaves: when a dynamic one closes, and else never."""

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from reports.judgement.clients.client_rules.client_processes import (
    IN_GENERATION,
    Broken,
    ClientProcess,
    Sent,
    last_ms,
    rule,
)
from reports.judgement.clients.client_rules.words import SHOWN, seconds
from reports.timing import CLOSES_MS, LEARNED_MS


@rule(
    "KIP-345: a static member never sends LeaveGroup at its close",
    mend="Send no LeaveGroup at the close of a member that has a group.instance.id.",
)
def stays_when_static(process: ClientProcess) -> Iterator[Broken]:
    """A static member sends no LeaveGroup."""
    leave = next((one for one in process.sent if one.api == "LEAVE_GROUP"), None)
    if leave is not None and process.is_static:
        yield Broken(
            leave.arrived_ms,
            "a static member sends LEAVE_GROUP: the group rebalances",
            [leave.seen],
        )


@rule(
    "the consumer protocol; AbstractCoordinator.close",
    mend="Close the consumer before the process ends, so that it sends LeaveGroup.",
)
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


@rule(
    "KIP-62: max.poll.interval.ms; KIP-345 (a static member sends no LeaveGroup then)",
    mend="Poll within max.poll.interval.ms: raise it, take fewer records a poll"
    " (max.poll.records), or work on records in another thread.",
    on_time=True,
)
def stays_while_it_runs(process: ClientProcess) -> Iterator[Broken]:
    """A member that goes on does not leave by itself."""
    gone = [*_departures(process)]
    if not gone:
        return
    first = gone[0]
    away = [one.back.arrived_ms - one.last.arrived_ms for one in gone if one.back is not None]
    often = f" {len(gone)} times, first" if len(gone) > 1 else ""
    back = f" and came back {seconds(max(away))} later at most" if away else ""
    yield Broken(
        first.last.arrived_ms,
        f"{process.name} left the group by itself{often} {seconds(first.idle_ms)} after its last"
        f" commit or rebalance (its max.poll.interval.ms is {seconds(first.timeout_ms)}){back}; the"
        " group rebalances when it leaves and when it comes back",
        [one.seen for gone_ in gone[:SHOWN] for one in (gone_.last, gone_.back) if one is not None],
    )


class _Departure(NamedTuple):
    """What a member sent last, and when it came back; `idle_ms` is how long it had done nothing."""

    last: Sent
    back: Sent | None
    idle_ms: float
    timeout_ms: float


def _departures(process: ClientProcess) -> Iterator[_Departure]:
    """Yield when a member left that no fault acted on, and that did not close then."""
    worked_ms = -inf
    for at, one in enumerate(process.sent):
        if one.api == "LEAVE_GROUP" and one.arrived_ms < process.ends_ms - CLOSES_MS:
            back = process.next_join(one.arrived_ms)
            since_ms = one.arrived_ms - process.timeout_ms(at) - LEARNED_MS
            shows = back is not None or process.ends_ms < inf
            if worked_ms > -inf and shows and not process.is_acted_on(since_ms, one.arrived_ms):
                yield _Departure(one, back, one.arrived_ms - worked_ms, process.timeout_ms(at))
        elif one.api in ("SYNC_GROUP", "OFFSET_COMMIT") and not one.error:
            worked_ms = max(worked_ms, last_ms(one.latest))
