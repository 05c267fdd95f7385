"""The parts of an experiment, as the file spells them, but for its faults.

Each part is checked here on its own; checks between parts are in `checks`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from scenarios.clients import Client
from scenarios.durations import DurationMs, PositiveMs
from scenarios.external import HooksByBroker, LogSource, Prefix, Text
from scenarios.fields import (
    MOST_ITEMS,
    BrokerId,
    Count,
    GroupStateName,
    InstanceId,
    Items,
    Name,
    Part,
    Partitions,
    PositiveCount,
    Release,
    SomeItems,
    Version,
    by_key,
    is_count,
)
from scenarios.problems import shown
from scenarios.releases import DEFAULT_RELEASE, Coordinator
from scenarios.wire_scripts import WireScript

Kind = Literal["static", "dynamic"]
Assignor = Literal["range", "roundrobin", "cooperative-sticky", "instance-first"]
Judge = Literal[
    "release", "kip-345", "kip-423", "instance-first", "pre-registration", "hot-standby"
]
Phase = Literal["formation", "impact", "recovery", "teardown"]
Reason = Literal[
    "new_member",
    "leader_rejoin",
    "join_reason",
    "member_metadata",
    "static_replaced",
    "protocol_change",
    "session_expired",
    "leave",
    "pending_sync",
    "over_capacity",
    "assignment_error",
    "group_config",
]

LONG = 2**63 - 1
"""The largest number that a property of Kafka's holds."""


def _property_value(value: object) -> object:
    if isinstance(value, int) and abs(value) > LONG:
        raise ValueError(f"{shown(value)} is too large; write {LONG} or less")
    if isinstance(value, str | int):
        return value
    raise ValueError(f"{shown(value)} is not allowed; write text, a whole number, true or false")


PropertyValue = Annotated[
    str | Annotated[int, Field(ge=-LONG, le=LONG)] | bool, BeforeValidator(_property_value)
]
Properties = Annotated[
    Mapping[Name, PropertyValue],
    Field(max_length=MOST_ITEMS, json_schema_extra={"additionalProperties": False}),
]
"""Properties by Kafka's names."""


class Cluster(Part):
    """The brokers: a new cluster of a release, or, with `kind: external`, one that exists.

    Of an external cluster, number of brokers, release and settings are found out when it is used.
    """

    kind: Literal["external"] | None = None
    """`external` for a cluster that exists already."""
    bootstrap: Text | None = None
    """`HOST:PORT,…` of some brokers of an external cluster."""
    client_properties: Text | None = None
    """File of lines `key=value` with which all clients reach an external cluster (TLS, SASL)."""
    logs: LogSource | None = None
    """Where the logs of an external cluster are: `{folder: …}`, `{command: …}`, `tap` or `none`.
    By default its clients go through the tap, which writes down what it sees."""
    prefix: Prefix | None = None
    """What the names of groups and topics on an external cluster begin with; by default
    `groupquake-` and random letters."""
    hooks: HooksByBroker | None = None
    """What breaks the brokers of an external cluster, by broker id, or `any`."""
    brokers: Annotated[int, Field(strict=True, ge=1, le=1_000)] = 3
    """How many there are; groupquake starts 1 to 5."""
    broker_ids: SomeItems[BrokerId] | None = None
    """The ids of the brokers of an external cluster, found out when it is used. The brokers that
    groupquake starts are 1, 2, …."""
    version: Version = DEFAULT_RELEASE
    """The Kafka release."""
    coordinator: Coordinator | None = None
    """The group coordinator; by default the one that the release runs by default."""
    heap_mb: Annotated[int, Field(strict=True, ge=1, le=65_536)] = 256
    """The heap of each broker that groupquake starts, in MB: 1024 for ten thousand members."""
    config: Properties = {}  # noqa: RUF012 (a part is frozen)
    """Broker properties, by Kafka's names."""

    @property
    def ids(self) -> tuple[int, ...] | None:
        """The ids of the brokers, ascending; None for an external cluster not asked so far."""
        if self.broker_ids is not None:
            return tuple(sorted(self.broker_ids))
        return None if self.kind == "external" else tuple(range(1, self.brokers + 1))


class Topic(Part):
    """A topic, created before the load starts."""

    name: Name
    """What producers and groups call it."""
    partitions: Partitions = 1
    """How many partitions it has."""
    replication_factor: PositiveCount = 1
    """How many brokers hold each partition."""


