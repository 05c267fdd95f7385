"""What the faults that hit members have in common: keys, targets, checks, texts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator

from scenarios.durations import PositiveMs, format_ms
from scenarios.faults.declaration import FaultPart, Planned, seconds
from scenarios.fields import Flag, InstanceId, Part
from scenarios.problems import Path, Problem, shown, unknown
from scenarios.targets import LeaderMemberOf, MemberTarget, Names, in_words, selected

if TYPE_CHECKING:
    from scenarios.experiment import Experiment
    from scenarios.members import MemberSpec

TARGETS = (
    "Members: `all`, `static` or `dynamic` of `group`, `{leader-member-of: GROUP}`, or "
    "`{names: [MEMBER, ...]}`. The target is resolved when the fault fires."
)
REJOINED = (
    "After the start it shows a JoinGroup and a SyncGroup of the member without an error, within "
    "two rebalance timeouts and 10 s."
)
SILENT = (
    "While the member is down, `group.log` shows no request of it for two heartbeat intervals, "
    "although its coordinator completes other requests or answers one of ours. "
)

BACK = (
    "Afterwards it shows a Heartbeat of the member without an error, or a JoinGroup and a "
    "SyncGroup, within two rebalance timeouts and 10 s."
)


class Static(Part):
    """A static identity that a member takes on when it restarts."""

    instance_id: InstanceId
    """`{n}` stands for the member's position in its group, from 0."""


def _identity(value: object) -> object:
    if value == "dynamic" or isinstance(value, dict | Static):
        return value
    raise ValueError(
        f'{shown(value)} is not allowed; write dynamic, or {{instance_id: "app-{{n}}"}}'
    )


Identity = Annotated[
    Literal["dynamic"] | Static,
    BeforeValidator(_identity, json_schema_input_type=Literal["dynamic"] | Static),
]


class MemberFault(FaultPart):
    """What the faults that hit members have in common."""

    target: MemberTarget
    """Resolved when the fault fires."""
    group: str | None = None
    """The group that `all`, `static` and `dynamic` select from."""
    allow_empty: Flag = False
    """Whether a target may match no member."""

    @property
    def makes_static(self) -> bool:
        """Whether its targets may be static members afterwards that were dynamic before."""
        return False

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that the targets exist."""
        kinds = {g.name: {entry.kind for entry in g.members} for g in experiment.workload.groups}
        match self.target:
            case LeaderMemberOf(group=name):
                yield from unknown("group", name, kinds, (*path, "target", "leader-member-of"))
            case Names(names=targets):
                known = experiment.member_called
                for j, name in enumerate(targets):
                    yield from unknown("member", name, known, (*path, "target", "names", j))
            case word if self.group is None:
                yield Problem((*path, "group"), f"missing; say whose members '{word}' means")
            case word:
                yield from unknown("group", self.group, kinds, (*path, "group"))
                here = kinds.get(self.group, {word})
                if word != "all" and word not in here and not self.allow_empty:
                    yield Problem(
                        (*path, "target"),
                        f"group '{self.group}' has no {word} members; choose another target, or "
                        "set allow_empty: true",
                    )
        if self.group is not None and not isinstance(self.target, str):
            yield Problem(
                (*path, "group"), "this target already names its group or members; remove group"
            )

    def groups_hit(self, experiment: "Experiment") -> set[str | None]:
        """Return the groups of the members that may be hit."""
        match self.target:
            case LeaderMemberOf(group=led):
                return {led}
            case Names():
                return {member.group for member in self.known_targets(experiment)}
            case _:
                return {self.group}

    def known_targets(self, experiment: "Experiment") -> "tuple[MemberSpec, ...]":
        """Return the members that may be hit, as far as the file tells, in its order."""
        return selected(self.target, self.group, experiment)

    def _planned(self, undo: str, **args: Any) -> Planned:
        return Planned(
            hits=in_words(self.target, self.group),
            undo=undo,
            args=args,
            group=self.group,
            target=self.target,
            allow_empty=self.allow_empty,
        )


class MemberAway(MemberFault):
    """What the faults that take members away for a while have in common."""

    down_for_ms: PositiveMs
    """How long each member stays away."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check the targets, and that the absence is long enough for missed heartbeats to show."""
        yield from super().checks(experiment, path)
        hit = self.groups_hit(experiment)
        for group in experiment.workload.groups:
            if group.name in hit:
                least_ms = 2 * group.heartbeat_interval_ms
                yield from too_short(self.down_for_ms, group.name, least_ms, (*path, "down_for"))

    def _planned_restart(self, becomes: Literal["dynamic"] | Static | None = None) -> Planned:
        """Return the row of the plan of a member that is started again."""
        undo = f"start again after {seconds(self.down_for_ms)}"
        match becomes:
            case None:
                return self._planned(undo, down_for_ms=self.down_for_ms)
            case Static():
                undo = f"{undo} as {becomes.instance_id}"
                identity: object = becomes.model_dump()
            case "dynamic":
                undo = f"{undo} as a dynamic member"
                identity = becomes
        return self._planned(undo, down_for_ms=self.down_for_ms, becomes=identity)


def shared_identity(
    fault: MemberFault,
    becomes: Literal["dynamic"] | Static | None,
    experiment: "Experiment",
    path: Path,
) -> Iterator[Problem]:
    """Yield a problem if several targets would restart under one instance id."""
    number = len(fault.known_targets(experiment))
    if isinstance(becomes, Static) and "{n}" not in becomes.instance_id and number > 1:
        yield Problem(
            (*path, "becomes", "instance_id"),
            f"{number} members cannot share one id; write '{becomes.instance_id}-{{n}}', for "
            "example",
        )


def too_short(lasts_ms: int, group: str, least_ms: int, path: Path) -> Iterator[Problem]:
    """Yield a problem if an absence is too short for missed heartbeats to show."""
    if lasts_ms < least_ms:
        yield Problem(
            path,
            f"{format_ms(lasts_ms)} is below two heartbeat intervals of group '{group}', too short "
            f"to be witnessed; write {format_ms(least_ms)} or more",
        )
