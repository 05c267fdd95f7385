"""What may happen besides the likely: tried last, and only where an answer asks for it.

A tie that no answer decides may end otherwise, and so may the pick of a leader. And where the
profile has it so, a session that was restarted may end all the same, because it had run out before;
see `overtaken_expiry_counts`.
"""

from collections.abc import Iterator, Sequence

from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.ties import tied_protocols


def alternatives(
    hypothesis: Hypothesis, candidates: Sequence[Candidate], until_ms: float
) -> list[Candidate]:
    """List what else may happen next, where candidates may, up to a time."""
    others = [
        other for candidate in candidates for other in _other_protocols(hypothesis, candidate)
    ]
    others += [other for candidate in candidates for other in _other_leaders(hypothesis, candidate)]
    return [*others, *overtaken(hypothesis, until_ms)]


def _other_protocols(hypothesis: Hypothesis, candidate: Candidate) -> Iterator[Candidate]:
    """Yield what a candidate may do besides, where it leaves a tie."""
    if isinstance(candidate.cause, ObservedRequest):
        for protocol in tied_protocols(hypothesis.group, candidate.cause):
            yield candidate._replace(protocol=protocol)


def _other_leaders(hypothesis: Hypothesis, candidate: Candidate) -> Iterator[Candidate]:
    """Yield the SyncGroup of who leads without having been told; see `settle_leader`."""
    seen, group = candidate.cause, hypothesis.group
    if isinstance(seen, ObservedRequest) and seen.api == "SYNC_GROUP" and group.leader is None:
        member_id = seen.request.get("memberId") or ""
        if member_id in group.open_leaders:
            yield candidate._replace(leader=member_id)


def overtaken(hypothesis: Hypothesis, until_ms: float) -> list[Candidate]:
    """List the sessions that may end though they were restarted: at the time they would have."""
    early, slack = hypothesis.tolerance.early, hypothesis.tolerance.timer
    return [
        Candidate(
            max(due.earliest_ms - early, hypothesis.earliest_ms),
            hypothesis.now_ms,
            hypothesis.lateness.latest(due.latest_ms, slack),
            timer,
            overtaken=True,
            of_pending=due.of_pending,
        )
        for timer, due in hypothesis.overtaken.items()
        if due.earliest_ms - early <= until_ms
    ]
