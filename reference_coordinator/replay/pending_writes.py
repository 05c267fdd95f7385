"""Record writes under way, and how they end.

The evidence shows the end of a write only through the responses that wait for it.
"""

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.replay.candidates import Due
from reference_coordinator.replay.clock import Clock
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.evidence import ObservedRequest

ONLY_TIMEOUTS = frozenset({Error.REQUEST_TIMED_OUT, Error.REBALANCE_IN_PROGRESS})
"""Errors by which a write tells that it timed out, and never that it failed in another way."""
ROUNDED_MS = 10.0
"""How far the times of a request in the log may be off, each being rounded."""


class PendingWrites(dict[str, tuple[ObservedRequest, Due]]):
    """The writes by the ids of the requests that wait for them, in the order they were started.

    Each has the window in which it will be done.
    """

    def fork(self) -> "PendingWrites":
        """Copy the writes."""
        return PendingWrites(self)

    def start(self, seen: ObservedRequest, clock: Clock, conditions: Conditions) -> None:
        """Start a write; the response that waits for it, if it came, shows when it is done."""
        if seen.response is None:
            latest_ms = conditions.latest_answer(clock.latest_ms)
            due = Due(clock.earliest_ms, clock.now_ms, latest_ms)
        else:
            done_ms = max(seen.answered_ms, clock.now_ms)
            due = Due(clock.earliest_ms, done_ms, done_ms + conditions.tolerance.early)
        self[seen.id] = seen, due

    def next_done(self, conditions: Conditions) -> list[str]:
        """List the writes that may be done next.

        Where answers wait for writes, writes are done in order; one may fail before its turn.
        """
        requests = list(self)
        if len(requests) < 2 or not conditions.profile.answers_wait_for_writes:
            return requests
        first, *others = requests
        ends = {request: outcome_of(self[request][0], conditions) for request in others}
        return [first, *(request for request in others if ends[request] is not NO_ERROR)]


def outcome_of(seen: ObservedRequest, conditions: Conditions) -> Error:
    """Return the outcome of a request's write, as far as its answer tells it.

    A write that its replicas do not confirm times out, whatever held them up: the request must have
    taken `offsets.commit.timeout.ms` then. Any other failure needs a broker that was down
    meanwhile. Without either it succeeds.
    """
    if not seen.response:
        return NO_ERROR
    profile, code = conditions.profile, conditions.protocol.response_of(seen).error
    if code not in profile.failed_writes:
        return NO_ERROR
    error = Error(code)
    if error == profile.timed_out_write(seen.api):
        took_ms = seen.answered_ms - seen.earliest_ms
        if took_ms >= profile.settings.commit_timeout_ms - ROUNDED_MS:
            return error
    down = any(
        outage.from_ms <= seen.answered_ms and outage.until_ms >= seen.earliest_ms
        for outage in conditions.outages
    )
    return error if down and error not in ONLY_TIMEOUTS else NO_ERROR
