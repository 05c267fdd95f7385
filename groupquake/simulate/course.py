"""One course of a run in virtual time: its phases, and its plan as the controller works it.

The faults of the file run in parallel; the steps of one fault one after the other, each when it is
due, the one before is healed, and no other fault holds its brokers or members.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from chaos.clusters.releases import release_of
from chaos.errors import ChaosError
from chaos.plan import Plan, Step
from groupquake.simulate.brokers import SimulatedBrokers
from groupquake.simulate.chance import Chance
from groupquake.simulate.context import (
    NotForeseenError,
    SimulatedContext,
    SimulatedMembers,
    SimulatedTopics,
)
from groupquake.simulate.group import SimulatedGroup
from groupquake.simulate.member import SimulatedMember
from groupquake.simulate.tally import Tally
from groupquake.simulate.timing import (
    BACK_MS,
    COMES_MS,
    ENDS_MS,
    ENDS_WITH_ZOOKEEPER_MS,
    FOUND_MS,
    LATE_MS,
    LOOKS_MS,
    SEEN_MS,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import STABLE
from reference_coordinator.driving.client import ENDED, IN
from reference_coordinator.driving.driver import Agenda
from scenarios import Experiment
from scenarios.faults import Fault
from scenarios.model import Phase
from scenarios.targets import When

Work = Iterator[float]
"""Something that takes time: it yields how many ms it waits, until it is done."""


class Course:
    """One course of events."""

    def __init__(
        self, experiment: Experiment, plan: Plan, profile: Profile, chance: Chance
    ) -> None:
        self.experiment, self.plan, self.chance = experiment, plan, chance
        self.agenda = Agenda()
        counts = {topic.name: topic.partitions for topic in experiment.workload.topics}
        specs = {
            name: list(members)
            for name, members in itertools.groupby(experiment.members(), attrgetter("group"))
        }
        self.groups = {
            group.name: SimulatedGroup(
                group, specs[group.name], counts, profile, self.agenda, chance
            )
            for group in experiment.workload.groups
        }
        self.brokers = SimulatedBrokers(experiment, self.groups, self.agenda, chance)
        self.members = SimulatedMembers(experiment, self.groups)
        view = SimulatedTopics(counts, self.groups, self.brokers)
        self.context = SimulatedContext(experiment, self.members, self.brokers, view, self.groups)
        self.not_foreseen: list[tuple[Fault, str]] = []
        """The faults of which virtual time does not have all, and why."""
        self.is_steady = False
        """Whether the steady state was met in time; where it is not, no fault is injected."""
        self._held: set[str] = set()
        self._running = 0

    def run(self) -> Mapping[str, Tally]:
        """Let all happen; return what each group came to."""
        self._spawn(self._phases())
        self.agenda.run()
        return {name: group.tally for name, group in self.groups.items()}

    def _spawn(self, work: Work) -> None:
        def go_on() -> None:
            wait_ms = next(work, None)
            if wait_ms is not None:
                self.agenda.after(wait_ms, go_on)

        go_on()

    # The phases.

    def _phases(self) -> Work:
        phases = self.experiment.phases
        self._enter("formation")
        self.brokers.start()
        yield FOUND_MS
        for group in self.groups.values():
            *others, last = group.specs
            for name in others:
                group.start(name, self.chance.between(COMES_MS))
            late_ms = self.chance.between(LATE_MS) if others else 0.0
            group.start(last, self.chance.between(COMES_MS) + late_ms)
        yield from self._until(self._is_steady, self.experiment.steady_state.within_ms)
        self.is_steady = self._is_steady()
        if not self.is_steady:  # a run ends here
            self.agenda.end()
            return
        yield self.chance.between(SEEN_MS)
        self._enter("impact")
        began_ms = self.agenda.now_ms
        first_ms = min((step.at_ms for step in self.plan.steps), default=0)
        in_order = sorted(self.plan.steps, key=attrgetter("origin"))
        for _, steps in itertools.groupby(in_order, key=attrgetter("origin")):
            self._running += 1
            self._spawn(self._steps(list(steps), began_ms))
        yield first_ms + phases.impact_ms
        while self._running:
            yield LOOKS_MS
        self._enter("recovery")
        yield phases.recovery_ms
        self._enter("teardown")
        for group in self.groups.values():
            group.close()
        keeper = release_of(self.experiment.cluster.version).zookeeper
        yield self.chance.between(ENDS_WITH_ZOOKEEPER_MS if keeper else ENDS_MS)
        self.agenda.end()

    def _enter(self, phase: Phase) -> None:
        for group in self.groups.values():
            group.look()
            group.phase = phase

    def _is_steady(self) -> bool:
        probes = self.experiment.steady_state.probes
        return probes == () or all(
            group.group.state is STABLE and len(group.group.members) == len(group.specs)
            for group in self.groups.values()
        )

    def _until(self, holds: Any, within_ms: float) -> Work:
        """Wait until something holds, or time is up."""
        ends_ms = self.agenda.now_ms + within_ms
        while self.agenda.now_ms < ends_ms and not holds():
            yield LOOKS_MS

    # The plan.

    def _steps(self, steps: Sequence[Step], began_ms: float) -> Work:
        for step in steps:
            yield max(0.0, began_ms + step.at_ms - self.agenda.now_ms)
            try:
                yield from self._fire(step)
            except (NotForeseenError, ChaosError) as error:
                self.not_foreseen.append((step.what, str(error)))
        self._running -= 1

    def _fire(self, step: Step) -> Work:
        """Hit all targets of a step at the same time, once its condition holds."""
        if step.what.needs is not None:
            return  # named by the forecast
        if (when := step.what.when) is not None:
            yield from self._until(partial(self._meets, when), when.within_ms)
            if not self._meets(when):
                raise NotForeseenError(f"{when} is not met in {when.within_ms} ms")
        while True:
            faults = step.what.aimed(self.context)  # type: ignore[arg-type]
            held = {one for fault in faults for one in fault.held}
            if not self._held & held:
                break
            yield LOOKS_MS
        self._held |= held
        under_way = len(faults)

        def carry_out(fault: Fault) -> Work:
            nonlocal under_way
            try:
                yield from self._carry_out(fault)
            finally:
                self._held.difference_update(fault.held)
                under_way -= 1

        for fault in faults:
            self._spawn(carry_out(fault))
        yield step.what.lasting_ms
        while under_way:
            yield LOOKS_MS

    def _carry_out(self, fault: Fault) -> Work:
        try:
            fault.inject()
            if fault.one_shot:
                return
            if fault.process == "stopped":
                yield self.brokers.stopping_ms("stop")
            yield fault.lasting_ms
            fault.heal()
        except (NotForeseenError, ChaosError) as error:
            self.not_foreseen.append((fault, str(error)))
            return
        if fault.hits == "broker":
            broker = fault.hit.details["broker"]
            yield from self._until(lambda: broker in self.brokers.up, BACK_MS)
            return
        for name in fault.held:
            if process := self.members.of(name).called.get(name):
                yield from self._until(partial(_is_in, process), BACK_MS)

    def _meets(self, when: When) -> bool:
        group = self.groups.get(when.group)
        if group is None:
            raise NotForeseenError(f"{when.group} is a group of a wire script")
        if when.state is not None:
            return str(group.group.state) == when.state
        return len(group.group.members) == when.members


def _is_in(process: SimulatedMember) -> bool:
    """Whether a process has its assignment, or was refused for good."""
    return process.client.phase in (IN, ENDED)
