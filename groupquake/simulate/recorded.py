"""A course that keeps what a page draws of it: rebalances, members and faults."""

from collections.abc import Mapping
from math import inf
from typing import Any

from groupquake.simulate.course import Course
from groupquake.simulate.group import SimulatedGroup
from groupquake.simulate.member import SimulatedMember
from reference_coordinator.classic.effects import AssignmentReceived, Effect, Response, Transition
from reference_coordinator.classic.state import PREPARING_REBALANCE
from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.driving.client import IN, JOINED, JOINING
from reference_coordinator.driving.simulation import Exchange
from reports.page import faults
from reports.page.drawn_groups import DrawnGroup, Membership, periods
from reports.page.wording import counted
from scenarios.faults import Fault
from scenarios.model import Phase

Json = dict[str, Any]


class RecordedGroup(SimulatedGroup):
    """A group that keeps its rebalances, and who was in it when."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rebalances: list[ExpectedRebalance] = []
        self.memberships: list[Membership] = []
        self._in: dict[str, Membership] = {}

    def absorb(self, effect: Effect) -> None:
        """Write a rebalance into the timeline."""
        now_ms = self.now_ms
        if isinstance(effect, Transition) and effect.after is PREPARING_REBALANCE:
            begun = (effect.generation, now_ms, now_ms, now_ms, str(effect.reason))
            self.rebalances.append(ExpectedRebalance(1, *begun, effect.member_id))
        elif self.rebalances and isinstance(effect, Transition):
            self.rebalances[-1] = self.rebalances[-1].after(effect, now_ms)
        elif self.rebalances and isinstance(effect, AssignmentReceived):
            self.rebalances[-1] = self.rebalances[-1].assigned(effect, now_ms)
        super().absorb(effect)

    def hear(self, process: SimulatedMember, exchange: Exchange, response: Response) -> None:
        """Begin a membership with the response to a JoinGroup."""
        was_joining = process.client.phase is JOINING
        super().hear(process, exchange, response)
        if was_joining and process.client.phase is JOINED:
            self._begin(process)

    def silence(self, process: SimulatedMember) -> None:
        """End a membership."""
        self._end(process)
        super().silence(process)

    def resume(self, name: str) -> None:
        """Let a membership go on."""
        super().resume(name)
        if (process := self.called.get(name)) and process.client.phase is IN:
            self._begin(process)

    def _begin(self, process: SimulatedMember) -> None:
        self._end(process)
        of, now_ms = process.client, self.agenda.now_ms
        self._in[of.name] = Membership(of.name, of.member_id, of.generation, now_ms, inf)

    def _end(self, process: SimulatedMember) -> None:
        if one := self._in.pop(process.client.name, None):
            self.memberships.append(one._replace(end_ms=self.agenda.now_ms))


class RecordedCourse(Course):
    """A course of recorded groups."""

    of_group: type[SimulatedGroup] = RecordedGroup
    groups: Mapping[str, RecordedGroup]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.phases: list[tuple[str, float]] = []
        self._noted: list[tuple[Fault, Json]] = []

    def _enter(self, phase: Phase) -> None:
        super()._enter(phase)
        self.phases.append((phase, self.agenda.now_ms))

    def noted(self, fault: Fault, event: str) -> None:
        """Keep when a fault was injected, and when it was healed."""
        if event == "injected":
            about: Json = {
                "name": fault.fault, "target": fault.hit.target, "group": fault.hit.group,
                "verified": True, "witness": "in virtual time", "healed_at_ms": None,
            }  # fmt: skip
            self._noted.append((fault, about))
        [about] = [about for one, about in self._noted if one is fault]
        about[f"{event}_at_ms"] = self.agenda.now_ms

    @property
    def faults(self) -> list[Json]:
        """The faults that were injected, in the form of the verdict."""
        vague = [fault for fault, _ in self.not_foreseen]
        return [about for fault, about in self._noted if fault not in vague]

    def drawn(self, name: str) -> DrawnGroup:
        """Return what figures show of a group."""
        group = self.groups[name]
        rows = [
            {f"expected_{key}": None if value == -1 else value for key, value in vars(one).items()}
            | {"outcome": "in virtual time"}
            for one in group.rebalances
        ]
        return DrawnGroup(
            group=name,
            title=counted(len(group.specs), "member"),
            planned=list(group.specs),
            memberships=group.memberships,
            timelines={"expected": periods(rows, "expected", self.agenda.now_ms)},
            faults=faults.concerning(name, self.faults),
            clients={one.member_id: one.client for one in group.memberships},
        )
