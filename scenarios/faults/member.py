"""Faults of members: they end, freeze, stop polling, unsubscribe, or share an identity.

All act over the control channel of the load. The witness is what the brokers' logs tell of a
member.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from kafka_protocol.errors import Error
from scenarios.clients import IN_LOAD
from scenarios.durations import PositiveMs, format_ms, now_ms
from scenarios.faults.base import Fault, Finding, Hit, Planned
from scenarios.faults.targeted import (
    Becomes,
    Frozen,
    GivesUp,
    MemberAway,
    MemberFault,
    Static,
    shared_identity,
)
from scenarios.fields import SomeItems
from scenarios.problems import Path, Problem, unknown
from scenarios.setup import DUPLICATE, SAME, Identity, MemberSpec, Setup
from scenarios.targets import LeaderMemberOf
from scenarios.timing import NOTICED_POLL_MS

if TYPE_CHECKING:
    from chaos.fault_context import FaultContext


class MemberRestart(MemberAway):
    """Closes the targets, all at once, and starts them again."""

    noun = "restart"

    fault: Literal["member.restart"]
    becomes: Becomes | None = None
    """The identity that they restart with; by default the one they had."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, and that each gets an instance id of its own."""
        yield from super().checks(experiment, path)
        yield from shared_identity(self, self.becomes, experiment, path)

    def planned(self) -> Planned:
        """Return its row of the plan, with the identity that the members take on."""
        row = super().planned()
        match self.becomes:
            case Static(instance_id=pattern):
                return row._replace(undo=f"{row.undo} as {pattern}")
            case "dynamic":
                return row._replace(undo=f"{row.undo} as a dynamic member")
        return row

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return the members; `{n}` of a new id is the position of each in its group."""
        for member in self._targets(context):
            yield self.hit_of(member, self._new_identity(member, context.experiment))

    def _new_identity(self, member: MemberSpec, experiment: Setup) -> Identity:
        match self.becomes:
            case None:
                return SAME
            case Static(instance_id=pattern):
                group = [m.name for m in experiment.members_by_group[member.group]]
                return {"instance_id": pattern.replace("{n}", str(group.index(member.name)))}
            case "dynamic":
                return {"instance_id": None}


class MemberKill(MemberAway):
    """Ends the targets as a crash does, without LeaveGroup, and starts them again."""

    noun = "kill"

    fault: Literal["member.kill"]

    _killed_ms: int = 0
    _connection: str | None = None
    _is_static: bool = False

    def inject(self) -> None:
        """Kill the member; its sockets are gone when this returns."""
        self._context.witness.poll()
        last = self._context.witness.latest(self._hit.target)
        # the broker may name it otherwise: from inside a container, or behind a NAT
        if last and self._context.is_open(last.connection):
            self._connection = last.connection
        self._is_static = bool(last and last.instance_id)
        self._began_ms = now_ms()
        self._context.members.order("kill", self._hit.target)
        self._killed_ms = now_ms()

    def verify(self) -> Finding:
        """Return whether it fell silent without a LeaveGroup, and its last connection is gone.

        A static member sends no LeaveGroup when it is closed, either (KIP-345), and its connection
        ends as well: its crash looks like a close, and the evidence says so.
        """
        member, silence = self._hit.target, self._evidence.silence(self._killed_ms)
        left = self._context.witness.latest(member, self._began_ms, "LEAVE_GROUP")
        if left:
            return Finding(False, f"{member} said goodbye with LEAVE_GROUP ({left.place})")
        if self._connection and self._context.is_open(self._connection):
            return Finding(False, f"{silence.evidence}, but connection {self._connection} is open")
        left_out = " (a static member sends none when closed, either)" if self._is_static else ""
        gone = (
            f"connection {self._connection} gone"
            if self._connection
            else "no socket of this machine could be matched with its connection"
        )
        return Finding(silence.holds, f"{silence.evidence}, no LEAVE_GROUP of it{left_out}, {gone}")


class MemberPause(Frozen, MemberAway):
    """Freezes the targets, as a long garbage collection or a suspended machine does.

    No thread of the client runs: it neither polls nor sends heartbeats, and its sockets stay open.
    """

    noun = "pause"
    undo_words = "resume after {}"

    fault: Literal["member.pause"]

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, and that each can be frozen alone."""
        yield from super().checks(experiment, path)
        shared = {m.name: m.group for m in experiment.members() if m.client == "librdkafka"}
        if isinstance(self.target, LeaderMemberOf):
            led = self.target.group
            hit = [name for name, group in shared.items() if group == led]
        else:
            hit = [m.name for m in self.known_targets(experiment) if m.name in shared]
        if hit:
            yield Problem(
                (*path, "target"),
                f"{hit[0]} shares the process of the load, which cannot be frozen for one member; "
                "write client: librdkafka-process, for example, for its members",
            )

    def inject(self) -> None:
        """Freeze the member; its last thread stops within some milliseconds."""
        self._context.members.order("pause", self._hit.target)
        self._began_ms = now_ms()


