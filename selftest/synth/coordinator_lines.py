"""The lines that a synthesized group's coordinator writes."""

import random
from dataclasses import dataclass
from typing import NamedTuple

from reference_coordinator.classic.effects import (
    AssignmentReceived,
    Effect,
    Persist,
    Transition,
)
from reference_coordinator.classic.state import Group, State
from reference_coordinator.replay.expected_lines import DueLine
from selftest.mutants.wordings import Wording
from selftest.synth.printing import Sent

LINE_US = 45
"""How long the coordinator takes for a line, in µs."""
PROCESSORS = 4
"""The threads of the coordinator."""
OF_LOADS = ("group_loaded", "member_loaded")
"""Lines that are printed while the group is loaded, see `CoordinatorLines.loaded`."""
PRINTED = {
    State.PREPARING_REBALANCE: "preparing",
    State.COMPLETING_REBALANCE: "stabilized",
    State.EMPTY: "empty",
}


class Line(NamedTuple):
    """A line of a group, without time and number."""

    broker: str
    at_ms: float
    text: str


@dataclass(slots=True)
class CoordinatorLines:
    """Prints lines of a group into `lines`; each method returns the time after what it printed."""

    group: str
    partition: int
    wording: Wording
    dice: random.Random
    lines: list[Line]
    broker: str = ""
    begun: DueLine | None = None
    """What the line of the latest rebalance says."""
    processor: int = 0

    def take_turn(self) -> None:
        """Let any thread of the coordinator print what comes now."""
        self.processor = int(self.dice.random() * PROCESSORS)

    def _print(self, at_ms: float, name: str, **values: object) -> float:
        values |= {"group": self.group, "partition": self.partition}
        text = self.wording.line(self.broker, name, values, self.processor)
        self.lines.append(Line(self.broker, at_ms, text))
        return at_ms + LINE_US * (0.4 + self.dice.random()) / 1_000

    def loaded(self, now: float, group: Group) -> None:
        """Print that the group was loaded."""
        now = self._print(now, "group_loaded", members=len(group.members))
        for member in group.members:
            now = self._print(now, "member_loaded", member=member)

    def due(self, now: float, line: DueLine) -> float:
        """Print a line that is due; that a rebalance begins is printed with its transition."""
        if line.line == "preparing":
            self.begun = line
            return now
        if line.line in OF_LOADS:
            return now
        return self._print(now, line.line, **self.wording.about(line))

    def fenced(self, now: float, group: Group, sent: Sent) -> float:
        """Print that a request was fenced."""
        instance = sent.client.instance or ""
        return self._print(
            now, "fenced", member=sent.client.member_id, instance=instance,
            holder=group.static_ids.get(instance),
            operation=sent.api.lower().replace("_", "-"),
        )  # fmt: skip

    def assignment(self, now: float, received: AssignmentReceived) -> float:
        """Print that the leader's assignment came."""
        return self._print(
            now, "assignment", member=received.leader, generation=received.generation,
            members=received.members, static_members=received.static_members,
        )  # fmt: skip

    def transition(self, now: float, moved: Transition) -> float:
        """Print into which state the group goes, if the coordinator says that."""
        if moved.after not in PRINTED:
            return now
        begun = self.begun if moved.reason is not None else None
        reason = self.wording.reason(begun) if begun is not None else ""
        return self._print(now, PRINTED[moved.after], generation=moved.generation,
                           members=moved.members, reason=reason)  # fmt: skip

    def outlook(
        self, now: float, before: Group, group: Group, effects: tuple[Effect, ...]
    ) -> float:
        """Print after a JoinGroup why a join phase goes on, or that none begins."""
        if group.state is State.PREPARING_REBALANCE and group is not before and group.awaiting:
            why = "this is an initial rebalance"
            if group.previous_state is not State.EMPTY:
                why = (
                    f"not all the members have rejoined. Members={len(group.members)},"
                    f" AwaitingJoinResponses={group.awaiting},"
                    f" PendingJoinMembers={len(group.pending_joins)}"
                )
            return self._print(now, "join_incomplete", rest=why)
        if group.state is State.STABLE and any(isinstance(one, Persist) for one in effects):
            return self._print(now, "static_no_rebalance")
        return now
