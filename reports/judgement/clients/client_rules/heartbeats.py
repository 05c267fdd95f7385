"""Rules on heartbeats: they go on at their interval, whatever the application does."""

from collections.abc import Iterator

from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.client_rules.client_processes import (
    MANY,
    OUT,
    Broken,
    ClientProcess,
    last_ms,
    rule,
)
from reports.judgement.clients.client_rules.shown import often, seconds

FEW_BEATS = 6  # from how many heartbeats in a row on their interval is judged
OFF = 2.0  # how many times rarer or denser heartbeats may be than configured


@rule(
    "KIP-62: heartbeat.interval.ms",
    mend="Send heartbeats every heartbeat.interval.ms, from a thread that the application "
    "does not hold up.",
    on_time=True,
)
def heartbeats_at_its_interval(process: ClientProcess) -> Iterator[Broken]:
    """A member sends heartbeats at its configured interval."""
    if process.known.heartbeat_ms is None:
        return
    for one in process.sent:
        if one.api != "HEARTBEAT" or one.count < FEW_BEATS:
            continue
        until_ms = one.latest.earliest_ms
        every_ms = (until_ms - one.arrived_ms) / (one.count - 1)
        due_ms = process.known.heartbeat_ms
        off = not due_ms / OFF <= every_ms <= due_ms * OFF
        if off and not process.is_excused(one.arrived_ms, until_ms):
            yield Broken(
                one.arrived_ms,
                f"{process.name} sent a HEARTBEAT every {every_ms:.0f} ms, {one.count} in a row;"
                f" its heartbeat.interval.ms is {due_ms:.0f} ms",
                one.apart,
            )
            return


@rule(
    "KIP-62: heartbeats go on while the application processes records",
    mend="Send heartbeats while the application works, or raise session.timeout.ms.",
    on_time=True,
)
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
                f"{process.name} sent nothing for {seconds(silent_ms)}, longer than its session"
                f" timeout of {seconds(session_ms)}, and was removed",
                (before.latest, one.seen),
            )
            return


@rule(
    "KIP-62: the heartbeat thread goes on as long as the member is one",
    mend="Go on with heartbeats until the member has left, also while it is asked to join again.",
    on_time=True,
)
def goes_on_with_its_heartbeats(process: ClientProcess) -> Iterator[Broken]:
    """A member that sends other requests sends heartbeats, too."""
    for at, last, until_ms in _without_heartbeats(process):
        from_ms, session_ms = last_ms(last), process.session_ms(at)
        due_ms = from_ms + session_ms
        if until_ms <= due_ms:
            continue
        goes_on = process.committed(from_ms, due_ms) and process.committed(due_ms, until_ms)
        if goes_on and not process.is_excused(from_ms, until_ms):
            commits = process.committed(from_ms, until_ms)
            shown = (one.latest for one in process.sent if one.api == "OFFSET_COMMIT")
            yield Broken(
                from_ms,
                f"{process.name} sent no HEARTBEAT for {seconds(until_ms - from_ms)}, longer than"
                f" its session timeout of {seconds(session_ms)}, though it went on: it sent"
                f" OFFSET_COMMIT {often(commits)} in that time",
                (last, *(one for one in shown if from_ms < one.earliest_ms <= until_ms)),
                by_order=commits >= MANY,
            )
            return


def _without_heartbeats(
    process: ClientProcess,
) -> Iterator[tuple[int, ObservedRequest, float]]:
    """Yield the times between two heartbeats of a member, in which it did not join, either.

    Each has the place and the request that it begins with, and ends where an answer says that it is
    no member any more.
    """
    began: tuple[int, ObservedRequest] | None = None
    for at, one in enumerate(process.sent):
        beats = one.api in ("HEARTBEAT", "SYNC_GROUP")
        if not beats and one.api != "JOIN_GROUP" and one.error not in OUT:
            continue
        if began is not None:
            yield *began, one.arrived_ms
        if beats and one.count > 1:
            before, after = one.apart
            yield at, before, after.earliest_ms
        began = (at, one.latest) if beats and one.error not in OUT else None
    if began is not None:
        yield *began, min(process.ends_ms, max(last_ms(one.latest) for one in process.sent))
