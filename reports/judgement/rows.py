"""The types of rows and of JSON."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
"""A row of a table, or an object of `verdict.json`."""
Row = Mapping[str, Any]
"""The same, which is only read."""
