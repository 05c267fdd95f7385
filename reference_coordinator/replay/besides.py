"""What may happen besides the likely: tried last, and only where an answer asks for it.

A tie that no answer decides may end otherwise, and so may the pick of a leader. And where the
profile has it so, a session that was restarted may end all the same, because it had run out before;
see `overtaken_expiry_counts`.
"""

from collections.abc import Iterator, Sequence

from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import Observed
from reference_coordinator.replay.hypothesis import World
from reference_coordinator.replay.ties import tied_protocols


def besides(world: World, candidates: Sequence[Candidate], until_ms: float) -> list[Candidate]:
    """List what else may happen next, where candidates may, up to a time."""
    others = [other for candidate in candidates for other in _tipped(world, candidate)]
    others += [other for candidate in candidates for other in _led(world, candidate)]
    return [*others, *overtaken(world, until_ms)]


def _tipped(world: World, candidate: Candidate) -> Iterator[Candidate]:
    """Yield what a candidate may do besides, where it leaves a tie."""
    if isinstance(candidate.cause, Observed):
        for protocol in tied_protocols(world.group, candidate.cause):
            yield candidate._replace(protocol=protocol)


def _led(world: World, candidate: Candidate) -> Iterator[Candidate]:
    """Yield the SyncGroup of who leads without having been told; see `settle_leader`."""
    seen, group = candidate.cause, world.group
    if isinstance(seen, Observed) and seen.api == "SYNC_GROUP" and group.leader is None:
        member_id = seen.request.get("memberId") or ""
        if member_id in group.open_leaders:
            yield candidate._replace(leader=member_id)


def overtaken(world: World, until_ms: float) -> list[Candidate]:
    """List the sessions that may end though they were restarted: at the time they would have."""
    early, slack = world.tolerance.early, world.tolerance.timer
    return [
        Candidate(
            max(due.earliest_ms - early, world.earliest_ms),
            world.now_ms,
            world.latest(due.latest_ms, slack),
            timer,
            overtaken=True,
            of_pending=due.of_pending,
        )
        for timer, due in world.overtaken.items()
        if due.earliest_ms - early <= until_ms
    ]
