"""The parts of an experiment, as the file spells them.

Python names of durations end in `_ms` and hold whole milliseconds; their YAML keys have no unit,
since the value carries one (`session_timeout: 10s` is `session_timeout_ms == 10_000`). What a
part alone can tell is checked here; what takes two parts is checked in `checks`.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)

from scenarios.durations import DurationMs, PositiveMs
from scenarios.problems import shown

Kind = Literal["static", "dynamic"]
Assignor = Literal["range", "roundrobin", "cooperative-sticky"]
GroupStateName = Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]
Phase = Literal["formation", "impact", "recovery", "teardown"]
Reason = Literal[
    "new_member",
    "leader_rejoin",
    "member_metadata",
    "static_replaced",
    "protocol_change",
    "session_expired",
    "leave",
    "pending_sync",
    "over_capacity",
    "assignment_error",
]


def _matching(pattern: str, advice: str) -> AfterValidator:
    """Check text against a pattern, and say in words what would match it."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value):
            return value
        raise ValueError(f"{shown(value)} is not allowed; {advice}")

    return AfterValidator(check)


# What Kafka allows in topic names and instance ids; a first letter or digit keeps out `.`, `..` and
# whatever looks like an option, since names become folders and arguments.
_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
_INSTANCE_ID = r"([A-Za-z0-9]|\{n\})([A-Za-z0-9._-]|\{n\}){0,199}"
_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+"
_NAMING = "use letters, digits, '.', '_' and '-', first a letter or digit, 200 at most"

Name = Annotated[str, _matching(_NAME, _NAMING), Field(json_schema_extra={"pattern": f"^{_NAME}$"})]
InstanceId = Annotated[
    str,
    _matching(_INSTANCE_ID, f"{_NAMING}; {{n}} stands for the number"),
    Field(json_schema_extra={"pattern": f"^{_INSTANCE_ID}$"}),
]
Version = Annotated[
    str,
    _matching(_VERSION, "write a whole release, such as 4.3.0"),
    Field(json_schema_extra={"pattern": f"^{_VERSION}$"}),
]
# Strict, or `true` and "3" would pass for numbers.
Count = Annotated[int, Field(strict=True, ge=0)]
PositiveCount = Annotated[int, Field(strict=True, ge=1)]
Flag = Annotated[bool, Field(strict=True)]


class Part(BaseModel):
    """Something in an experiment file: frozen, and without room for unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda field: field.removesuffix("_ms"),
        use_attribute_docstrings=True,
    )


def _property_value(value: object) -> object:
    if isinstance(value, str | int):
        return value
    raise ValueError(f"{shown(value)} will not do; write text, a whole number, true or false")


PropertyValue = Annotated[str | int | bool, BeforeValidator(_property_value)]


class Cluster(Part):
    """The brokers."""

    brokers: Annotated[int, Field(strict=True, ge=1, le=5)] = 3
    version: Version = "4.3.0"
    """The Kafka release."""
    config: Annotated[
        Mapping[Name, PropertyValue], Field(json_schema_extra={"additionalProperties": False})
    ] = {}
    """Broker properties, by Kafka's names."""


class Topic(Part):
    """A topic, created before the load starts."""

    name: Name
    partitions: PositiveCount = 1
    replication_factor: PositiveCount = 1


class Producer(Part):
    """Writes to one topic at a steady rate."""

    topic: str
    rate: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
    """Records a second."""


class StaticMembers(Part):
    """Members with a group.instance.id (KIP-345), which is also their name."""

    kind: Literal["static"]
    count: PositiveCount
    instance_id: InstanceId
    """`{n}` stands for the number of the member, from 0."""


class DynamicMembers(Part):
    """Members without an instance id, named `<group>-dynamic-<n>`."""

    kind: Literal["dynamic"]
    count: PositiveCount


Members = Annotated[StaticMembers | DynamicMembers, Field(discriminator="kind")]


