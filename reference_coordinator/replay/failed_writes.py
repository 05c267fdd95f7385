"""Record writes under way: how they end, which answers may show a failure, what bears it out.

A coordinator answers with the error of a write in these cases alone:

- The write timed out: its replicas did not confirm it within `offsets.commit.timeout.ms`. Scala
  prints that. No commit that came later was confirmed before.
- The append failed. The broker prints the partition (Java) or the group (Scala), and the error,
  before it answers. While no broker is down, only a record that is too large fails.
- The broker gave the partition up, or another took it over: NOT_COORDINATOR.

Where the evidence has no coordinator lines, an outage alone bears out that an append failed.
"""

from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.effects import Persist, Response
from reference_coordinator.classic.state import Group
from reference_coordinator.replay.candidates import Due
from reference_coordinator.replay.clock import Clock
from reference_coordinator.replay.conditions import FINE, Conditions
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.timing import HELD_UP, ROUNDED_MS

TIMED_OUT = "failed_write_timed_out"
LOGGED = "failed_write_logged"
APPENDED = "failed_write_appended"
UNLOADED = "failed_write_unloaded"
IN_OUTAGE = "failed_write_in_outage"


class Outcome(NamedTuple):
    """How a write ended; `why` is the kind of what bears a failure out."""

    error: Error
    why: str = ""


STORED = Outcome(NO_ERROR)


def outcome_of(seen: ObservedRequest, conditions: Conditions) -> Outcome:
    """Return the outcome of a request's own write, as far as its answer tells it."""
    error = failure_in(seen, conditions)
    if error is NO_ERROR:
        return STORED
    if _timed_out(seen, error, conditions):
        return Outcome(error, TIMED_OUT)
    return _append_failed(seen, error, conditions)


def awaited_outcome(
    seen: ObservedRequest,
    under_way: Iterable[ObservedRequest],
    conditions: Conditions,
    *,
    unobserved: bool = False,
) -> Outcome:
    """Return the outcome of another request's write that a request waited for (Java).

    `under_way` are the requests of the group whose writes were, `unobserved` says that one of these
    may have timed out after its request was answered.
    """
    outcome = outcome_of(seen, conditions)
    if outcome.why != TIMED_OUT or _was_held_up(seen, under_way, conditions, unobserved=unobserved):
        return outcome
    return _append_failed(seen, outcome.error, conditions)


def unobserved_time_out(
    seen: ObservedRequest, member_id: str, conditions: Conditions
) -> tuple[float, float] | None:
    """Return when the write of a static rejoin timed out whose JoinGroup was answered before.

    The end of a join phase answers a JoinGroup whose write is under way. If the write times out
    after that, the member gets its old id back, and the coordinator prints it.
    """
    due_ms, latest_ms = times_out_ms(seen, conditions), conditions.latest_time_out(seen.handled_ms)
    if conditions.commits.within(seen.handled_ms, due_ms):
        return None
    if conditions.has_lines:
        at_ms = conditions.hints.of_failed_write(member_id, due_ms, latest_ms)
        around_ms = conditions.tolerance.line
        return None if at_ms is None else (at_ms - around_ms, at_ms + around_ms)
    return (due_ms, latest_ms) if conditions.is_broken(seen.earliest_ms, due_ms) else None


def unobserved_outcome(conditions: Conditions) -> Outcome:
    """Return the outcome of such a write."""
    return Outcome(conditions.profile.timed_out_write("JOIN_GROUP"), TIMED_OUT)


def may_wait(ours: Response, seen: ObservedRequest, *, at_once: bool) -> bool:
    """Tell whether the oracle's answer to a request may have had to wait for a write.

    A refusal is sent at once. So is what a group answers to a JoinGroup or SyncGroup `at_once`,
    when it receives it: the group completes these by itself (Java), and Scala writes nothing then.
    """
    if seen.api in FINE:
        return ours.error in FINE[seen.api]
    return not (at_once and seen.api in ("JOIN_GROUP", "SYNC_GROUP"))


def failure_in(seen: ObservedRequest, conditions: Conditions) -> Error:
    """Return the error of an answer if it may be that of a write."""
    if not seen.response:
        return NO_ERROR
    code = conditions.observed(seen).error
    return Error(code) if code in conditions.failed_writes else NO_ERROR


def times_out_ms(seen: ObservedRequest, conditions: Conditions) -> float:
    """Return the earliest that a request can be answered whose write times out."""
    return seen.started_ms + conditions.profile.settings.commit_timeout_ms - ROUNDED_MS


def _timed_out(seen: ObservedRequest, error: Error, conditions: Conditions) -> bool:
    """Tell whether a request has the error, and took the time, of a write that times out.

    It must have taken no longer than the broker may be late.
    """
    profile, due_ms = conditions.profile, times_out_ms(seen, conditions)
    if (
        error != profile.timed_out_write(seen.api)
        or not due_ms <= seen.answered_ms <= conditions.latest_time_out(seen.handled_ms)
        or conditions.commits.within(seen.handled_ms, due_ms)
    ):
        return False
    if profile.answers_wait_for_writes or not conditions.has_lines:
        return True
    named = (AppendError.TIMED_OUT, AppendError.UNNAMED)
    return any(kind in named for kind, _ in _printed(seen, conditions))


