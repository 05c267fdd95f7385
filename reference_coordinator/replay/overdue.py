"""A rebalance that nothing ends: the broker goes on, and the group hangs.

No request and no line tells of the group any more. Requests may wait that are in no log: a request
is logged when it is answered, and a kill loses it. They change nothing about the end of a phase,
which leaves a line:

- The join phase ends at its timer at the latest: with a generation, an empty group, or the line
  that nobody rejoined. New members that no log has may extend the initial delay (KIP-134).
- The leader's SyncGroup leaves a line when it comes. Without it the pending-sync timer
  (KAFKA-12890), or before 2.8.1 the leader's session, ends the generation. With it the write of the
  assignment is confirmed, or times out.
"""

from reference_coordinator.classic.events import JOIN_TIMER, SESSION_TIMER, SYNC_TIMER, Timer
from reference_coordinator.classic.state import Service, State
from reference_coordinator.replay.coordinator_epochs import CoordinatorEpoch
from reference_coordinator.replay.evidence import HintKind
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.result import ExpectedLine


def overdue_line(hypothesis: Hypothesis, epoch: CoordinatorEpoch) -> ExpectedLine | None:
    """Return the line that must have ended the phase, if the broker worked on long enough."""
    group = hypothesis.group
    if group.service is not Service.ACTIVE:
        return None
    if group.state is State.PREPARING_REBALANCE:
        line, generation = "stabilized", group.generation + 1
        latest_ms = _join_phase_ends_ms(hypothesis, epoch)
    elif group.state is State.COMPLETING_REBALANCE:
        line, generation = "assignment", group.generation
        latest_ms = _assignment_comes_ms(hypothesis, epoch)
    else:
        return None
    if latest_ms >= epoch.ended_ms:
        return None
    due_ms, subject = (latest_ms,) * 3, f"generation {generation}"
    return ExpectedLine(line, subject, *due_ms, incarnation=epoch.incarnation)


def _join_phase_ends_ms(hypothesis: Hypothesis, epoch: CoordinatorEpoch) -> float:
    """Return until when the join phase may end; where nobody rejoined, its timer starts again."""
    group = hypothesis.group
    due = hypothesis.timers.running.get(Timer(JOIN_TIMER))
    if due is None:
        return float("inf")
    nobody = _times(epoch, HintKind.NOBODY_REJOINED)
    again_ms = (at_ms + group.rebalance_timeout_ms for at_ms in nobody)
    left_ms = group.initial_delay_left_ms if group.previous_state is State.EMPTY else 0
    due_ms = max(due.latest_ms + left_ms, *again_ms, float("-inf"))
    return hypothesis.conditions.latest_expiry(due_ms)


def _assignment_comes_ms(hypothesis: Hypothesis, epoch: CoordinatorEpoch) -> float:
    """Return until when an assignment may be stored, or the generation may end without one."""
    group, conditions = hypothesis.group, hypothesis.conditions
    leader, profile = group.leader or "", conditions.profile
    spared = profile.sync_timer_spares_statics and leader in group.static_ids.values()
    by_sync = profile.pending_sync_timer and not spared
    timer = Timer(SYNC_TIMER) if by_sync else Timer(SESSION_TIMER, leader)
    due = hypothesis.timers.running.get(timer)
    if due is None:
        return float("inf")
    received = _times(epoch, HintKind.ASSIGNED)
    stored_ms = map(conditions.latest_time_out, received)
    return max(conditions.latest_expiry(due.latest_ms), *stored_ms, float("-inf"))


def _times(epoch: CoordinatorEpoch, kind: HintKind) -> list[float]:
    return [hint.at_ms for hint in epoch.hints if hint.kind is kind]
