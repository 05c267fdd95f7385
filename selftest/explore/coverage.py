"""Which pairs of a move and a rule are reached: what a group does, and what decides it.

A move is the group's state before and after a step, and the request or timer of it. A rule decides
it if the step comes out otherwise with another value of this rule alone, of those that
`groupquake.fuzz.coverage` knows. A pair is written `rule=value: move`.
"""

from collections.abc import Iterator
from functools import cache
from typing import cast

from groupquake.fuzz.coverage import flips
from groupquake.fuzz.judge import replayed
from reference_coordinator.classic.effects import Effect
from reference_coordinator.classic.events import Event, TimerFired
from reference_coordinator.classic.noted_rules import NotedRules
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import step
from selftest.mutants.evidence import KEPT, sequences_in

RECORDED = "traces", "defects"
"""Where the sequences of the track record are, among what is kept."""


_flips = cache(lambda profile: [*flips(profile, but=())])


def new_pairs(group: Group, event: Event, profile: Profile, seen: set[str]) -> Iterator[str]:
    """Yield the pairs of a step that were not seen before; they are now."""
    noted = NotedRules(profile)
    done = step(group, event, cast(Profile, noted))
    kind = type(event).__name__.removesuffix("Received")
    cause = f"{event.timer.kind} timer" if isinstance(event, TimerFired) else kind
    for rule, value, other in _flips(profile):
        pair = f"{rule}={value}: {group.state} -> {done[0].state} by {cause}"
        if rule in noted.read and pair not in seen and step(group, event, other) != done:
            seen.add(pair)
            yield pair


def recorded_pairs(profile: Profile) -> set[str]:
    """Return the pairs of the recorded sequences that a profile explains, as replays try them."""
    found = set[str]()

    def observed(group: Group, event: Event, profile: Profile) -> tuple[Group, tuple[Effect, ...]]:
        reached.extend(new_pairs(group, event, profile, seen))
        return step(group, event, profile)

    for sequence in (one for folder in RECORDED for one in sequences_in(KEPT / folder)):
        seen, reached = found.copy(), list[str]()
        if not replayed(sequence, profile, coordinator=observed).violations:
            found.update(reached)
    return found