class Producer(Part):
    """Writes to one topic at a steady rate."""

    topic: str
    """A topic of the workload."""
    rate: Annotated[float, Field(strict=True, gt=0, le=1_000_000, allow_inf_nan=False)]
    """Records a second."""


class _Members(Part):
    """The keys of members of both kinds."""

    client: Client = "librdkafka"
    """The client library. Members with `librdkafka` or `wire` share the process of the load. Every
    other member has one of its own: `librdkafka-process`, an adapter of `clients/`, or a program of
    yours (`command`). `wire` is groupquake's own client: the newest versions of the group's
    requests, no records, and thousands of members on one core. `java` is Kafka's own client of the
    brokers' release, in the VerifiableConsumer of Kafka's tools, which reads the group's first
    topic."""


class StaticMembers(_Members):
    """Members with a group.instance.id (KIP-345), which is also their name."""

    kind: Literal["static"]
    """They have an instance id."""
    count: PositiveCount
    """How many there are."""
    instance_id: InstanceId
    """`{n}` stands for the number of the member, from 0."""


class DynamicMembers(_Members):
    """Members without an instance id, named `<group>-dynamic-<n>`."""

    kind: Literal["dynamic"]
    """They have no instance id."""
    count: PositiveCount
    """How many there are."""


Members = Annotated[StaticMembers | DynamicMembers, Field(discriminator="kind")]


class Group(Part):
    """A consumer group. Timings that are left out are Kafka's own defaults."""

    name: Name
    """Its group.id; on an external cluster behind a prefix."""
    topics: SomeItems[str]
    """The topics of the workload that its members subscribe to."""
    assignor: Assignor = "range"
    """How its leader assigns partitions (`partition.assignment.strategy`). `instance-first`, which
    `wire` members have, is none of Kafka's: by instance ids alone."""
    session_timeout_ms: PositiveMs = 45_000
    """After so long without a request the coordinator removes a member (`session.timeout.ms`)."""
    heartbeat_interval_ms: PositiveMs = 3_000
    """How often a member sends Heartbeat (`heartbeat.interval.ms`)."""
    max_poll_interval_ms: PositiveMs = 300_000
    """How long an application may take from poll to poll (`max.poll.interval.ms`). Also the
    rebalance timeout of its JoinGroup."""
    commit_interval_ms: PositiveMs = 5_000
    """How often a member commits offsets (`auto.commit.interval.ms`)."""
    metadata_max_age_ms: PositiveMs = 300_000
    """How old the metadata of a member may be before it asks the brokers again."""
    members: SomeItems[Members]
    """Its members: entries of static and of dynamic ones."""


class Workload(Part):
    """Everything that uses the cluster."""

    topics: SomeItems[Topic]
    """The topics, which are created first."""
    producers: Items[Producer] = ()
    """What writes records; members without records still join, and send heartbeats."""
    groups: SomeItems[Group]
    """The consumer groups."""
    wire_scripts: Items[WireScript] = ()
    """Scripts of requests that real clients rarely send (`loadtest.wire_scripts`). Each has a group
    of its own, with the script's name. All start at the steady state. If a script waits for a fault
    at its coordinator, the plan starts when it waits. Run folders of older versions spell
    this key `stories`."""

    @model_validator(mode="before")
    @classmethod
    def _read_old_key(cls, value: Any) -> Any:
        if isinstance(value, dict) and "stories" in value and not value.get("wire_scripts"):
            return {
                ("wire_scripts" if k == "stories" else k): v
                for k, v in value.items()
                if k != "wire_scripts"
            }
        return value


def _as_tolerated(value: object) -> object:
    if value == "all" or is_count(value):
        return value
    raise ValueError(f"{shown(value)} is not allowed; write all, or a number such as 3")


class GroupMembersProbe(Part):
    """The group has exactly `tolerance` members; `all` are those that the file gives it."""

    name: str
    """What messages call it."""
    probe: Literal["group.members"]
    """It counts members."""
    group: str
    """The group that is asked about."""
    tolerance: Annotated[
        Count | Literal["all"],
        BeforeValidator(_as_tolerated, json_schema_input_type=Count | Literal["all"]),
    ]
    """How many members it must have."""


class GroupStateProbe(Part):
    """The group is in the state `tolerance`."""

    name: str
    """What messages call it."""
    probe: Literal["group.state"]
    """It asks for the state."""
    group: str
    """The group that is asked about."""
    tolerance: GroupStateName
    """The state that it must be in."""


