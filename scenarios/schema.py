"""The JSON Schema of an experiment file, for editors."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from scenarios.durations import format_ms
from scenarios.experiment import Experiment


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an experiment file.

    What takes two parts to tell (`checks`) is not in it.
    """
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    return dialect | Experiment.model_json_schema(schema_generator=_AsWritten)


class _AsWritten(GenerateJsonSchema):
    """Shows the defaults of durations as a file would spell them."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        if found.get("type") == "string" and isinstance(found.get("default"), int):
            found["default"] = format_ms(found["default"])
        return found
