"""Faults of a group: bounce, remove-members, scaling, configs, and the move of its coordinator."""

import random
from collections.abc import Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from kafka_protocol.apis import CONFIGURE
from kafka_protocol.errors import Error, name_of
from kafka_protocol.group_configs import POLICIES
from kafka_protocol.printable import shortened
from scenarios import timing
from scenarios.durations import PositiveMs, now_ms
from scenarios.faults.base import Fault, Finding, Hit
from scenarios.faults.member import MemberRestart
from scenarios.faults.targeted import (
    Becomes,
    MemberAway,
    OneMember,
    no_such_broker,
    shared_identity,
    too_short,
)
from scenarios.fields import MOST, BrokerId, Count, Name, PositiveCount
from scenarios.model import Properties
from scenarios.problems import Path, Problem, shown, unknown
from scenarios.setup import Setup
from scenarios.targets import LeaderMemberOf, MemberTarget, Names

if TYPE_CHECKING:
    from chaos.fault_context import FaultContext
    from chaos.witness import Request


class GroupBounce(MemberAway):
    """Restarts the targets one after the other, or in waves of `at_once`."""

    noun = "rolling bounce"
    is_series = True

    fault: Literal["group.bounce"]
    every_ms: PositiveMs
    """From the start of one member's restart, or one wave's, to the start of the next."""
    at_once: PositiveCount | None = None
    """How many members restart together, as one wave; one by default."""
    repeat: PositiveCount | None = None
    """How many rounds through all targets there are; one by default."""
    becomes: Becomes | None = None
    """The identity that they restart with; by default the one they had."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, and that each gets an instance id of its own."""
        yield from super().checks(experiment, path)
        yield from shared_identity(self, self.becomes, experiment, path)
        if self.at_once is not None and isinstance(self.target, LeaderMemberOf):
            yield Problem((*path, "at_once"), "a group has one leader; remove at_once")

    def size(self, experiment: Setup) -> int:
        """Return how many steps it makes, at most."""
        waves = -(-len(self.known_targets(experiment)) // (self.at_once or 1))
        return (self.repeat or 1) * max(1, waves)

    def steps(self, experiment: Setup, chance: random.Random) -> Iterator[Fault]:
        """Yield the restarts, round after round, each in an order of its own."""
        numbers = count()
        for _ in range(self.repeat or 1):
            waves: list[MemberTarget] = [self.target]
            if not isinstance(self.target, LeaderMemberOf):
                names = [member.name for member in self.known_targets(experiment)]
                chance.shuffle(names)
                size = self.at_once or 1
                starts = range(0, len(names), size)
                waves = [Names(names=tuple(names[i : i + size])) for i in starts]
            yield from (self._restart(next(numbers), wave) for wave in waves)

    def _restart(self, number: int, target: MemberTarget) -> MemberRestart:
        return MemberRestart.model_construct(
            fault="member.restart",
            at_ms=self.at_ms + number * self.every_ms,
            target=target,
            group=self.group if isinstance(target, str) else None,
            allow_empty=self.allow_empty,
            down_for_ms=self.down_for_ms,
            becomes=self.becomes,
        )


class MembersScale(OneMember):
    """Scales a group down to some of its members, and up to all of them again.

    Those that stop are the last ones of the file, all at once, as a deployment does it.
    """

    noun = "scaling stop"
    undo_words = "all members again after {}"

    fault: Literal["members.scale"]
    group: str
    """The group that is scaled."""
    to: Count
    """How many of its members go on."""
    lasts_ms: PositiveMs
    """How long the others are down."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that the group exists and is larger, and that the absence is witnessed."""
        groups = {group.name: group for group in experiment.workload.groups}
        yield from unknown("group", self.group, groups, (*path, "group"))
        if self.group not in groups:
            return
        size = len(experiment.members_by_group[self.group])
        if self.to >= size:
            yield Problem(
                (*path, "to"),
                f"group '{self.group}' has {size} members; write fewer: it grows to {size} again "
                "at the end",
            )
        yield from too_short(self.lasts_ms, groups[self.group], 2, (*path, "lasts"))

    def hits_in_words(self) -> str:
        """Return what it hits, as the plan shows it."""
        return f"{self.group}, to {self.to} members"

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return the members that go; the journal has the time under the name of an absence."""
        group = context.experiment.members_by_group[self.group]
        for hit in map(self.hit_of, group[self.to :]):
            hit.details["down_for_ms"] = self.lasts_ms
            yield hit


def _instances(value: object) -> object:
    if value in ([], ()):
        raise ValueError("the list is empty; write all, or a list of instance ids")
    if value == "all" or (isinstance(value, list | tuple) and len(value) <= MOST):
        return value
    raise ValueError(f"{shown(value)} is not allowed; write all, or up to {MOST} instance ids")


class OneGroup(Fault):
    """A fault of one group, and one that nothing undoes."""

    hits = "group"
    one_shot = True

    group: str
    """The group that it is about."""

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return the group."""
        _ = context
        yield Hit(self.group, self.group)


class AskedOfGroup(OneGroup):
    """One request of an operator to the coordinator of a group."""

    api: ClassVar[str]
    """Which request it is."""

    _sent_ms: int = 0
    _answer: int = Error.NONE

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that the group exists."""
        groups = [group.name for group in experiment.workload.groups]
        yield from unknown("group", self.group, groups, (*path, "group"))

    def ask(self, client_id: str) -> int:
        """Send the request; return the error code of the whole answer."""
        raise NotImplementedError

    def seen(self, request: "Request") -> Finding:
        """Return whether a request that was answered NONE is this one, and what more it says."""
        return Finding(request.group == self.group, "")

    def inject(self) -> None:
        """Send the request; it is answered when this returns."""
        self._sent_ms = now_ms()
        self._answer = self.ask(self._client_id)

    def verify(self) -> Finding:
        """Return whether a broker was asked exactly this, and what it answered."""
        if self._answer != Error.NONE:
            return Finding(False, f"{self.api} was answered {name_of(self._answer)}")
        missing = f"no {self.api} of {self._client_id} answered NONE in any group.log"
        found = self._await(self._look, timing.LEAVE_LOGGED_MS, missing)
        request = self._request()
        if request is None or not request.error_code:
            return found
        refusal = f"one was answered {name_of(request.error_code)} ({request.place})"
        return Finding(found.holds, f"{found.evidence}; {refusal}")

    def _look(self) -> Finding | None:
        self._context.witness.poll()
        request = self._request()
        if request is None or request.error_code != Error.NONE:
            return None
        seen = self.seen(request)
        what = f"{self.api} of {self._client_id} answered NONE ({request.place}){seen.evidence}"
        return Finding(seen.holds, what)

    @property
    def _client_id(self) -> str:
        """The client.id of the request, of this fault alone."""
        return f"groupquake-{self._context.fault_id}"

    def _request(self) -> "Request | None":
        """Return the request from the latest line about it."""
        return self._context.witness.latest(self._client_id, self._sent_ms, self.api)


class RemoveMembers(AskedOfGroup):
    """Removes members with one LeaveGroup request by their instance ids (KIP-345)."""

    noun = "removal"
    api = "LEAVE_GROUP"

    fault: Literal["group.remove-members"]
    instances: Annotated[
        Literal["all"] | tuple[Name, ...],
        BeforeValidator(
            _instances,
            json_schema_input_type=Literal["all"] | Annotated[list[Name], Field(max_length=MOST)],
        ),
    ]
    """Instance ids, known to the group or not; `all` are those that it has when the fault fires."""

    def hits_in_words(self) -> str:
        """Return what it hits, as the plan shows it."""
        is_all = self.instances == "all"
        listed = "all static members" if is_all else shortened(self.instances)
        return f"{listed} of {self.group}"

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return all as one. Raises TargetError if `all` static members leave and none is."""
        ids = context.static_members(self.group) if self.instances == "all" else self.instances
        yield Hit(shortened(ids), self.group, {"instances": list(ids)})

    def ask(self, client_id: str) -> int:
        """Send LeaveGroup."""
        ids = self._hit.details["instances"]
        return self._context.remove_members(self.group, ids, client_id)

    def seen(self, request: "Request") -> Finding:
        """Return whether exactly these were named, and what was answered of each."""
        each = [f"{one}: {name_of(code)}" for one, code in request.removed]
        answers = shortened(each, "answers") or "nobody"
        named = sorted(one for one, _ in request.removed)
        exactly = named == sorted(set(self._hit.details["instances"]))
        return Finding(request.group == self.group and exactly, f", {answers}")


class GroupConfigure(AskedOfGroup):
    """Sets configs of a group, with one IncrementalAlterConfigs (resource type GROUP, KIP-848)."""

    noun = "config change"
    api = CONFIGURE

    fault: Literal["group.configure"]
    configs: Properties
    """Their values by name; an empty text for the default."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that the group exists, and that the rules know such configs."""
        yield from super().checks(experiment, path)
        path = (*path, "configs")
        for name in self.configs:
            yield from unknown("config", name, POLICIES, path)
            if (policy := POLICIES.get(name, experiment.judge)) != experiment.judge:
                what = f"no group has {name} under judge: {experiment.judge}"
                yield Problem(path, f"{what}; write judge: {policy}")

    def hits_in_words(self) -> str:
        """Return what it hits, as the plan shows it."""
        values = ", ".join(f"{name}={value}" for name, value in self.configs.items())
        return f"{values} of {self.group}"

    def ask(self, client_id: str) -> int:
        """Send IncrementalAlterConfigs."""
        configs = {name: str(value) for name, value in self.configs.items()}
        return self._context.configure(self.group, configs, client_id)


class CoordinatorMove(OneGroup):
    """Makes another broker the coordinator of a group, as a rebalancing of partitions does.

    The group's partition of `__consumer_offsets` keeps its replicas: the new leader becomes the
    preferred one and is elected (KIP-455, KIP-460). Its other groups move with it.
    """

    noun = "move"
    moves_leaders = True

    fault: Literal["coordinator.move"]
    group: str
    """The group whose coordinator moves."""
    to: BrokerId | None = None
    """The id of the new coordinator; by default the next replica in sync."""
    keeps_replica: bool = True
    """Whether the former coordinator keeps its replica of the partition, as a follower."""

    _moved_ms: int = 0

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that the group and another broker exist."""
        yield from unknown("group", self.group, experiment.group_names, (*path, "group"))
        if experiment.cluster.brokers == 1:
            yield Problem((*path, "fault"), "there is one broker; give the cluster more")
        elif self.to is not None:
            yield from no_such_broker(self.to, experiment, (*path, "to"))

    def hits_in_words(self) -> str:
        """Return what it hits, as the plan shows it."""
        to = "another broker" if self.to is None else f"broker-{self.to}"
        return f"{self.group}, to {to}"

    def inject(self) -> None:
        """Elect the new leader; the controller has elected it when this returns."""
        view = self._context.view
        before = view.coordinator(self.group)
        move = lambda: view.move_coordinator(self.group, self.to, keeps_replica=self.keeps_replica)
        new = self._context.unless_stopped(move)
        self._moved_ms = now_ms()
        self._hit.details.update(moved_from=before, moved_to=new)

    def verify(self) -> Finding:
        """Wait until every broker that answers knows it, and it has served the group."""
        new = self._hit.details["moved_to"]
        missing = f"not every broker knows broker {new} as coordinator, or it served nobody"
        return self._await(self._look_for_new, timing.MOVE_KNOWN_MS, missing)

    def _look_for_new(self) -> Finding | None:
        new = self._hit.details["moved_to"]
        witness, view = self._context.witness, self._context.view
        known = self._context.by_broker(lambda address: view.coordinator(self.group, address))
        witness.poll()
        served = witness.served_since(self.group, new, self._moved_ms)
        if set(known.values()) != {new} or served is None:
            return None
        by = ", ".join(f"broker {broker}" for broker in known)
        return Finding(
            True,
            f"broker {new} coordinates {self.group} by {by}, and served {served.api} of "
            f"{served.client} ({served.place})",
        )
