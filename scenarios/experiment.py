"""The whole experiment: the root of the file."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, Self

import yaml
from pydantic import model_validator
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from kafka_protocol.releases import number
from scenarios import overriding
from scenarios.checks import cross_checks
from scenarios.durations import format_ms
from scenarios.faults import Fault, NetFault
from scenarios.fields import Items, Name, Part
from scenarios.members import MemberSpec, members_of
from scenarios.model import (
    Cluster,
    Expectation,
    Expected,
    ExpectedVerdict,
    Ownership,
    Phases,
    Probe,
    SteadyState,
    Workload,
)
from scenarios.problems import listed
from scenarios.releases import Coordinator, default_coordinator


class Experiment(Part):
    """One run: what runs, which faults are injected, and what must hold."""

    name: Name
    description: str = ""
    tags: Items[str] = ()
    judge: Literal["release", "kip-345"] = "release"
    """The rules that the brokers are judged by: those of their release, or those of KIP-345."""
    cluster: Cluster = Cluster()
    workload: Workload
    steady_state: SteadyState = SteadyState()
    faults: Items[Fault] = ()
    phases: Phases
    expect: Items[Expected] = ()
    verdicts: Items[ExpectedVerdict] = ()
    """Expected verdicts by release, oldest first, where the experiment shows a known defect."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if problems := tuple(cross_checks(self)):
            raise PydanticCustomError(
                "cross_checks",
                "{summary}",
                {"summary": "\n".join(listed(problems)), "problems": problems},
            )
        return self

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
    def group_names(self) -> list[str]:
        """The names of all groups: those of real clients, and those of wire scripts."""
        return [*(group.name for group in self.workload.groups), *self.workload.wire_scripts]

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
    def needs_tap(self) -> bool:
        """Whether a fault on the wire is in the file, which the tap has to carry out."""
        return any(isinstance(fault, NetFault) for fault in self.faults)

    @property
    def needs_containers(self) -> bool:
        """Whether a fault of the network between brokers, or of their clocks, is in the file."""
        return any(fault.about.in_containers for fault in self.faults)

    def members(self) -> tuple[MemberSpec, ...]:
        """Return every member, in the file's order."""
        return tuple(self.member_called.values())

    @cached_property
    def member_called(self) -> dict[str, MemberSpec]:
        """Every member by its name, in the file's order; each fault of a file asks for them."""
        groups = self.workload.groups
        return {spec.name: spec for group in groups for spec in members_of(group)}

    def dump(self) -> str:
        """Return YAML with every default filled in; loading it gives an equal experiment."""
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        # No `allow_unicode`: PyYAML then writes U+0085 bare and reads it back as a blank.
        return yaml.safe_dump(document, sort_keys=False, width=100)

    def override(self, assignments: Sequence[str]) -> "Experiment":
        """Return a copy changed by assignments such as `workload.groups.0.session_timeout=8s`.

        See `overriding` for how they are read. Raises ScenarioError naming the assignment.
        """
        return overriding.override(self, assignments)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an experiment file, for editors.

    The cross-checks of `scenarios.checks` are not in it.
    """
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    return dialect | Experiment.model_json_schema(schema_generator=_AsWritten)


class _AsWritten(GenerateJsonSchema):
    """Writes defaults of durations as a file spells them."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        if found.get("type") == "string" and isinstance(found.get("default"), int):
            found["default"] = format_ms(found["default"])
        return found
