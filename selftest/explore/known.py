"""Which rule of a release stands behind what breaks under it.

A rule does if the same course of events, under a profile with that one rule as it was mended or as
KIP-345 promises it, no longer breaks the invariant.
"""

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import KIP_345, NEWEST, PROMISES
from selftest.explore.actions import actions, after
from selftest.explore.scene import Action, Scene
from selftest.explore.scopes import Scope
from selftest.explore.search import Course, Waiting, breaks_in

CRASH, FOUND = "docs/findings.md#crash-before-sync", "docs/fuzzing.md#exploring"
KNOWN = {
    "generation_given_once: a member knows another generation of the same number": CRASH,
    "id_stays: a live process's id is replaced by a failover": CRASH,
    "answered_at_last: SyncGroup of a removed member waits for ever": FOUND,
    "id_stays: a live process's id is replaced by a write that failed": FOUND,
    "member_is_served: fenced, and no other process of its instance has joined": FOUND,
    "stored: the log has another member id of an instance": FOUND,
}
"""What breaks though no rule is behind it, and where it is described."""


def explanation(broken: str, course: Course, scope: Scope) -> str:
    """Return the rule behind what breaks, or the page that describes it; "" where nothing does."""
    invariant = broken.partition(":")[0]
    for rule, value in other_rules(scope.empty.profile):
        mended = scope.empty.fork()
        mended.profile = replace(mended.profile, **{rule: value})  # type: ignore[arg-type]
        if invariant not in breaks_of(mended, (*scope.prelude, *course)):
            return rule
    return KNOWN.get(broken, "")


def other_rules(profile: Profile) -> Iterator[tuple[str, object]]:
    """Yield the rules that a profile has otherwise than KIP-345 or the newest release has them.

    The promises come first. Each comes with the other value.
    """
    names = [field.name for field in fields(Profile) if field.name not in ("name", "settings")]
    for name in sorted(names, key=lambda name: name not in PROMISES):
        for other in (KIP_345, NEWEST):
            if getattr(profile, name) != getattr(other, name):
                yield name, getattr(other, name)
                break


def breaks_of(scene: Scene, course: Iterable[Action]) -> set[str]:
    """Return the invariants that a course of actions breaks; what is not possible is left out."""
    found, waiting = set[str](), Waiting()
    for action in course:
        if (action.kind, action.who) in {(each.kind, each.who) for each in actions(scene)}:
            scene = after(scene, action)
            what = [*breaks_in(scene), waiting.unanswered(scene)]
            found |= {each.partition(":")[0] for each in what}
    return found - {""}
