"""What a group's rebalances would have been, had its dynamic members been static (KIP-345).

A static member sends no LeaveGroup when it closes, and the coordinator gives one that comes back
within its session its place again, without a rebalance. So a member's going and its coming back
cost nothing if the two lie within the session. A rebalance is spared if all that it was for is
spared. What it costs is that the partitions of a member that went have no owner until it is back,
or its session ends. It is an estimate; `ASSUMPTIONS` says what it takes for granted.
"""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence
from math import inf
from typing import Any

from reports.incident.rebalances import CAME, EMPTY, Change, Rebalance, Rebalances
from reports.incident.timing import NEAR_MS, SESSION_MS, SESSIONS_MS

ASSUMPTIONS = (
    "A dynamic member that goes and one that comes with the same client id are one process.",
    "Where members share a client id, the earliest going is paired with the next coming.",
    "A static member sends no LeaveGroup when it closes, unless its client is set to do so.",
    "A member whose session expired sent its last heartbeat one session before.",
    "It came back with the subscription and the assignors that it had before.",
    "It came back while its group was stable: in the middle of another rebalance it may cost one.",
    "What a member owned stays without an owner until it is back, or its session ends.",
    "The coordinator worked all the time: sessions start again when a broker loads a group.",
)
_GOING = ("left", "expired")
_SPARED = ("new_member", "leave", "session_expired")
"""The reasons of rebalances that may be spared."""


Absence = tuple[Change, Change]
"""A dynamic member's going and its coming back."""


def absences(changes: Sequence[Change], ran_with_ms: float, session_ms: float) -> list[Absence]:
    """Pair those that went with those that came back within a session of `session_ms`.

    `changes` are of dynamic members; `ran_with_ms` is the session that they ran with.
    """
    came: dict[str, deque[Change]] = defaultdict(deque)
    for change in sorted(changes):
        if change.how == CAME:
            came[change.client].append(change)
    gone = [change for change in changes if change.how in _GOING]
    found: list[Absence] = []
    for change in sorted(gone, key=lambda change: (_since_ms(change, ran_with_ms), change)):
        comers, since_ms = came[change.client], _since_ms(change, ran_with_ms)
        while comers and (comers[0].at_ms < since_ms or comers[0].member == change.member):
            comers.popleft()
        if comers and comers[0].at_ms - since_ms <= session_ms:
            found.append((change, comers.popleft()))
    return found


def _since_ms(change: Change, ran_with_ms: float) -> float:
    """Return since when a member that went was away."""
    return change.at_ms - (ran_with_ms if change.how == "expired" else 0.0)


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


def idle(
    changes: Sequence[Change],
    pairs: Sequence[Absence],
    empty_ms: Sequence[float],
    ran_with_ms: float,
    session_ms: float,
) -> tuple[int, float]:
    """Return of how many members the partitions would have lain idle, and for how long in all.

    That is beside the time for which they did, until the old session ended. `pairs` are the members
    that came back within `session_ms`. From the times `empty_ms` on nobody was left to own them.
    """
    back_ms = {went: came.at_ms for went, came in pairs}
    added_ms = []
    for change in (change for change in changes if change.how in _GOING):
        back = back_ms.get(change, inf)
        empty = empty_ms[bisect_left(empty_ms, change.at_ms - NEAR_MS) :][:1]
        until_ms = min(back, _since_ms(change, ran_with_ms) + session_ms, *empty)
        added_ms.append(until_ms - min(back, change.at_ms))
    added_ms = [each for each in added_ms if each > 0]
    return len(added_ms), sum(added_ms)


def estimate(found: Rebalances, session_ms: float | None, seen_ms: float | None) -> dict[str, Any]:
    """Return the estimate for a session, and for others beside it; mark rebalances as `spared`.

    `session_ms` is the session asked for, `seen_ms` the one that the lines tell: without the one
    the other is taken, and without both the clients' default. Members count as dynamic where a line
    tells it. For the keys see `row_about`.
    """
    ran_with_ms = seen_ms or SESSION_MS
    kinds = [(change, found.static(change.member)) for change in found.changes]
    dynamic = [change for change, static in kinds if static is False]
    perhaps = [change for change, static in kinds if not static]
    empty_ms = [one.ended_ms for one in found.found if one.ending == EMPTY and one.ended_ms]

    def with_session(each_ms: float) -> tuple[list[Rebalance], dict[str, float]]:
        pairs = absences(dynamic, ran_with_ms, each_ms)
        free = spared(found.found, pairs)
        members, idle_ms = idle(dynamic, pairs, empty_ms, ran_with_ms, each_ms)
        cost = {"idle_members": members, "idle_ms": idle_ms}
        return free, {"session_ms": each_ms, "spared": len(free), **cost}

    free, own = with_session(session_ms or ran_with_ms)
    for rebalance in free:
        rebalance.spared = True
    if_dynamic = absences(perhaps, ran_with_ms, own["session_ms"])
    return {
        **own,
        "session_seen_ms": seen_ms,
        "rebalances": len(found.found),
        "spared_up_to": len(spared(found.found, if_dynamic)),
        "unknown": len({change.client for change, static in kinds if static is None}),
        "by_session": [with_session(each)[1] for each in SESSIONS_MS],
    }
