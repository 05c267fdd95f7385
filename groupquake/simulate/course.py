"""One course of a run in virtual time: its phases, and its plan as the controller works it.

The faults of the file run in parallel; the steps of one fault one after the other, each when it is
due, the one before is healed, and no other fault holds its brokers or members.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter

from chaos.clusters.releases import release_of
from chaos.errors import ChaosError
from chaos.plan import Plan, Step
from groupquake.simulate import timing
from groupquake.simulate.brokers import SimulatedBrokers
from groupquake.simulate.chance import Chance
from groupquake.simulate.context import NotForeseenError, SimulatedContext, missing
from groupquake.simulate.group import SimulatedGroup
from groupquake.simulate.tally import Tally
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import STABLE
from reference_coordinator.driving.client import ENDED, IN
from reference_coordinator.driving.driver import Agenda
from reports.judgement.collector import collector_paused
from scenarios import Experiment
from scenarios.faults import Fault
from scenarios.model import Phase
from scenarios.targets import When

Work = Iterator[float]
"""Something that takes time: it yields how many ms it waits, until it is done."""


class Course:
    """One course of events."""

    of_group: type[SimulatedGroup] = SimulatedGroup
    """What its groups are."""
    groups: Mapping[str, SimulatedGroup]

    def __init__(
        self, experiment: Experiment, plan: Plan, profile: Profile, chance: Chance
    ) -> None:
        self.experiment, self.plan, self.chance = experiment, plan, chance
        self.agenda = Agenda()
        counts = {topic.name: topic.partitions for topic in experiment.workload.topics}
        members = experiment.members_by_group
        self.groups = {
            of.name: self.of_group(of, members[of.name], counts, profile, self.agenda, chance)
            for of in experiment.workload.groups
        }
        self.brokers = SimulatedBrokers(experiment, self.groups, self.agenda, chance)
        self.context = SimulatedContext(experiment, self.groups, self.brokers, counts)
        self.not_foreseen: list[tuple[Fault, str]] = []
        """The faults of which virtual time does not have all, and why."""
        self.is_steady = False
        """Whether the steady state was met in time; where it is not, no fault is injected."""
        self._held: set[str] = set()
        self._running = 0

    def run(self) -> Mapping[str, Tally]:
        """Let all happen; return what each group came to."""
        self._spawn(self._phases())
        with collector_paused():
            self.agenda.run()
        return {name: group.tally for name, group in self.groups.items()}

    def _spawn(self, work: Work) -> None:
        def go_on() -> None:
            wait_ms = next(work, None)
            if wait_ms is not None:
                self.agenda.after(wait_ms, go_on)

        go_on()

    def _until(self, holds: Callable[[], bool], within_ms: float = math.inf) -> Work:
        """Wait until something holds, or time is up."""
        ends_ms = self.agenda.now_ms + within_ms
        while self.agenda.now_ms < ends_ms and not holds():
            yield timing.LOOKS_MS

    # The phases.

    def _phases(self) -> Work:
        phases = self.experiment.phases
        self._enter("formation")
        self.brokers.start()
        yield timing.FOUND_MS
        for group in self.groups.values():
            *others, last = group.specs
            for name in others:
                group.start(name)
            group.start(last, late_ms=self.chance.between(timing.LATE_MS) if others else 0.0)
        yield from self._until(self._meets_steady_state, self.experiment.steady_state.within_ms)
        self.is_steady = self._meets_steady_state()
        if not self.is_steady:  # a run ends here
            self.agenda.end()
            return
        yield self.chance.between(timing.SEEN_MS)
        self._enter("impact")
        first_ms = min((step.at_ms for step in self.plan.steps), default=0)
        in_order = sorted(self.plan.steps, key=attrgetter("origin"))
        for _, steps in itertools.groupby(in_order, key=attrgetter("origin")):
            self._running += 1
            self._spawn(self._steps(list(steps), self.agenda.now_ms))
        yield first_ms + phases.impact_ms
        yield from self._until(lambda: not self._running)
        self._enter("recovery")
        yield phases.recovery_ms
        self._enter("teardown")
        for group in self.groups.values():
            group.close()
        yield timing.CLOSES_MS[1]
        keeper = release_of(self.experiment.cluster.version).zookeeper
        yield self.chance.between(timing.ENDS_WITH_ZOOKEEPER_MS if keeper else timing.ENDS_MS)
        self.agenda.end()

    def _enter(self, phase: Phase) -> None:
        for group in self.groups.values():
            group.look()
            group.phase = phase

    def _meets_steady_state(self) -> bool:
        probes = self.experiment.steady_state.probes
        return probes == () or all(
            group.group.state is STABLE and len(group.group.members) == len(group.specs)
            for group in self.groups.values()
        )

    # The plan.

    def _steps(self, steps: Sequence[Step], began_ms: float) -> Work:
        for step in steps:
            yield max(0.0, began_ms + step.at_ms - self.agenda.now_ms)
            try:
                yield from self._fire(step.what)
            except (NotForeseenError, ChaosError) as error:
                self.not_foreseen.append((step.what, str(error)))
        self._running -= 1

    def _fire(self, what: Fault) -> Work:
        """Hit all targets of a step at the same time, once its condition holds."""
        if why := missing(what):
            raise NotForeseenError(why)
        if what.when is not None:
            yield from self._until(partial(self._meets, what.when), what.when.within_ms)
            if not self._meets(what.when):
                raise NotForeseenError(f"{what.when} is not met in {what.when.within_ms} ms")
        while True:
            faults = what.aimed(self.context)  # type: ignore[arg-type]
            held = {one for fault in faults for one in fault.held}
            if not self._held & held:
                break
            yield timing.LOOKS_MS
        self._held |= held
        for fault in faults:
            self._spawn(self._carry_out(fault))
        yield what.lasting_ms
        yield from self._until(lambda: not self._held & held)

    def _carry_out(self, fault: Fault) -> Work:
        held = fault.held
        try:
            self.noted(fault, "injected")
            fault.inject()
            if not fault.one_shot:
                if fault.process == "stopped":
                    yield self.chance.between(timing.STOPS_MS)
                yield fault.lasting_ms
                fault.heal()
                self.noted(fault, "healed")
                is_back = partial(self._are_back, held)
                if fault.hits == "broker":
                    is_back = partial(self.brokers.is_up, fault.hit.details["broker"])
                yield from self._until(is_back, timing.BACK_MS)
        except (NotForeseenError, ChaosError) as error:
            self.not_foreseen.append((fault, str(error)))
        self._held.difference_update(held)

    def noted(self, fault: Fault, event: str) -> None:
        """See that a fault is `injected` now, or was `healed`."""

    def _are_back(self, members: Sequence[str]) -> bool:
        """Whether each has its share, or was refused for good."""
        called = (self.context.group_of(name).called.get(name) for name in members)
        return all(one is None or one.client.phase in (IN, ENDED) for one in called)

    def _meets(self, when: When) -> bool:
        group = self.groups.get(when.group)
        if group is None:
            raise NotForeseenError(f"{when.group} is a group of a wire script")
        if when.state is not None:
            return str(group.group.state) == when.state
        return len(group.group.members) == when.members
