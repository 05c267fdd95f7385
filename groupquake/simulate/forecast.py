"""The forecast of an experiment: many courses, and between what bounds they lie.

What Kafka leaves open (when heartbeats are due, who joins first, how long a request takes) is drawn
anew in each course; two more take always the least and always the most.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from chaos.plan import Plan
from groupquake.simulate.chance import Chance
from groupquake.simulate.course import Course
from groupquake.simulate.tally import Tally
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.releases import PROFILE_NAMES, profile_for, profile_named
from reports.judgement.run.forecast import Interval
from scenarios import Experiment, ScenarioError
from scenarios.durations import format_ms
from scenarios.faults import Fault
from scenarios.faults.targeted import MemberFault
from scenarios.model import Expectation, Phase

COURSES = 8
"""How many courses are drawn beside the two extreme ones."""
QUICK_MEMBERS = 500
"""With more members than this `plan` and `validate` foresee nothing: they answer at once."""
MANY_MEMBERS = 2_000
"""With more members than this one course is drawn: they even out."""
Made = TypeVar("Made", bound=Course)
PHASES: tuple[Phase, ...] = get_args(Phase)


@dataclass(frozen=True)
class GroupForecast:
    """What is expected of one group; `open_because` names what is not foreseen of it."""

    tallies: Sequence[Tally]
    open_because: tuple[str, ...]

    def rebalances(self, phase: Phase | None, reason: str | None = None) -> Interval:
        """Return how many rebalances are expected in a phase, for a reason; None is any."""
        if self.open_because and phase != "formation":
            formed = self._over(lambda one: one.count("formation", reason))
            return Interval(formed.least if phase is None else 0, None)
        return self._over(lambda one: one.count(phase, reason))

    @property
    def stopped_ms(self) -> Interval:
        """How long members stop in rebalances, added up, from impact to recovery."""
        return self._cost(lambda one: round(one.stopped_ms))

    @property
    def unowned_s(self) -> Interval:
        """For how many partition-seconds nobody consumes, from impact to recovery."""
        return self._cost(lambda one: round(one.unowned_s, 1))

    @property
    def moved(self) -> Interval:
        """How many partitions get another owner, from impact to recovery."""
        return self._cost(lambda one: one.moved)

    def reasons(self, phase: Phase) -> list[str]:
        """Return the reasons for which it rebalances in a phase, in any course."""
        return sorted(
            {why for one in self.tallies for when, why in one.rebalances if when == phase}
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; an interval as two numbers, the second may be null."""
        return {
            "rebalances": {
                phase: {
                    "total": self.rebalances(phase),
                    **{why: self.rebalances(phase, why) for why in self.reasons(phase)},
                }
                for phase in PHASES
            },
            "stopped_ms": self.stopped_ms,
            "unowned_partition_s": self.unowned_s,
            "moved": self.moved,
            "open_because": list(self.open_because),
        }

    def _cost(self, of: Callable[[Tally], float]) -> Interval:
        return Interval(0, None) if self.open_because else self._over(of)

    def _over(self, of: Callable[[Tally], float]) -> Interval:
        values = [of(one) for one in self.tallies]
        return Interval(min(values), max(values))


@dataclass(frozen=True)
class Forecast:
    """What is expected of an experiment, group by group; `notes` says what is not foreseen."""

    experiment: Experiment
    profile: Profile
    groups: Mapping[str, GroupForecast]
    courses: int
    notes: tuple[str, ...]

    def of(self, expected: Expectation) -> Interval | None:
        """Return what is foreseen of an expectation; None for a group of a wire script."""
        group = self.groups.get(expected.group)
        return group.rebalances(expected.phase, expected.reason) if group else None

    def impossible(self) -> Iterator[str]:
        """Yield a line for each expectation that cannot come out."""
        for one in self.experiment.bounds:
            due = self.of(one)
            if due is not None and not due.meets(wanted(one)):
                are = "is" if due == (1, 1) else "are"
                yield f"expect: {described(one)}, but {due} {are} due{self._why(one)}"

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "experiment": self.experiment.name,
            "courses": self.courses,
            "groups": {name: group.as_dict() for name, group in self.groups.items()},
            "impossible": list(self.impossible()),
            "not_foreseen": list(self.notes),
        }

    def _why(self, one: Expectation) -> str:
        """Return the commonest cause, if it shows in the file."""
        group = next(group for group in self.experiment.workload.groups if group.name == one.group)
        kinds = {entry.kind for entry in group.members}
        away = [
            fault
            for fault in self.experiment.faults
            if fault.hits == "member" and one.group in groups_hit(fault, self.experiment)
        ]
        if not away:
            return ""
        longest = max(away, key=lambda fault: fault.lasting_ms)
        if longest.lasting_ms > group.session_timeout_ms and "static" in kinds:
            hit = longest.known_targets(self.experiment) if isinstance(longest, MemberFault) else ()
            who = "each" if len(hit) > 1 else "the"
            gone, session = format_ms(longest.lasting_ms), format_ms(group.session_timeout_ms)
            return f": {who} member is away {gone}, its session ends after {session}"
        if "dynamic" in kinds:
            return ": a dynamic member leaves as it closes, and is new when it is back"
        return ""


