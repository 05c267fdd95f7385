"""The faults, as the file spells them."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from scenarios.durations import DurationMs, PositiveMs
from scenarios.fields import Flag, InstanceId, Name, Part, PositiveCount
from scenarios.problems import shown
from scenarios.targets import BrokerTarget, MemberTarget


class Static(Part):
    """A static identity: what a member comes back as."""

    instance_id: InstanceId
    """`{n}` stands for the member's place in its group, from 0."""


def _identity(value: object) -> object:
    if value == "dynamic" or isinstance(value, dict | Static):
        return value
    raise ValueError(f'{shown(value)} will not do; write dynamic, or {{instance_id: "app-{{n}}"}}')


Identity = Annotated[
    Literal["dynamic"] | Static,
    BeforeValidator(_identity, json_schema_input_type=Literal["dynamic"] | Static),
]


class Timed(Part):
    """What every fault has."""

    fault: str
    at_ms: DurationMs
    """Counted from the moment the steady state is met."""


class MemberFault(Timed):
    """What the faults that hit members have in common."""

    target: MemberTarget
    """Resolved when the fault fires."""
    group: str | None = None
    """The group that `all`, `static` and `dynamic` choose from."""
    allow_empty: Flag = False
    """Whether a target that matches nothing is all right."""


class MemberAway(MemberFault):
    """What the faults that take members away for a while have in common."""

    down_for_ms: PositiveMs
    """How long each member stays away."""


class MemberRestart(MemberAway):
    """Closes the targets, all at once, and starts them again."""

    fault: Literal["member.restart"]
    becomes: Identity | None = None
    """What they come back as; left out, as what they were."""


class GroupBounce(MemberAway):
    """Restarts the targets one after the other."""

    fault: Literal["group.bounce"]
    every_ms: PositiveMs
    """From the start of one member's restart to the start of the next."""
    becomes: Identity | None = None
    """What they come back as; left out, as what they were."""


class MemberKill(MemberAway):
    """Ends the targets as a crash does, without LeaveGroup, and starts them again."""

    fault: Literal["member.kill"]


class DuplicateInstance(MemberFault):
    """Starts a second process under the instance id of each target.

    In the end the process is ended and its target, fenced by then (KIP-345), started afresh.
    """

    fault: Literal["member.duplicate-instance"]
    lasts_ms: PositiveMs
    """How long the second process runs."""


def _instances(value: object) -> object:
    if value in ([], ()):
        raise ValueError("nobody is named; write all, or a list of instance ids")
    if value == "all" or isinstance(value, list | tuple):
        return value
    raise ValueError(f"{shown(value)} will not do; write all, or a list of instance ids")


class RemoveMembers(Timed):
    """Removes members with one LeaveGroup request by their instance ids (KIP-345)."""

    fault: Literal["group.remove-members"]
    group: str
    instances: Annotated[
        Literal["all"] | tuple[Name, ...],
        BeforeValidator(
            _instances, json_schema_input_type=Literal["all"] | Annotated[list[Name], Field()]
        ),
    ]
    """Instance ids, known to the group or not; `all` are those that it has when the fault fires."""


class AddPartitions(Timed):
    """Gives a topic more partitions; whoever leads a group has to see it and to share them out."""

    fault: Literal["topic.add-partitions"]
    topic: str
    to: PositiveCount
    """How many it has then."""


class BrokerFault(Timed):
    """What the faults that hit brokers have in common."""

    target: BrokerTarget
    """Resolved when the fault fires."""


class BrokerAway(BrokerFault):
    """What the faults that take brokers away for a while have in common."""

    down_for_ms: PositiveMs
    """How long each broker stays away."""


class BrokerKill(BrokerAway):
    """Ends the brokers with SIGKILL, and starts them again."""

    fault: Literal["broker.kill"]


class BrokerStop(BrokerAway):
    """Shuts the brokers down cleanly, and starts them again."""

    fault: Literal["broker.stop"]


class BrokerPause(BrokerAway):
    """Freezes the brokers: their sockets stay open, nothing answers."""

    fault: Literal["broker.pause"]


class BrokerRestart(BrokerFault):
    """Shuts the brokers down cleanly, and starts them again at once."""

    fault: Literal["broker.restart"]


Fault = Annotated[
    MemberRestart
    | GroupBounce
    | MemberKill
    | DuplicateInstance
    | RemoveMembers
    | AddPartitions
    | BrokerKill
    | BrokerStop
    | BrokerPause
    | BrokerRestart,
    Field(discriminator="fault"),
]
