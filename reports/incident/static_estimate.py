"""What a group's rebalances would have been, had its dynamic members been static (KIP-345).

A static member sends no LeaveGroup when it closes, and the coordinator gives one that comes back
within its session its place again, without a rebalance. So a member's going and its coming back
cost nothing if the two lie within the session. A rebalance is spared if all that it was for is
spared. It is an estimate; `ASSUMPTIONS` says what it takes for granted.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

from reports.incident.rebalances import CAME, Change, Rebalance
from reports.incident.timing import SESSION_MS, SESSIONS_MS

ASSUMPTIONS = (
    "A dynamic member that goes and one that comes with the same client id are one process.",
    "Where members share a client id, the earliest going is paired with the next coming.",
    "A static member sends no LeaveGroup when it closes, unless its client is set to do so.",
    "A member whose session expired sent its last heartbeat one session before.",
    "It came back with the subscription and the assignors that it had before.",
    "It came back while its group was stable: in the middle of another rebalance it may cost one.",
    "The coordinator worked all the time: sessions start again when a broker loads a group.",
)
_GOING = ("left", "expired")
_SPARED = ("new_member", "leave", "session_expired")
"""The reasons of rebalances that may be spared."""


Absence = tuple[Change, Change]
"""A dynamic member's going and its coming back."""


def absences(changes: Sequence[Change], ran_with_ms: float, session_ms: float) -> list[Absence]:
    """Pair those that went with those that came back within a session of `session_ms`.

    `ran_with_ms` is the session that they ran with.
    """
    came: dict[str, deque[Change]] = defaultdict(deque)
    for change in sorted(changes):
        if change.how == CAME and not change.static:
            came[change.client].append(change)
    since = lambda change: change.at_ms - (ran_with_ms if change.how == "expired" else 0.0)
    gone = [change for change in changes if change.how in _GOING and not change.static]
    found: list[Absence] = []
    for change in sorted(gone, key=lambda change: (since(change), change)):
        comers, since_ms = came[change.client], since(change)
        while comers and (comers[0].at_ms < since_ms or comers[0].member == change.member):
            comers.popleft()
        if comers and comers[0].at_ms - since_ms <= session_ms:
            found.append((change, comers.popleft()))
    return found


def spared(rebalances: Sequence[Rebalance], pairs: Sequence[Absence]) -> list[Rebalance]:
    """Return the rebalances in which nobody came and went but those who came back in time."""
    free = {(change.member, change.how) for pair in pairs for change in pair}
    return [
        rebalance
        for rebalance in rebalances
        if rebalance.reason in _SPARED
        and rebalance.changes
        and all((change.member, change.how) in free for change in rebalance.changes)
    ]


def estimate(
    rebalances: Sequence[Rebalance],
    changes: Sequence[Change],
    session_ms: float | None,
    seen_ms: float | None,
) -> dict[str, Any]:
    """Return the estimate for a session, and for others beside it; mark rebalances as `spared`.

    `session_ms` is the session asked for, `seen_ms` the one that the lines tell: without the one
    the other is taken, and without both the clients' default.
    """
    ran_with_ms = seen_ms or SESSION_MS
    asked_ms = session_ms or ran_with_ms
    pairs = {
        each: absences(changes, ran_with_ms, each) for each in sorted({asked_ms, *SESSIONS_MS})
    }
    by_session = {each: spared(rebalances, of_each) for each, of_each in pairs.items()}
    for rebalance in by_session[asked_ms]:
        rebalance.spared = True
    return {
        "session_ms": asked_ms,
        "session_seen_ms": seen_ms,
        "rebalances": len(rebalances),
        "spared": len(by_session[asked_ms]),
        "absences": len(pairs[asked_ms]),
        "spared_by_session_ms": [[each, len(free)] for each, free in by_session.items()],
    }
