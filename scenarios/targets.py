"""What a fault hits, and the condition that it waits for. All is resolved when the fault fires."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from kafka_protocol.printable import shortened
from scenarios.durations import PositiveMs
from scenarios.fields import (
    MOST,
    BrokerId,
    Count,
    GroupStateName,
    Part,
    SomeItems,
    TopicPartition,
    by_key,
)
from scenarios.setup import MemberSpec, Setup


class LeaderMemberOf(Part):
    """Selects the member that leads the group when the fault fires."""

    group: str = Field(alias="leader-member-of")
    """The group."""


class Names(Part):
    """Selects members by name."""

    names: Annotated[tuple[str, ...], Field(min_length=1, max_length=MOST)]
    """Names of members: instance ids, or `<group>-dynamic-<n>`."""


class CoordinatorOf(Part):
    """Selects the broker that coordinates the group when the fault fires."""

    group: str = Field(alias="coordinator-of")
    """The group."""


class PartitionLeader(Part):
    """Selects the broker that leads the partition when the fault fires."""

    partition: TopicPartition = Field(alias="partition-leader")
    """`TOPIC/NUMBER`, such as `orders/0`."""


class Brokers(Part):
    """Selects brokers by id."""

    brokers: SomeItems[BrokerId]
    """Ids of brokers: 1, 2, …, or those of the external cluster."""


class When(Part):
    """A condition of a group. It is awaited from the time `at` on, each time that a fault fires."""

    group: str
    """The group that it is about."""
    state: GroupStateName | None = None
    """The state that the group is in, by the lines of its coordinator."""
    members: Count | None = None
    """How many members it has, by DescribeGroups."""
    within_ms: PositiveMs = 60_000
    """How long it is awaited. After that the fault is not injected: the verdict is `unknown`."""

    def __str__(self) -> str:
        """Return it as people read it."""
        what = f"is {self.state}" if self.state else f"has {self.members} members"
        return f"{self.group} {what}"


_FORMS = {
    "leader-member-of": LeaderMemberOf,
    "names": Names,
    "coordinator-of": CoordinatorOf,
    "partition-leader": PartitionLeader,
    "brokers": Brokers,
}

MemberTarget = Annotated[
    Annotated[Literal["all", "static", "dynamic"], Tag("Word")]
    | Annotated[LeaderMemberOf, Tag("LeaderMemberOf")]
    | Annotated[Names, Tag("Names")],
    Discriminator(
        by_key(_FORMS, words=("all", "static", "dynamic")),
        custom_error_type="target_form",
        custom_error_message="not a target; write all, static, dynamic, "
        "{leader-member-of: GROUP} or {names: [MEMBER, ...]}",
    ),
]

BrokerTarget = Annotated[
    Annotated[Literal["controller"], Tag("Word")]
    | Annotated[CoordinatorOf, Tag("CoordinatorOf")]
    | Annotated[PartitionLeader, Tag("PartitionLeader")]
    | Annotated[Brokers, Tag("Brokers")],
    Discriminator(
        by_key(_FORMS, words=("controller",)),
        custom_error_type="target_form",
        custom_error_message="not a broker; write controller, {coordinator-of: GROUP}, "
        "{partition-leader: TOPIC/NUMBER} or {brokers: [1, ...]}",
    ),
]


def selected(target: MemberTarget, group: str | None, experiment: Setup) -> tuple[MemberSpec, ...]:
    """Return the members that a target selects, as far as the file tells, in its order."""
    if isinstance(target, LeaderMemberOf):
        return ()
    wanted, groups = set[str](), {group}
    if isinstance(target, Names):
        wanted, called = set(target.names), experiment.member_called
        groups = {called[name].group for name in wanted if name in called}
    return tuple(
        member
        for name, members in experiment.members_by_group.items()
        if name in groups
        for member in members
        if member.name in wanted or target in ("all", member.kind)
    )


def in_words(target: MemberTarget | BrokerTarget, group: str | None) -> str:
    """Return a target as people read it: `static-3`, `all of G`, `leader-member-of: G`.

    Of many members the first few are named.
    """
    match target:
        case LeaderMemberOf(group=led):
            return f"leader-member-of: {led}"
        case Names(names=names):
            return shortened(names)
        case CoordinatorOf(group=coordinated):
            return f"coordinator-of: {coordinated}"
        case PartitionLeader(partition=partition):
            return f"partition-leader: {partition}"
        case Brokers(brokers=ids):
            return ", ".join(f"broker-{broker}" for broker in ids)
        case "controller":
            return "controller"
        case kind:
            return f"{kind} of {group}"
