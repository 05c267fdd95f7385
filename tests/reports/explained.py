"""Whether the rules explain a group."""

from collections.abc import Iterable

from reports.judgement.recording import Row
from reports.judgement.run_context import RunContext
from tests.reports.alter import compared


def explains(judge: RunContext, group: str, rows: Iterable[Row]) -> bool:
    """Tell whether the rules explain all of a group: responses, rebalances and lines."""
    return all(
        name == "comparison" and row["outcome"] == "match"
        for name, row in compared(judge, group, list(rows))
    )
