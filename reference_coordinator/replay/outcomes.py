"""How record writes end: nothing in the evidence tells, but the answers that waited for them."""

from collections.abc import Sequence

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.bodies import response_of
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay.evidence import ObservedRequest, Outage

ONLY_TIMEOUTS = frozenset({Error.REQUEST_TIMED_OUT, Error.REBALANCE_IN_PROGRESS})
"""Errors by which a write tells that it timed out, and never that it failed in another way."""
ROUNDED_MS = 10.0
"""How far the times of a request in the log may be off, each being rounded."""


def outcome_of(seen: ObservedRequest, outages: Sequence[Outage], profile: Profile) -> Error:
    """Return the outcome of a request's write, as far as its answer tells it.

    A write that its replicas do not confirm times out, whatever held them up: the request must have
    taken `offsets.commit.timeout.ms` then. Any other failure needs a broker that was down
    meanwhile. Without either it succeeds.
    """
    if not seen.response:
        return NO_ERROR
    code = response_of(seen).error
    if code not in profile.failed_writes:
        return NO_ERROR
    error = Error(code)
    if error == profile.timed_out_write(seen.api):
        took_ms = seen.answered_ms - seen.earliest_ms
        if took_ms >= profile.settings.commit_timeout_ms - ROUNDED_MS:
            return error
    down = any(
        outage.from_ms <= seen.answered_ms and outage.until_ms >= seen.earliest_ms
        for outage in outages
    )
    return error if down and error not in ONLY_TIMEOUTS else NO_ERROR
