"""What must hold after every step of the coordinator, as the protocol and KIP-345 promise it.

In goes one step: the scene before and after, the event and its effects; out come the invariants
that it breaks. That every request is answered at last is checked by `search.Waiting`.
"""

from collections.abc import Callable, Iterator

from selftest.explore.invariants import of_groups, of_members
from selftest.explore.scene import Stepped

__all__ = ["INVARIANTS", "Stepped", "broken"]


def broken(step: Stepped) -> Iterator[str]:
    """Yield the invariants that a step breaks, each with what broke it: `name: detail`."""
    for name, check in CHECKS:
        for detail in check(step):
            yield f"{name}: {detail}"


AT_LAST = "answered_at_last"
CHECKS: tuple[tuple[str, Callable[[Stepped], Iterator[str]]], ...] = (
    ("one_leader", of_groups.one_leader),
    ("leader_knows_all", of_groups.leader_knows_all),
    ("one_mapping", of_groups.one_mapping),
    ("generation_grows", of_groups.generation_grows),
    ("generation_given_once", of_groups.generation_given_once),
    ("answered_once", of_members.answered_once),
    (AT_LAST, of_members.answered_at_unload),
    ("member_ends", of_groups.member_ends),
    ("phase_ends", of_groups.phase_ends),
    ("static_stays", of_members.static_stays),
    ("id_stays", of_members.id_stays),
    ("session_served", of_members.session_served),
    ("known_is_let_in", of_members.known_is_let_in),
    ("member_is_served", of_members.member_is_served),
    ("unknown_is_refused", of_members.unknown_is_refused),
    ("own_generation", of_members.own_generation),
    ("cause", of_groups.cause_of_rebalance),
    ("due", of_groups.due),
    ("leave_is_true", of_members.leave_is_true),
    ("announced", of_members.announces_rebalances),
    ("phase_is_fair", of_groups.phase_is_fair),
    ("two_steps", of_groups.two_steps),
    ("time_is_kept", of_groups.time_is_kept),
    ("share", of_members.share),
    ("stored", of_groups.stored),
)

INVARIANTS = {name: (check.__doc__ or "").strip(".") for name, check in CHECKS} | {
    AT_LAST: "Each request is answered at last"
}
"""Each invariant in words, by its name."""
