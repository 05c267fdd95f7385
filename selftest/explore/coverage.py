"""Which pairs of a move and a rule are reached: what a group does, and what decides it.

A move is the group's state before and after a step, and the request or timer of it. A rule decides
it if the step comes out otherwise with another value of this rule alone, of those that
`groupquake.fuzz.coverage` knows. A pair is written `rule=value: move`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from groupquake.fuzz.coverage import flips
from groupquake.fuzz.judge import replayed
from reference_coordinator.classic.effects import Effect
from reference_coordinator.classic.events import Event, TimerFired
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import step
from selftest.mutants.evidence import KEPT, sequences_in

RECORDED = "traces", "defects"
"""Where the sequences of the track record are, among what is kept."""
_read: set[str] = set()


class _Reading(Profile):
    """A profile that notes which of its rules are read."""

    def __getattribute__(self, name: str) -> Any:
        _read.add(name)
        return super().__getattribute__(name)


@cache
def _variants(profile: Profile) -> tuple[Profile, Mapping[str, tuple[tuple[str, Profile], ...]]]:
    """Return the profile so that it notes what is read, and by rule the profiles without it."""
    others: dict[str, tuple[tuple[str, Profile], ...]] = {}
    for rule, value, other in flips(profile, but=()):
        others[rule] = (*others.get(rule, ()), (f"{rule}={value}", other))
    same = {field.name: getattr(profile, field.name) for field in fields(Profile)}
    return _Reading(**same), others


def new_pairs(group: Group, event: Event, profile: Profile, seen: set[str]) -> Iterator[str]:
    """Yield the pairs of a step that were not seen before; they are now."""
    reading, others = _variants(profile)
    _read.clear()
    done = step(group, event, reading)
    kind = type(event).__name__.removesuffix("Received")
    cause = f"{event.timer.kind} timer" if isinstance(event, TimerFired) else kind
    move = f"{group.state} -> {done[0].state} by {cause}"
    for rule in sorted(_read & others.keys()):
        for name, other in others[rule]:
            pair = f"{name}: {move}"
            if pair not in seen and step(group, event, other) != done:
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