class Group(Part):
    """A consumer group. Timings that are left out are Kafka's own defaults."""

    name: Name
    topics: Annotated[tuple[str, ...], Field(min_length=1)]
    assignor: Assignor = "range"
    session_timeout_ms: PositiveMs = 45_000
    heartbeat_interval_ms: PositiveMs = 3_000
    max_poll_interval_ms: PositiveMs = 300_000
    """Also the rebalance timeout that the member asks for."""
    commit_interval_ms: PositiveMs = 5_000
    members: Annotated[tuple[Members, ...], Field(min_length=1)]


class Workload(Part):
    """Everything that uses the cluster."""

    topics: Annotated[tuple[Topic, ...], Field(min_length=1)]
    producers: tuple[Producer, ...] = ()
    groups: Annotated[tuple[Group, ...], Field(min_length=1)]


class GroupMembersProbe(Part):
    """The group has exactly `tolerance` members."""

    name: str
    probe: Literal["group.members"]
    group: str
    tolerance: Count


class GroupStateProbe(Part):
    """The group is in the state `tolerance`."""

    name: str
    probe: Literal["group.state"]
    group: str
    tolerance: GroupStateName


Probe = Annotated[GroupMembersProbe | GroupStateProbe, Field(discriminator="probe")]


class SteadyState(Part):
    """What must hold before the first fault, and how long that may take."""

    within_ms: PositiveMs = 60_000
    probes: tuple[Probe, ...] = ()


class LeaderMemberOf(Part):
    """Selects whichever member leads the group when the fault fires."""

    group: str = Field(alias="leader-member-of")


class Names(Part):
    """Selects members by name."""

    names: Annotated[tuple[str, ...], Field(min_length=1)]


def _target_form(value: Any) -> str | None:
    """Return the tag of the form that a target has; tags are the names of the classes."""
    if value in ("all", "static", "dynamic"):
        return "Word"
    if isinstance(value, LeaderMemberOf) or (
        isinstance(value, dict) and "leader-member-of" in value
    ):
        return "LeaderMemberOf"
    if isinstance(value, Names) or (isinstance(value, dict) and "names" in value):
        return "Names"
    return None


Target = Annotated[
    Annotated[Literal["all", "static", "dynamic"], Tag("Word")]
    | Annotated[LeaderMemberOf, Tag("LeaderMemberOf")]
    | Annotated[Names, Tag("Names")],
    Discriminator(
        _target_form,
        custom_error_type="target_form",
        custom_error_message="not a target; write all, static, dynamic, "
        "{leader-member-of: GROUP} or {names: [MEMBER, ...]}",
    ),
]


class MemberFault(Part):
    """What the faults that hit members have in common."""

    fault: str
    target: Target
    """Resolved when the fault fires."""
    group: str | None = None
    """The group that `all`, `static` and `dynamic` choose from."""
    at_ms: DurationMs
    """Counted from the moment the steady state is met."""
    down_for_ms: PositiveMs
    """How long each member stays away."""
    allow_empty: Flag = False
    """Whether a target that matches nothing is all right."""


class MemberRestart(MemberFault):
    """Closes the targets, all at once, and starts them again under the same identity."""

    fault: Literal["member.restart"]


class GroupBounce(MemberFault):
    """Restarts the targets one after the other."""

    fault: Literal["group.bounce"]
    every_ms: PositiveMs
    """From the start of one member's restart to the start of the next."""


Fault = Annotated[MemberRestart | GroupBounce, Field(discriminator="fault")]


class Phases(Part):
    """How long the run goes on."""

    impact_ms: PositiveMs
    """At least this long from the first fault's start, and until every fault is healed."""
    recovery_ms: DurationMs
    """From the end of the impact phase."""


class Range(Part):
    """From `min` to `max`, both included; no `max` means no upper bound."""

    min: Count = 0
    max: Count | None = None


def _as_range(value: object) -> object:
    if isinstance(value, dict | Range):
        return value
    if type(value) is int and value >= 0:
        return {"min": value, "max": value}
    raise ValueError(f"{shown(value)} will not do; write a number such as 0, or {{min: 1, max: 3}}")


class Expectation(Part):
    """How many rebalances (transitions into PreparingRebalance) a group may have in a phase."""

    group: str
    phase: Phase
    reason: Reason | None = None
    """Count those of one reason class alone."""
    rebalances: Annotated[Range, BeforeValidator(_as_range, json_schema_input_type=Count | Range)]
