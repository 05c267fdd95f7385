"""What faults of one member, and of one broker, have in common: keys, targets, checks, undoing."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from scenarios.durations import PositiveMs, format_ms, now_ms
from scenarios.faults.base import Fault, Finding, Hit
from scenarios.fields import Flag, InstanceId, Part
from scenarios.model import Group
from scenarios.problems import Path, Problem, shown, unknown
from scenarios.setup import SAME, Identity, MemberSpec, Setup
from scenarios.targets import (
    Brokers,
    BrokerTarget,
    CoordinatorOf,
    LeaderMemberOf,
    MemberTarget,
    Names,
    PartitionLeader,
    selected,
)

if TYPE_CHECKING:
    from chaos.broker_probe import BrokerProbe
    from chaos.fault_context import FaultContext
    from chaos.member_evidence import MemberEvidence


class OneMember(Fault):
    """A fault of one member at a time: what is said here closes it and starts it again."""

    hits = "member"
    undo_name = "start"
    undo_words = "start again after {}"

    _evidence: "MemberEvidence"
    _began_ms: int = 0
    _healing_ms: int = 0

    def hit_of(self, member: MemberSpec, identity: Identity = SAME) -> Hit:
        """Return a member as a target, and the identity that it starts again with."""
        undo = {"do": self.undo_name, "member": member.name, **identity}
        return Hit(member.name, member.group, dict(identity), undo)

    def prepare(self) -> None:
        """Note what the brokers' logs tell of the member."""
        self._evidence = self._context.evidence(self._hit.target)

    @property
    def _identity(self) -> Identity:
        """What it starts again with: nothing if it keeps its identity."""
        return {key: one for key, one in self._hit.details.items() if key == "instance_id"}

    def inject(self) -> None:
        """Close the member; it is closed when this returns."""
        self._context.members.order("stop", self._hit.target)
        self._began_ms = now_ms()

    def verify(self) -> Finding:
        """Return whether the brokers received no request of the member since it was hit."""
        return self._evidence.silence(self._began_ms)

    def heal(self) -> str:
        """Start the member; it has not joined yet when this returns."""
        self._healing_ms = now_ms()
        self._context.members.order("start", self._hit.target, self._identity)
        return "started over the control channel"

    def verify_healed(self) -> Finding:
        """Wait until the brokers let the member join and gave it its assignment."""
        return self._evidence.rejoined(self._healing_ms, self._context.stop, self._identity)


class MemberFault(OneMember):
    """What the faults that hit members have in common."""

    target: MemberTarget
    """Resolved when the fault fires."""
    group: str | None = None
    """The group that `all`, `static` and `dynamic` select from."""
    allow_empty: Flag = False
    """Whether a target may match no member."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
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

    def groups_hit(self, experiment: Setup) -> set[str | None]:
        """Return the groups of the members that may be hit."""
        match self.target:
            case LeaderMemberOf(group=led):
                return {led}
            case Names():
                return {member.group for member in self.known_targets(experiment)}
            case _:
                return {self.group}

    def absence_checks(
        self, experiment: Setup, lasts_ms: int, heartbeats: int, path: Path
    ) -> Iterator[Problem]:
        """Yield the groups that may be hit for which an absence is too short to be witnessed."""
        hit = self.groups_hit(experiment)
        for group in experiment.workload.groups:
            if group.name in hit:
                yield from too_short(lasts_ms, group, heartbeats, path)

    def known_targets(self, experiment: Setup) -> tuple[MemberSpec, ...]:
        """Return the members that may be hit, as far as the file tells, in its order."""
        return selected(self.target, self.group, experiment)

    def _targets(self, context: "FaultContext") -> tuple[MemberSpec, ...]:
        """Return the members that it hits now."""
        return context.targets_of(self.target, self.group, allow_empty=self.allow_empty)

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return the members that it hits now."""
        return map(self.hit_of, self._targets(context))


class MemberAway(MemberFault):
    """What the faults that take members away for a while have in common."""

    down_for_ms: PositiveMs
    """How long each member stays away."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, and that the absence is long enough for missed heartbeats to show."""
        yield from super().checks(experiment, path)
        yield from self.absence_checks(experiment, self.down_for_ms, 2, (*path, "down_for"))


class Frozen(OneMember):
    """A fault after which a member goes on as it is."""

    undo_name = "resume-member"

    def heal(self) -> str:
        """Let the member go on; its next request is on its way when this returns."""
        self._healing_ms = now_ms()
        self._context.members.order("resume", self._hit.target)
        return "resumed over the control channel"

    def verify_healed(self) -> Finding:
        """Wait until the brokers took a heartbeat of the member, or let it join again."""
        return self._evidence.back(self._healing_ms, self._context.stop)