def _was_held_up(
    seen: ObservedRequest,
    under_way: Iterable[ObservedRequest],
    conditions: Conditions,
    *,
    unobserved: bool,
) -> bool:
    """Tell whether a request may have waited for a write until that timed out.

    Waiting for members takes as long. So it needs more than its time: no later answer shows that
    the writes were confirmed, and a write of the group was under way, or had timed out before, or a
    broker stood still for much of the time, so that a write of another group of the partition may
    have been.
    """
    due_ms = times_out_ms(seen, conditions)
    if conditions.confirmations.within(seen.handled_ms, due_ms):
        return False
    if unobserved or any(
        _is_left_unconfirmed(commit, seen, conditions) for commit in conditions.slow_commits
    ):
        return True
    commits = (
        commit
        for commit in conditions.slow_commits
        if commit.started_ms <= seen.handled_ms and commit.answered_ms >= seen.started_ms
    )
    if any(
        write.response is None
        or write.answered_ms >= due_ms
        or outcome_of(write, conditions) is not STORED
        for write in (*under_way, *commits)
    ):
        return True
    timeout_ms = conditions.profile.settings.commit_timeout_ms
    stalled_ms = conditions.anywhere.stalled_ms(seen.started_ms - timeout_ms, seen.answered_ms)
    return stalled_ms >= HELD_UP * timeout_ms


def _is_left_unconfirmed(
    write: ObservedRequest, seen: ObservedRequest, conditions: Conditions
) -> bool:
    """Tell whether a write timed out before a request, and nothing was confirmed since.

    Its record stays in the log: what comes later waits for it, too. Seen on 4.3.0, of a broker that
    was cut off from its replicas.
    """
    if write.answered_ms > seen.started_ms:
        return False
    confirmed = conditions.confirmations.within(write.handled_ms, times_out_ms(seen, conditions))
    return not confirmed and outcome_of(write, conditions).why == TIMED_OUT


def _append_failed(seen: ObservedRequest, error: Error, conditions: Conditions) -> Outcome:
    """Return what bears out that a write failed with an error before its time was over."""
    kinds = [k for k in AppendError if error in conditions.profile.answers_to(k, seen.api)]
    broken = conditions.is_broken(seen.earliest_ms, seen.answered_ms)
    if not conditions.has_lines:
        return Outcome(error, IN_OUTAGE) if broken and kinds else STORED
    for kind, at_ms in _printed(seen, conditions):
        named = kind in kinds and (broken or kind == AppendError.TOO_LARGE)
        given_up = kind == "unloaded" and broken and error is Error.NOT_COORDINATOR
        before_ms = at_ms - conditions.tolerance.early
        confirmed = conditions.commits.within(seen.handled_ms, before_ms)
        if (named or given_up) and not confirmed:
            of_line = APPENDED if kind == AppendError.APPENDED else LOGGED
            return Outcome(error, of_line if named else UNLOADED)
    lost = broken and error is Error.NOT_COORDINATOR and _is_led_elsewhere(seen, conditions)
    return Outcome(error, UNLOADED) if lost else STORED


def empty_write_failed(write: Persist, at_ms: float, conditions: Conditions) -> bool:
    """Tell whether a write of a group that became empty at a time, by a timer, failed.

    No answer tells: the broker's own line that nothing could be appended does, in an outage, before
    a later commit is confirmed.
    """
    empty = write.request is None and write.record is not None and not write.record.members
    if not (empty and conditions.requests and conditions.is_broken(at_ms, at_ms)):
        return False
    tolerance, broker = conditions.tolerance, conditions.requests[0].broker
    return any(
        event.broker == broker
        and event.kind in (AppendError.NOT_LEADER, AppendError.NOT_REPLICATED)
        and at_ms - tolerance.early <= event.at_ms <= at_ms + tolerance.reply
        and not conditions.commits.within(at_ms, event.at_ms - tolerance.early)
        for event in conditions.of_partition
    )


def _printed(seen: ObservedRequest, conditions: Conditions) -> Iterator[tuple[str, float]]:
    """Yield what the broker printed of its partition while it had a request, and when."""
    early = conditions.tolerance.early
    for event in conditions.of_partition:
        within = seen.started_ms - early <= event.at_ms <= seen.answered_ms + early
        if event.broker == seen.broker and within:
            yield event.kind, event.at_ms


def _is_led_elsewhere(seen: ObservedRequest, conditions: Conditions) -> bool:
    """Tell whether another broker has taken the partition over from the one that answers."""
    loads = [
        (event.at_ms, event.broker)
        for event in conditions.of_partition
        if event.kind in ("loading", "loaded") and event.at_ms <= seen.answered_ms
    ]
    return bool(loads) and max(loads)[1] != seen.broker


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

    def outlive_answer(self, seen: ObservedRequest, conditions: Conditions) -> None:
        """Let a write go on though something else answered its request: it may still time out."""
        if seen.id in self and seen.api == "JOIN_GROUP" and not seen.response_fields["errorCode"]:
            _, due = self[seen.id]
            latest_ms = conditions.latest_time_out(seen.handled_ms)
            self[seen.id] = seen, due._replace(latest_ms=max(due.latest_ms, latest_ms))

    def unobserved_time_outs(
        self, group: Group, waiting: Container[str], conditions: Conditions
    ) -> dict[str, tuple[float, float]]:
        """Return when writes may time out whose requests do not wait any more."""
        found = {}
        for request, (seen, _) in self.items():
            write = group.writes.get(request)
            if request not in waiting and write is not None and write.member_id:
                window = unobserved_time_out(seen, write.member_id, conditions)
                if window is not None:
                    found[request] = window
        return found

    def next_done(self, conditions: Conditions) -> list[str]:
        """List the writes that may be done next.

        Where answers wait for writes, writes are done in order; one may fail before its turn.
        """
        requests = list(self)
        if len(requests) < 2 or not conditions.profile.answers_wait_for_writes:
            return requests
        first, *others = requests
        ends = {request: outcome_of(self[request][0], conditions) for request in others}
        return [first, *(request for request in others if ends[request] is not STORED)]
