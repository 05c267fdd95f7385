"""A course that keeps what a page draws of it: rebalances, members, owners and faults."""

from collections.abc import Mapping
from math import inf
from typing import Any

import pandas as pd

from groupquake.simulate.course import Course
from groupquake.simulate.group import SimulatedGroup
from groupquake.simulate.member import SimulatedMember
from reference_coordinator.classic.effects import AssignmentReceived, Effect, Response, Transition
from reference_coordinator.classic.state import PREPARING_REBALANCE
from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.driving.client import IN, JOINED, JOINING
from reference_coordinator.driving.simulation import Exchange
from reports.page import faults
from reports.page.costs import COLUMNS
from reports.page.drawing import Span
from reports.page.drawn_groups import DrawnGroup, Membership, periods
from scenarios.faults import Fault
from scenarios.model import Phase

Json = dict[str, Any]


class RecordedGroup(SimulatedGroup):
    """A group that keeps its rebalances, who was in it when, and who owned what."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rebalances: list[ExpectedRebalance] = []
        self.memberships: list[Membership] = []
        self.holdings: list[Json] = []
        """Who owned a partition from when until when: rows of the table `ownership`."""
        self._in: dict[str, int] = {}
        """The place of each process's membership that goes on."""
        self._held: dict[tuple[str, Any], Json] = {}

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
        process = self.called.get(name)
        if process is not None and process.client.phase is IN:
            self._begin(process)

    def own(self, process: SimulatedMember, partitions: Any) -> None:
        """Note who owns what from now on."""
        name, before, now_ms = process.client.name, process.owned, self.agenda.now_ms
        super().own(process, partitions)
        for one in before:
            if one not in process.owned:
                self._held.pop((name, one))["until_ms"] = now_ms
        for one in process.owned:
            if one not in before:
                self._held[name, one] = row = dict.fromkeys(COLUMNS["ownership"])
                row |= {"group": self.of.name, "member": name, "from_ms": now_ms, "until_ms": inf}
                row |= {"partition": f"{one.topic}-{one.partition}"}
                self.holdings.append(row)

    def _begin(self, process: SimulatedMember) -> None:
        self._end(process)
        client = process.client
        self._in[client.name] = len(self.memberships)
        about = (client.name, client.member_id, client.generation)
        self.memberships.append(Membership(*about, self.agenda.now_ms, inf))

    def _end(self, process: SimulatedMember) -> None:
        place = self._in.pop(process.client.name, None)
        if place is not None:
            ended = self.memberships[place]._replace(end_ms=self.agenda.now_ms)
            self.memberships[place] = ended

    def idle_ms(self, since_ms: float) -> float:
        """Return the longest time after another for which a partition lay idle between owners."""
        left: dict[str, float] = {}
        longest_ms = 0.0
        for row in sorted(self.holdings, key=lambda row: float(row["from_ms"])):
            gone_ms = left.get(row["partition"], inf)
            if gone_ms >= since_ms:
                longest_ms = max(longest_ms, row["from_ms"] - gone_ms)
            left[row["partition"]] = row["until_ms"]
        return longest_ms


class RecordedCourse(Course):
    """A course of recorded groups."""

    of_group: type[SimulatedGroup] = RecordedGroup
    groups: Mapping[str, RecordedGroup]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.phases: list[tuple[str, float]] = []
        self._noted: dict[Fault, Json] = {}

    def _enter(self, phase: Phase) -> None:
        super()._enter(phase)
        self.phases.append((phase, self.agenda.now_ms))

    def noted(self, fault: Fault, event: str) -> None:
        """Keep when a fault was injected, and when it was healed."""
        hit = fault.hit
        about = {"name": fault.fault, "target": hit.target, "group": hit.group, "verified": True}
        about |= {"witness": "in virtual time", "healed_at_ms": None}
        self._noted.setdefault(fault, about)[f"{event}_at_ms"] = self.agenda.now_ms

    @property
    def faults(self) -> list[Json]:
        """The faults that were injected, in the form of the verdict."""
        return [about for fault, about in self._noted.items() if fault not in self.not_foreseen]

    @property
    def span(self) -> Span:
        """The time of the course, which begins at no time of day."""
        return Span(self.phases[0][1], self.agenda.now_ms, self.phases, is_virtual=True)

    def drawn(self, name: str, title: str) -> DrawnGroup:
        """Return what figures show of a group."""
        group, end_ms = self.groups[name], self.agenda.now_ms
        rows = [
            {f"expected_{key}": None if value == -1 else value for key, value in vars(one).items()}
            | {"outcome": "in virtual time"}
            for one in group.rebalances
        ]
        ownership = pd.DataFrame(group.holdings, columns=COLUMNS["ownership"])
        return DrawnGroup(
            group=name,
            title=title,
            planned=list(group.specs),
            memberships=[one._replace(end_ms=min(one.end_ms, end_ms)) for one in group.memberships],
            timelines={"expected": periods(rows, "expected", end_ms)},
            faults=faults.concerning(name, self.faults),
            clients={one.member_id: one.client for one in group.memberships},
            total=sum(group.counts.get(topic, 0) for topic in group.of.topics),
            ownership=ownership.assign(until_ms=ownership["until_ms"].clip(upper=end_ms)),
        )