class GivesUp(Frozen, MemberFault):
    """A fault on whose account a client gives its membership up by itself, and stays up."""

    since: ClassVar[str]
    """What it had done last, in words."""

    def verify(self) -> Finding:
        """Return whether it left, as dynamic members do, and whether it is silent (KIP-345)."""
        silence = self._evidence.silence(now_ms() - self._evidence.least_silence_ms)
        left = self._context.witness.latest(self._hit.target, self._began_ms, "LEAVE_GROUP")
        if left is None:
            return silence
        after_ms = round(left.arrived_ms) - self._began_ms
        left_by = f"LEAVE_GROUP of {self._hit.target} {after_ms} ms after {self.since}"
        return Finding(silence.holds, f"{left_by} ({left.place}), {silence.evidence}")


def too_short(lasts_ms: int, group: Group, heartbeats: int, path: Path) -> Iterator[Problem]:
    """Yield a problem if an absence is shorter than so many heartbeats, and so would not show."""
    least_ms = heartbeats * group.heartbeat_interval_ms
    if lasts_ms < least_ms:
        yield Problem(
            path,
            f"{format_ms(lasts_ms)} is below {heartbeats} heartbeat intervals of group "
            f"'{group.name}', too short to be witnessed; write {format_ms(least_ms)} or more",
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


Becomes = Annotated[
    Literal["dynamic"] | Static,
    BeforeValidator(_identity, json_schema_input_type=Literal["dynamic"] | Static),
]


def shared_identity(
    fault: MemberFault, becomes: Becomes | None, experiment: Setup, path: Path
) -> Iterator[Problem]:
    """Yield a problem if several targets would restart under one instance id."""
    number = len(fault.known_targets(experiment))
    if isinstance(becomes, Static) and "{n}" not in becomes.instance_id and number > 1:
        yield Problem(
            (*path, "becomes", "instance_id"),
            f"{number} members cannot share one id; write '{becomes.instance_id}-{{n}}', for "
            "example",
        )


class BrokerFault(Fault):
    """What the faults that hit brokers have in common."""

    hits = "broker"

    target: BrokerTarget
    """Resolved when the fault fires."""

    _broker: int = 0
    _probe: "BrokerProbe"

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that the targets exist."""
        yield from broker_checks(self.target, experiment, (*path, "target"))

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return the brokers that it hits now, and the group that they are chosen for."""
        group = self.target.group if isinstance(self.target, CoordinatorOf) else None
        for broker in context.brokers_at(self.target):
            yield Hit(f"broker-{broker}", group, {"broker": broker})

    def prepare(self) -> None:
        """Note what is seen of the broker from outside, and what undoes the fault."""
        self._broker = self._hit.details["broker"]
        self._probe = self._context.probe(self._broker)
        self._hit.undo = self._undo()

    def _undo(self) -> Mapping[str, Any]:
        """Return what undoes it from the journal alone."""
        return {"do": self.undo_name, "broker": self._broker}

    def verify_healed(self) -> Finding:
        """Wait until the broker is in sync again."""
        return self._probe.await_back(self._context.stop)


class BrokerAway(BrokerFault):
    """What the faults that take brokers away for a while have in common."""

    down_for_ms: PositiveMs
    """How long each broker stays away."""


def broker_checks(target: BrokerTarget, experiment: Setup, path: Path) -> Iterator[Problem]:
    """Yield a problem if the target at a path names what does not exist."""
    match target:
        case CoordinatorOf(group=name):
            place = (*path, "coordinator-of")
            yield from unknown("group", name, experiment.group_names, place)
        case PartitionLeader(partition=partition):
            topics = {topic.name: topic.partitions for topic in experiment.workload.topics}
            name, _, number = partition.rpartition("/")
            place = (*path, "partition-leader")
            yield from unknown("topic", name, topics, place)
            if name in topics and int(number) >= topics[name]:
                yield Problem(
                    place,
                    f"topic '{name}' has partitions 0 to {topics[name] - 1}; choose one of them",
                )
        case Brokers(brokers=ids):
            for j, node in enumerate(ids):
                yield from no_such_broker(node, experiment, (*path, "brokers", j))


def no_such_broker(node: int, experiment: Setup, path: Path) -> Iterator[Problem]:
    """Yield a problem if no broker has the id at a path; none as long as the ids are not known."""
    ids = experiment.cluster.ids
    if ids is not None and node not in ids:
        choice = ", ".join(map(str, ids))
        yield Problem(path, f"there is no broker {node}; choose from {choice}")
