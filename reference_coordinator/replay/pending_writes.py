"""Record writes under way, and how they end.

The evidence shows the end of a write only through the responses that wait for it.
"""

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.replay.candidates import Due
from reference_coordinator.replay.clock import Clock
from reference_coordinator.replay.conditions import HELD_UP, Conditions
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
            latest_ms = conditions.latest_write(clock.latest_ms)
            latest_ms = min(done_ms + conditions.tolerance.early, latest_ms)
            due = Due(clock.earliest_ms, done_ms, latest_ms)
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
    taken `offsets.commit.timeout.ms` then, and no longer than the broker may be late. Any other
    failure needs a broker that was down meanwhile. Without either it succeeds.
    """
    error = _failure(seen, conditions)
    if error is NO_ERROR or _timed_out(seen, error, conditions) or _broken(seen, error, conditions):
        return error
    return NO_ERROR


def awaited_outcome(seen: ObservedRequest, writes: PendingWrites, conditions: Conditions) -> Error:
    """Return the outcome of another request's write that a request waited for (Java).

    Waiting for members takes as long as a write that times out. So a time-out needs more than its
    time: no later answer shows that the writes were confirmed, and a write of the group was under
    way, or a broker stood still for much of the time, so that a write of another group of the
    partition may have been.
    """
    error = _failure(seen, conditions)
    if error is NO_ERROR or _broken(seen, error, conditions):
        return error
    if not _timed_out(seen, error, conditions):
        return NO_ERROR
    timeout_ms = conditions.profile.settings.commit_timeout_ms
    due_ms = seen.started_ms + timeout_ms - ROUNDED_MS
    if conditions.confirmations.within(seen.handled_ms, due_ms):
        return NO_ERROR
    commits = (c for c in conditions.slow_commits if _meet(c, seen))
    under_way = any(
        write.response is None
        or write.answered_ms >= due_ms
        or outcome_of(write, conditions) is not NO_ERROR
        for write in (*(write for write, _ in writes.values()), *commits)
    )
    stalled_ms = conditions.anywhere.stalled_ms(seen.started_ms - timeout_ms, seen.answered_ms)
    return error if under_way or stalled_ms >= HELD_UP * timeout_ms else NO_ERROR


def _meet(commit: ObservedRequest, seen: ObservedRequest) -> bool:
    """Tell whether a commit was under way when a request was handled."""
    return commit.started_ms <= seen.handled_ms and commit.answered_ms >= seen.started_ms


def _failure(seen: ObservedRequest, conditions: Conditions) -> Error:
    """Return the error of an answer if it may be that of a write."""
    if not seen.response:
        return NO_ERROR
    code = conditions.observed(seen).error
    return Error(code) if code in conditions.failed_writes else NO_ERROR


def _timed_out(seen: ObservedRequest, error: Error, conditions: Conditions) -> bool:
    """Tell whether a request has the error, and took the time, of a write that times out."""
    profile = conditions.profile
    took_ms = seen.answered_ms - seen.started_ms
    return (
        error == profile.timed_out_write(seen.api)
        and took_ms >= profile.settings.commit_timeout_ms - ROUNDED_MS
        and seen.answered_ms <= conditions.latest_time_out(seen.handled_ms)
    )


def _broken(seen: ObservedRequest, error: Error, conditions: Conditions) -> bool:
    """Tell whether a broker was down meanwhile, so that a write may fail with an error."""
    return error not in ONLY_TIMEOUTS and any(
        outage.from_ms <= seen.answered_ms and outage.until_ms >= seen.earliest_ms
        for outage in conditions.outages
    )