class MemberUnsubscribe(GivesUp):
    """Lets the targets unsubscribe: they stay up, and subscribe again afterwards."""

    noun = "unsubscription"
    undo_words = "subscribe again after {}"
    excuses = True
    since = "it unsubscribed"

    fault: Literal["member.unsubscribe"]
    for_ms: PositiveMs
    """How long each member is unsubscribed."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, that each can be asked for it, and that it shows."""
        yield from super().checks(experiment, path)
        hit = self.groups_hit(experiment)
        for one in self.known_targets(experiment) or experiment.members():
            if one.group in hit and one.client not in IN_LOAD:
                yield Problem(
                    (*path, "target"),
                    f"{one.name} is a program, which nothing can ask to unsubscribe; choose members"
                    f" with client: {' or '.join(IN_LOAD)}",
                )
                break
        yield from self.absence_checks(experiment, self.for_ms, 4, (*path, "for"))

    def inject(self) -> None:
        """Let the member unsubscribe."""
        self._began_ms = now_ms()
        self._context.members.order("unsubscribe", self._hit.target)


class MemberSlowPoll(GivesUp):
    """Lets the application of the targets poll no more, as slow processing does.

    The client's own threads go on: they send heartbeats until `max_poll_interval` has passed since
    the last poll. Then they give up the membership.
    """

    noun = "slow poll"
    undo_words = "poll again after {}"
    since = "its last poll"

    fault: Literal["member.slow-poll"]
    lasts_ms: PositiveMs
    """How long the application does not poll. A member of another client than librdkafka blocks as
    it prints what it polled, and nobody reads that: it needs records, and some polls more."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, and that the clients have the time to notice it."""
        yield from super().checks(experiment, path)
        for group in experiment.workload.groups:
            if group.name not in self.groups_hit(experiment):
                continue
            leaves_ms = NOTICED_POLL_MS + 2 * group.heartbeat_interval_ms
            least_ms = group.max_poll_interval_ms + leaves_ms
            if self.lasts_ms < least_ms:
                yield Problem(
                    (*path, "lasts"),
                    f"{format_ms(self.lasts_ms)} is too short for the clients of group "
                    f"'{group.name}' to leave, whose max_poll_interval is "
                    f"{format_ms(group.max_poll_interval_ms)}; write {format_ms(least_ms)} or more",
                )

    def inject(self) -> None:
        """Let the application poll no more."""
        self._began_ms = now_ms()
        self._context.members.order("stop-polling", self._hit.target)


class DuplicateInstance(MemberFault):
    """Starts a second process under the instance id of each target.

    At the end the second process is ended and its target, which is fenced by then (KIP-345), is
    started afresh.
    """

    noun = "duplicate"
    undo_name = "end-duplicate"
    undo_words = "end the duplicate after {}, start the member afresh"

    fault: Literal["member.duplicate-instance"]
    lasts_ms: PositiveMs
    """How long the second process runs."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, and that each has an instance id to duplicate."""
        yield from super().checks(experiment, path)
        # A fault may have made a member static by then: that shows when this one fires.
        taken_on = (getattr(other, "becomes", None) for other in experiment.faults)
        becoming = any(isinstance(identity, Static) for identity in taken_on)
        dynamic = [m.name for m in self.known_targets(experiment) if m.kind == "dynamic"]
        if dynamic and not becoming:
            yield Problem(
                (*path, "target"),
                f"{dynamic[0]} is dynamic and has no instance id to duplicate; choose static ones",
            )

    def hit_of(self, member: MemberSpec, identity: Identity = SAME) -> Hit:
        """Return a member as a target, and its duplicate."""
        hit = super().hit_of(member, identity)
        hit.details["duplicate"] = member.name + DUPLICATE
        return hit

    def inject(self) -> None:
        """Start the duplicate; it has not joined yet when this returns."""
        self._began_ms = now_ms()
        self._context.members.order("duplicate", self._hit.target)

    def verify(self) -> Finding:
        """Return whether the brokers let the duplicate in and fenced the member."""
        witness, duplicate = self._context.witness, self._hit.details["duplicate"]
        witness.poll()
        joined = witness.latest(duplicate, self._began_ms, "JOIN_GROUP", Error.NONE)
        if joined is None:
            return Finding(False, f"no JOIN_GROUP of {duplicate} was answered NONE")
        came = f"JOIN_GROUP of {duplicate} answered NONE ({joined.place})"
        fenced = witness.fenced_since(self._hit.target, self._began_ms)
        if fenced is None or fenced.instance_id != joined.instance_id:
            return Finding(
                False,
                f"{came}, but no request of {self._hit.target} as {joined.instance_id} was answered"
                " FENCED_INSTANCE_ID",
            )
        what = f"{fenced.api} of {self._hit.target} FENCED_INSTANCE_ID"
        return Finding(True, f"{came}, {what} ({fenced.place})")

    def heal(self) -> str:
        """End the duplicate and start the member; it has not joined yet when this returns."""
        self._healing_ms = now_ms()
        members, member = self._context.members, self._hit.target
        members.order("end-duplicate", member)
        members.order("stop", member)  # it would be fenced by the next process, if it is not yet
        members.order("start", member)
        return "the duplicate ended, the member started afresh over the control channel"


