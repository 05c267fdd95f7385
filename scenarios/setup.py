"""An experiment but for its faults, and its members."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Literal

from kafka_protocol.releases import number
from scenarios.clients import Client
from scenarios.fields import Items, Name, Part
from scenarios.model import (
    Clients,
    Cluster,
    Expectation,
    Expected,
    ExpectedVerdict,
    Group,
    Judge,
    Kind,
    Movement,
    Ownership,
    Phases,
    Probe,
    StaticMembers,
    SteadyState,
    Workload,
)
from scenarios.releases import Coordinator, default_coordinator

DUPLICATE = ".duplicate"
"""What follows the name of a member in the client.id of its duplicate."""

Identity = Mapping[str, str | None]
"""The identity that a member starts with: `instance_id` of a static member, None of a dynamic one;
an empty mapping keeps its identity."""

SAME: Identity = {}


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member of the workload. Its name is also its `client.id`, and unique in the experiment.

    A static member's name is its `instance_id`; a dynamic one has none.
    """

    name: str
    group: str
    kind: Kind
    instance_id: str | None
    client: Client = "librdkafka"


def members_of(group: Group) -> Iterator[MemberSpec]:
    """Yield the members of a group in the file's order.

    Static members are numbered from 0 in each entry, dynamic ones through the whole group.
    """
    numbers = count()
    for entry in group.members:
        for n in range(entry.count):
            if isinstance(entry, StaticMembers):
                instance_id = entry.instance_id.replace("{n}", str(n))
                yield MemberSpec(instance_id, group.name, "static", instance_id, entry.client)
            else:
                name = f"{group.name}-dynamic-{next(numbers)}"
                yield MemberSpec(name, group.name, "dynamic", None, entry.client)


class Setup(Part):
    """All that an experiment says; of its faults only that there are some.

    Faults are checked against it. `Experiment` knows them.
    """

    name: Name
    """What commands, run folders and reports call it."""
    description: str = ""
    """What happens in it; `groupquake list` shows it."""
    tags: Items[str] = ()
    """Words for people. The first one is the topic that `groupquake list` has an experiment of the
    library under (`scenarios.listing`)."""
    judge: Judge = "release"
    """The rules that the brokers are judged by: those of their release, those of KIP-345, or those
    of a policy that Kafka never shipped, which the oracle serves."""
    cluster: Cluster = Cluster()
    workload: Workload
    steady_state: SteadyState = SteadyState()
    faults: Items[Any] = ()
    phases: Phases
    expect: Items[Expected] = ()
    """What must hold beside the rules of the coordinator: numbers of rebalances, or of partitions
    without an owner, and whether what clients do counts. Without it only the rules count."""
    verdicts: Items[ExpectedVerdict] = ()
    """Expected verdicts by release, oldest first, where the experiment shows a known defect."""

    @property
    def never_shipped(self) -> str | None:
        """The profile of the policy that it is judged by, if no release has its rules."""
        return None if self.judge in ("release", "kip-345") else self.judge

    @property
    def coordinator(self) -> Coordinator:
        """Which group coordinator the brokers run."""
        return self.cluster.coordinator or default_coordinator(self.cluster.version)

    @property
    def expected_verdict(self) -> ExpectedVerdict | None:
        """The entry of `verdicts` for the release and coordinator of this run, if there is one."""
        version = number(self.cluster.version)
        entries = [
            entry
            for entry in self.verdicts
            if number(entry.since) <= version and entry.coordinator in (None, self.coordinator)
        ]
        return entries[-1] if entries else None

    @property
    def bounds(self) -> tuple[Expectation, ...]:
        """What is expected of rebalances."""
        return tuple(one for one in self.expect if isinstance(one, Expectation))

    @property
    def owners(self) -> tuple[Ownership, ...]:
        """What is expected of the owners of partitions."""
        return tuple(one for one in self.expect if isinstance(one, Ownership))

    @property
    def moves(self) -> tuple[Movement, ...]:
        """What is expected of partitions that move."""
        return tuple(one for one in self.expect if isinstance(one, Movement))

    @property
    def clients(self) -> Literal["kept", "shown"] | None:
        """Whether what clients do counts, if the file says so."""
        return next((one.clients for one in self.expect if isinstance(one, Clients)), None)

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What must hold before the first fault: the file's probes, or each group whole, Stable."""
        if (given := self.steady_state.probes) is not None:
            return given
        wanted = {"group.members": "all", "group.state": "Stable"}
        of_all = [
            {"name": "by default", "group": group.name, "probe": probe, "tolerance": value}
            for group in self.workload.groups
            for probe, value in wanted.items()
        ]
        return SteadyState.model_validate({"probes": of_all}).probes or ()

    @property
    def group_names(self) -> list[str]:
        """The names of all groups: those of real clients, and those of wire scripts."""
        return [*(group.name for group in self.workload.groups), *self.workload.wire_scripts]

    def members(self) -> tuple[MemberSpec, ...]:
        """Return every member, in the file's order."""
        return tuple(self.member_called.values())

    @cached_property
    def member_called(self) -> dict[str, MemberSpec]:
        """Every member by its name, in the file's order; each fault of a file asks for them."""
        return {spec.name: spec for of_group in self.members_by_group.values() for spec in of_group}

    @cached_property
    def members_by_group(self) -> dict[str, tuple[MemberSpec, ...]]:
        """The members of each group, in the file's order."""
        return {group.name: tuple(members_of(group)) for group in self.workload.groups}
