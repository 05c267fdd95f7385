"""Rules on heartbeats: they go on at their interval, whatever the application does."""

from collections.abc import Iterator

from kafka_protocol.errors import Error
from reports.judgement.clients.client_rules.client_processes import (
    OUT,
    Broken,
    ClientProcess,
    Span,
    last_ms,
    rule,
)
from reports.judgement.clients.client_rules.words import SHOWN, seconds, times

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
        off = (
            every_ms > OFF * process.known.heartbeat_ms
            or every_ms < process.known.heartbeat_ms / OFF
        )
        if off and not process.is_excused(one.arrived_ms, until_ms):
            yield Broken(
                one.arrived_ms,
                f"a HEARTBEAT every {every_ms:.0f} ms ({one.count} of them), and its interval is"
                f" {process.known.heartbeat_ms:.0f} ms",
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
                f"silent for {silent_ms:.0f} ms with a session timeout of {session_ms:.0f} ms, and"
                " removed",
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
    for from_ms, until_ms in _without_heartbeats(process):
        commits = [
            one
            for one in process.sent
            if one.api == "OFFSET_COMMIT"
            and one.member_id
            and from_ms < one.arrived_ms <= one.latest.earliest_ms < until_ms
        ]
        if not commits or process.is_excused(from_ms, until_ms):
            continue
        last = commits[-1]
        at = process.sent.index(last)
        went_on_ms = last.latest.earliest_ms - from_ms
        if went_on_ms > process.session_ms(at):
            yield Broken(
                from_ms,
                f"{process.name} sent no HEARTBEAT for {seconds(until_ms - from_ms)}, longer than"
                f" its session timeout of {seconds(process.session_ms(at))}, and went on to commit:"
                f" {times(commits)} OFFSET_COMMIT in that time",
                [one.seen for one in commits[-SHOWN:]],
            )
            return


def _without_heartbeats(process: ClientProcess) -> Iterator[Span]:
    """Yield the times between two heartbeats of a member, in which it did not join, either.

    They end when an answer says that it is no member any more, or it ends.
    """
    since_ms: float | None = None
    for one in process.sent:
        if one.api not in ("HEARTBEAT", "JOIN_GROUP", "SYNC_GROUP") and one.error not in OUT:
            continue
        if since_ms is not None:
            yield since_ms, last_ms(one.seen)
        if one.api == "HEARTBEAT" and one.count > 1:
            before, after = one.apart
            yield last_ms(before), after.earliest_ms
        is_member = one.api in ("HEARTBEAT", "SYNC_GROUP") and one.error not in OUT
        since_ms = last_ms(one.latest) if is_member else None
    if since_ms is not None:
        yield since_ms, process.ends_ms
