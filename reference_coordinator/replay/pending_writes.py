"""Record writes under way, and how they end.

The evidence shows the end of a write only through the responses that wait for it.
"""

from collections.abc import Container

from reference_coordinator.classic.state import Group
from reference_coordinator.replay.candidates import Due
from reference_coordinator.replay.clock import Clock
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.failed_writes import STORED, outcome_of, unobserved_time_out


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
