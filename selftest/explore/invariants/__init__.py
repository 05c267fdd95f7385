"""What must hold after every step of the coordinator, as the protocol and KIP-345 promise it.

In goes one step: the scene before and after, the event and its effects; out come the invariants
that it breaks. That every request is answered at last is checked by `waiting`.
"""

from collections.abc import Callable, Iterator

from selftest.explore.invariants import answers, groups, members, rebalances
from selftest.explore.scene import Stepped

__all__ = ["INVARIANTS", "Stepped", "broken"]


def broken(step: Stepped) -> Iterator[str]:
    """Yield the invariants that a step breaks, each with what broke it: `name: detail`."""
    for name, check in CHECKS:
        for detail in check(step):
            yield f"{name}: {detail}"


AT_LAST = "answered_at_last"
CHECKS: tuple[tuple[str, Callable[[Stepped], Iterator[str]]], ...] = (
    ("one_leader", groups.one_leader),
    ("leader_knows_all", groups.leader_knows_all),
    ("one_mapping", groups.one_mapping),
    ("generation_grows", groups.generation_grows),
    ("generation_given_once", groups.generation_given_once),
    ("answered_once", answers.answered_once),
    (AT_LAST, answers.answered_at_unload),
    ("member_ends", groups.member_ends),
    ("phase_ends", groups.phase_ends),
    ("static_stays", members.static_stays),
    ("id_stays", members.id_stays),
    ("session_served", members.session_served),
    ("known_is_let_in", members.known_is_let_in),
    ("member_is_served", answers.member_is_served),
    ("unknown_is_refused", answers.unknown_is_refused),
    ("own_generation", answers.own_generation),
    ("cause", rebalances.cause_of_rebalance),
    ("due", rebalances.due),
    ("leave_is_true", answers.leave_is_true),
    ("announced", answers.announces_rebalances),
    ("phase_is_fair", rebalances.phase_is_fair),
    ("two_steps", rebalances.two_steps),
    ("time_is_kept", rebalances.time_is_kept),
    ("share", answers.share),
    ("stored", groups.stored),
)

INVARIANTS = {name: (check.__doc__ or "").strip(".") for name, check in CHECKS} | {
    AT_LAST: "Each request is answered at last"
}
"""Each invariant in words, by its name."""
