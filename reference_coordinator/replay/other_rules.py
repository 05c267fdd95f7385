"""A second replay, by rules that differ in a few: it redoes only what reads one of these.

The first replay leaves a `Trail`: the stretches in which it read a rule that differs, and the
hypotheses before them and before the stretches that follow. The second replay starts at the first
of these stretches, and ends where its hypothesis is one of the first's; then it goes on at the next
of them. What lies between has the same result by both rules, and is taken over.

Some epochs are replayed as a whole: those that read such a rule where no stretch is explained, or
in a reaction that is remembered; those that read one and have no lines, where backtracking may
explain again what was explained; those with a violation, or with skipped evidence before them; and
those that came in piece by piece.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import NamedTuple

from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.result import Mark, Output, Stored
from reference_coordinator.replay.stretches import Stretches

FOLLOWED = 48
"""How many stretches after one that read such a rule the first replay's hypotheses are kept."""
MOST_KEPT = 200_000
"""How many timers all kept hypotheses may have together: some 20 megabytes."""


class Place(NamedTuple):
    """Where a replay has come to: before a stretch, with its hypothesis; what came out so far."""

    stretch: int
    hypothesis: Hypothesis
    mark: Mark
    steps: int
    kept: int
    """How many records were stored."""


@dataclass(slots=True)
class Trail:
    """What the replay of an epoch leaves; see the module.

    `places` are before stretches, by the numbers of these; `starts` numbers those of them in which
    rules that differ were read.
    """

    parts: Stretches
    conditions: Conditions
    outcome: Output
    stored: list[tuple[int, Stored]]
    """The records of all epochs; see `StoredRecords`."""
    begin: Place
    end: Place | None = None
    """None where nothing can be taken over."""
    starts: list[int] = field(default_factory=list)
    places: dict[int, Place] = field(default_factory=dict)
    reads: int = 0
    timers: int = 0
    followed: int = 0

    def explained(self, before: Place, reads: int) -> None:
        """Note that a stretch was explained, and how often rules that differ were read for that."""
        if reads:
            self.reads += reads
            self.starts.append(before.stretch)
            self.followed = FOLLOWED
        if self.followed and self.timers <= MOST_KEPT:
            self.followed -= 1
            self.places[before.stretch] = before
            self.timers += len(before.hypothesis.timers.running)

    def ended(self, end: Place, reads: int) -> None:
        """Note the end of the epoch, and how often rules that differ were read for all of it."""
        noted = reads == self.reads and not end.hypothesis.reactions.reads
        can_go_on = bool(self.conditions.hints.by_key) and self.timers <= MOST_KEPT
        if noted and (can_go_on or not self.starts):
            self.end = end

    def begins_with(self, record: GroupRecord | None) -> bool:
        """Tell whether the epoch began with a record, to the order of its members."""
        first = self.conditions.stored_record
        return first == record and _ids(first) == _ids(record)

    def give(
        self, outcome: Output, stored: list[tuple[int, Stored]], since: Place, until: Place
    ) -> None:
        """Add what came out of this replay, from one place to the next, to that of another one."""
        outcome.add_between(self.outcome, since.mark, until.mark)
        outcome.steps += until.steps - since.steps
        stored += self.stored[since.kept : until.kept]

    def next_start(self, index: int) -> Place | None:
        """Return the next stretch from one on that has to be redone, if there is one."""
        following = bisect_left(self.starts, index)
        return self.places[self.starts[following]] if following < len(self.starts) else None

    def meets(self, index: int, hypothesis: Hypothesis) -> Place | None:
        """Return where a second replay has come to the hypothesis of the first, if it has."""
        place = self.places.get(index)
        return place if place and is_same(place.hypothesis, hypothesis) else None


def is_same(one: Hypothesis, other: Hypothesis) -> bool:
    """Tell whether two hypotheses have the same future by the same rules, to the last row."""
    return (
        one.clock == other.clock
        and one.timers.running == other.timers.running
        and one.timers.overtaken == other.timers.overtaken
        and one.output.row == other.output.row
        and [*one.writes.items()] == [*other.writes.items()]
        and [*one.pending_requests.items()] == [*other.pending_requests.items()]
        and one.unanswered == other.unanswered
        and one.unnamed == other.unnamed
        and (one.group is other.group or _is_same_group(one.group, other.group))
    )


def _is_same_group(one: Group, other: Group) -> bool:
    """Compare groups in all that `==` leaves out, too: times, and the order of members."""
    return (
        one == other
        and (one.created_ms, one.removed_ms) == (other.created_ms, other.removed_ms)
        and [*one.members] == [*other.members]
        and [*one.writes] == [*other.writes]
        and (one.stored is other.stored or _ids(one.stored) == _ids(other.stored))
        and (
            one.removed is None
            or other.removed is None
            or _is_same_group(one.removed, other.removed)
        )
    )


def _ids(record: GroupRecord | None) -> list[str]:
    return [] if record is None else [member.member_id for member in record.members]