class SwapInstance(Fault):
    """Restarts two static members, each with the instance id of the other.

    At the end both restart with their own, as after a deployment that mixed up two replicas.
    """

    hits = "member"
    noun = "swap"
    undo_name = "give-ids"
    undo_words = "restart with their own after {}"

    fault: Literal["member.swap-instance"]
    members: SomeItems[str]
    """The two members, by name."""
    lasts_ms: PositiveMs
    """How long they keep the instance id of the other."""

    _own: Mapping[str, str] = {}
    _lost: tuple[str, ...] = ()
    _began_ms: int = 0
    _healing_ms: int = 0

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that they are two static members of one group."""
        known = experiment.member_called
        path = (*path, "members")
        for j, name in enumerate(self.members):
            yield from unknown("member", name, known, (*path, j))
            if name in known and known[name].instance_id is None:
                yield Problem(
                    (*path, j), f"{name} is dynamic and has no instance id; choose static members"
                )
        groups = {known[name].group for name in self.members if name in known}
        if len(set(self.members)) != 2 or len(self.members) != 2:
            yield Problem(path, "name two members")
        elif len(groups) > 1:
            yield Problem(path, "these are in two groups; choose members of one")

    def hits_in_words(self) -> str:
        """Return what it hits, as the plan shows it."""
        return " and ".join(self.members)

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return both as one target."""
        pair = [one for one in context.experiment.members() if one.name in self.members]
        names = [one.name for one in pair]
        ids = {one.name: str(one.instance_id) for one in pair}
        undo = {"do": self.undo_name, "instance_ids": ids}
        yield Hit(", ".join(names), pair[0].group, {"members": names}, undo)

    def prepare(self) -> None:
        """Note the instance id of each."""
        self._own = (self._hit.undo or {})["instance_ids"]

    def inject(self) -> None:
        """Close both, and start each with the id of the other; they have not joined yet.

        If one is lost with its worker by then, none is started: nobody gets the id of a lost one.
        """
        self._began_ms = now_ms()
        for member in self._own:
            self._context.members.order("stop", member)
        for member, instance_id in self._swapped.items():
            self._context.members.order("start", member, {"instance_id": instance_id})

    def verify(self) -> Finding:
        """Return whether the brokers let each join with the id of the other."""
        return self._joined(self._swapped, self._began_ms)

    def heal(self) -> str:
        """Close both, and start each with its own id; they have not joined yet."""
        self._healing_ms = now_ms()
        self._lost = self._context.members.restart_as(self._own)
        if not self._lost:
            return "both restarted with their own instance ids over the control channel"
        [there] = self._own.keys() - self._lost
        how = f"{there} restarted with its own instance id over the control channel"
        return f"{how}; {self._lost[0]}: lost with its worker"

    def verify_healed(self) -> Finding:
        """Wait until the brokers let each join with its own id; one that is lost does not."""
        ids = {member: one for member, one in self._own.items() if member not in self._lost}
        found = self._joined(ids, self._healing_ms)
        lost = "".join(f"; {member}: lost with its worker" for member in self._lost)
        return Finding(found.holds and not lost, found.evidence + lost)

    @property
    def _swapped(self) -> Mapping[str, str]:
        first, second = self._own
        return {first: self._own[second], second: self._own[first]}

    def _joined(self, ids: Mapping[str, str], since_ms: int) -> Finding:
        stop = self._context.stop
        found = {
            member: self._context.evidence(member).rejoined(since_ms, stop, {"instance_id": one})
            for member, one in ids.items()
        }
        evidence = "; ".join(f"{member}: {finding.evidence}" for member, finding in found.items())
        return Finding(all(finding.holds for finding in found.values()), evidence)