def described(one: Expectation) -> str:
    """Return an expectation as people read it: `0 rebalances (session_expired) of G in impact`."""
    reason = f" ({one.reason})" if one.reason else ""
    phase = f" in {one.phase}" if one.phase else ""
    noun = "rebalance" if wanted(one) == (1, 1) else "rebalances"
    return f"{wanted(one)} {noun}{reason} of {one.group}{phase}"


def wanted(one: Expectation) -> Interval:
    """Return how many rebalances an expectation allows."""
    return Interval(one.rebalances.min, one.rebalances.max)


def groups_hit(fault: Fault, experiment: Experiment) -> set[str]:
    """Return the groups whose members a fault may hit; all groups for one that hits no member."""
    if isinstance(fault, MemberFault):
        return set(filter(None, fault.groups_hit(experiment)))
    if group := getattr(fault, "group", None):
        return {group}
    names = getattr(fault, "members", experiment.member_called)
    return {experiment.member_called[name].group for name in names}


def courses(
    experiment: Experiment, plan: Plan, profile: Profile, of: Callable[..., Made]
) -> Iterator[Made]:
    """Let course after course happen, the two extreme ones first, under the rules of a release."""
    try:
        settings = Settings.from_properties(dict(experiment.cluster.config))
    except (TypeError, ValueError, OverflowError) as error:
        raise ScenarioError(f"cluster.config: {error}; write what Kafka takes") from error
    rules = profile.with_settings(settings)
    drawn = COURSES if len(experiment.members()) <= MANY_MEMBERS else 1
    for number, share in enumerate((0.0, 1.0, *(None for _ in range(drawn)))):
        course = of(experiment, plan, rules, Chance(f"{plan.seed}-{number}", share))
        course.run()
        yield course


def foresee(
    experiment: Experiment, plan: Plan, rules: str | None = None,
    of: Callable[..., Course] = Course,
) -> Forecast:  # fmt: skip
    """Foresee an experiment with a plan; `of` makes courses.

    It goes by the rules of a name, or those that it is judged by. Raises ScenarioError as
    `profile_of`.
    """
    profile = profile_of(experiment, rules)
    notes: dict[str, None] = {}
    open_because: dict[str, list[str]] = {}
    for name in experiment.workload.wire_scripts:
        notes[f"{name}: the group of a wire script"] = None
    tallies: dict[str, list[Tally]] = {}
    for course in courses(experiment, plan, profile, of):
        for name, group in course.groups.items():
            tallies.setdefault(name, []).append(group.tally)
        if not course.is_steady:
            notes["the faults: the steady state may not be met in time, and a run ends then"] = None
        for fault, why in course.not_foreseen:
            notes[f"{fault.fault}: {why}"] = None
            for name in groups_hit(fault, experiment):
                open_because.setdefault(name, []).append(fault.fault)
    groups = {
        name: GroupForecast(each, tuple(dict.fromkeys(open_because.get(name, ()))))
        for name, each in tallies.items()
    }
    return Forecast(experiment, profile, groups, len(next(iter(tallies.values()))), tuple(notes))


def warnings(experiment: Experiment, plan: Plan) -> list[str]:
    """Return a line for what cannot come out as the file has it, as far as that shows quickly.

    Nothing is said of a file that expects its brokers to fail.
    """
    found = [
        f"faults: {fault.fault}: every {format_ms(fault.every_ms)}, but it lasts"
        f" {format_ms(fault.lasting_ms)}: each waits for the one before"
        for fault in experiment.faults
        if fault.every_ms is not None and fault.every_ms < fault.lasting_ms
    ]
    expected = experiment.expected_verdict
    fails = expected is not None and expected.verdict == "fail"
    if experiment.bounds and not fails and is_foreseen(experiment):
        found += foresee(experiment, plan).impossible()
    return found


def is_foreseen(experiment: Experiment) -> bool:
    """Whether a command that does something else can foresee an experiment beforehand, quickly."""
    cluster = experiment.cluster
    return (
        cluster.kind is None
        and len(experiment.members()) <= QUICK_MEMBERS
        and profile_for(cluster.version, experiment.coordinator) is not None
    )


def profile_of(experiment: Experiment, rules: str | None = None) -> Profile:
    """Return the rules of an experiment's release, or those of a name.

    Raises ScenarioError for a name without rules, and for a cluster that exists elsewhere.
    """
    cluster = experiment.cluster
    if cluster.kind is not None:
        raise ScenarioError(
            f"{experiment.name} is for an external cluster, which is not known before it is used;"
            " leave cluster.kind out to foresee it on brokers of groupquake's"
        )
    rules = rules or experiment.never_shipped
    profile = (
        profile_named(rules) if rules else profile_for(cluster.version, experiment.coordinator)
    )
    if profile is None:
        what = f"--profile {rules}" if rules else f"Kafka {cluster.version}"
        raise ScenarioError(f"{what}: no such rules; choose from {', '.join(PROFILE_NAMES)}")
    return profile