Probe = Annotated[GroupMembersProbe | GroupStateProbe, Field(discriminator="probe")]


class SteadyState(Part):
    """What must hold before the first fault, and within what time."""

    within_ms: PositiveMs = 60_000
    """How long it is awaited. After that the run ends with exit code 3."""
    probes: Items[Probe] | None = None
    """By default each group has all of its members and is Stable; `[]` waits for nothing."""


class Phases(Part):
    """How long the run lasts."""

    impact_ms: PositiveMs
    """At least this long from the first fault's start, and until every fault is healed."""
    recovery_ms: DurationMs
    """From the end of the impact phase."""


class Range(Part):
    """From `min` to `max`, both included; no `max` means no upper bound."""

    min: Count = 0
    """The least number."""
    max: Count | None = None
    """The greatest number."""


def _as_range(value: object) -> object:
    if isinstance(value, dict | Range):
        return value
    if is_count(value):
        return {"min": value, "max": value}
    raise ValueError(
        f"{shown(value)} is not allowed; write a number such as 0, or {{min: 1, max: 3}}"
    )


Promise = Literal[
    "describes_latest_client",
    "instance_keeps_its_place",
    "replaced_id_stays_pending_sync",
    "sync_timer_spares_statics",
    "every_return_is_stored",
    "sessions_wait_for_clients",
    "changed_subscription_rebalances",
    "joins_update_timeouts",
    "refused_instance_is_forgotten",
    "return_is_stored",
    "return_makes_completing_group_rebalance",
    "return_may_change_protocol",
    "store_answers_latest_return",
    "unknown_instance_is_refused",
]
"""The rules that KIP-345 promises, as `reference_coordinator` names them (`PROMISES`)."""
Because = Literal[Promise, "unowned", "unanswered"]

Number = Annotated[Range, BeforeValidator(_as_range, json_schema_input_type=Count | Range)]


class ExpectedVerdict(Part):
    """The verdict that the experiment expects of a release, because of a known defect.

    An expected `fail` breaks one promise in one group and nothing else. With `because: unowned`
    the only finding is that partitions have no owner at the end, with `because: unanswered` that a
    broker never answered a request.
    """

    since: Release
    """Valid from this release on, until the next entry."""
    coordinator: Coordinator | None = None
    """Only for this coordinator; by default for any."""
    verdict: Literal["pass", "fail"]
    """The verdict that is expected."""
    because: Because | None = None
    """The promise of KIP-345 that a `fail` must break, or `unowned` or `unanswered`."""
    group: str | None = None
    """The group of the finding. By default, with `unowned`, any groups."""


class Expectation(Part):
    """How many rebalances (transitions into PreparingRebalance) a group may have in a phase."""

    group: str
    """The group whose rebalances count."""
    phase: Phase | None = None
    """The phase in which they begin; by default the whole run."""
    reason: Reason | None = None
    """Count only those of one reason class."""
    rebalances: Number
    """How many there must be: a number, or a range."""


class Ownership(Part):
    """How many partitions of a group's topics may have no owner when the run ends.

    The owner of a partition is the member that the group's last assignment gives it to.
    """

    group: str
    """The group whose topics count."""
    unowned: Number
    """How many there must be: a number, or a range."""


class Movement(Part):
    """How many partitions may get another owner than before, as the clients tell.

    An owner is the same by its name: that of a static member is its instance id.
    """

    group: str
    """The group whose partitions count."""
    phase: Phase | None = None
    """The phase in which they are assigned; by default the whole run."""
    moved: Number
    """How many there must be: a number, or a range."""


class Clients(Part):
    """Whether what clients do against the rules of their protocol counts in the verdict.

    By default it counts for programs of yours (`command`), and is shown for other clients.
    """

    clients: Literal["kept", "shown"]
    """`kept`: a rule that any client breaks is a `fail`. `shown`: it is listed, and no fail."""


_FORMS = {"unowned": Ownership, "moved": Movement, "clients": Clients}
Expected = Annotated[
    Annotated[Expectation, Tag("Expectation")]
    | Annotated[Ownership, Tag("Ownership")]
    | Annotated[Movement, Tag("Movement")]
    | Annotated[Clients, Tag("Clients")],
    Discriminator(by_key(_FORMS, Expectation)),
]
