"""A driver whose coordinator writes lines about its group, as brokers do."""

from kafka_protocol.coordinator_lines import OPERATIONS
from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import (
    Answer,
    AssignmentReceived,
    Effect,
    LeaveResponse,
    Response,
    Transition,
)
from reference_coordinator.classic.events import Event, TimerFired
from reference_coordinator.classic.state import Group, State
from reference_coordinator.driving.driver import Driver
from reference_coordinator.driving.wording import Wording
from reference_coordinator.protocol import Observed
from reference_coordinator.replay.expected_lines import DueLine, expected_lines

OF_STATES = {
    State.PREPARING_REBALANCE: "preparing",
    State.COMPLETING_REBALANCE: "stabilized",
    State.EMPTY: "empty",
}


class LoggedDriver(Driver):
    """A driver with a log; each line may take time, by which `now_ms` goes on."""

    wording: Wording
    broker: str
    partition: int
    thread = 0
    """The coordinator's thread that acts."""
    begun: DueLine | None = None
    """What the line of the rebalance says that the last step began, if it began one."""
    own = ""
    """The request that the last step is about, if it is one."""

    def asked(self, request: str) -> Observed:
        """Return a request that is not answered yet."""
        raise NotImplementedError

    def write_line(self, text: str) -> None:
        """Take a line, without what stands before its thread."""
        raise NotImplementedError

    def decided(self, event: Event, before: Group, effects: tuple[Effect, ...]) -> None:
        """Print the lines that a step is due to."""
        self.begun, self.own = None, getattr(event, "request", "")
        if self.group is before and not isinstance(event, TimerFired):
            return
        for line in expected_lines(before, self.group, event, effects):
            if line.line == "preparing":  # printed with its transition
                self.begun = line
            elif line.line in self.wording.printed_lines:
                self.print_line(line.line, **self.wording.about(line))

    def absorb(self, effect: Effect) -> None:
        """Print the lines of an effect."""
        match effect:
            case Answer() if effect.request == self.own:  # one that waited is fenced without a line
                self._print_fenced(self.asked(effect.request), effect.response)
            case AssignmentReceived():
                self.print_line(
                    "assignment", member=effect.leader, generation=effect.generation,
                    members=effect.members, static_members=effect.static_members,
                )  # fmt: skip
            case Transition() if effect.after in OF_STATES:
                begun = self.begun if effect.reason is not None else None
                self.print_line(
                    OF_STATES[effect.after], generation=effect.generation, members=effect.members,
                    reason="" if begun is None else self.wording.reason(begun),
                )  # fmt: skip
        super().absorb(effect)

    def _print_fenced(self, seen: Observed, response: Response) -> None:
        """Print whom an answer fences."""
        if isinstance(response, LeaveResponse):
            whom = [one[:2] for one in response.members if one[2] == Error.FENCED_INSTANCE_ID]
        elif response.error == Error.FENCED_INSTANCE_ID:
            whom = [(seen.request["memberId"], seen.request["groupInstanceId"])]
        else:
            return
        for member, instance in whom:
            self.print_line(
                "fenced", member=member, instance=instance or "",
                holder=self.group.static_ids.get(instance or "", ""),
                operation=OPERATIONS[seen.api][0],
            )  # fmt: skip

    def print_line(self, what: str, **values: object) -> None:
        """Print a line of a template."""
        values |= {"group": self.group.group_id, "partition": self.partition}
        self.write_line(self.wording.line(self.broker, what, values, self.thread))
