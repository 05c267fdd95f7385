"""The whole experiment: the root of the file."""

from typing import Any, Self

import yaml
from pydantic import model_validator
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from scenarios.checks import cross_checks
from scenarios.durations import format_ms
from scenarios.faults import AnyFault, Needs
from scenarios.fields import Items
from scenarios.overriding import override
from scenarios.problems import listed
from scenarios.setup import Setup


class Experiment(Setup):
    """One run: what runs, which faults are injected, and what must hold."""

    faults: Items[AnyFault] = ()
    """What is broken, and when."""

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
    def needs(self) -> set[Needs]:
        """What its faults need of the cluster."""
        return {fault.needs for fault in self.faults if fault.needs is not None}

    def dump(self) -> str:
        """Return YAML with every default filled in; loading it gives an equal experiment."""
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        # No `allow_unicode`: PyYAML then writes U+0085 bare and reads it back as a blank.
        return yaml.safe_dump(document, sort_keys=False, width=100)

    override = override


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
