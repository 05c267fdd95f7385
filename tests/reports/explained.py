"""Whether the rules explain a group."""

from collections.abc import Iterable

from reports.judgement.group import Judge
from reports.judgement.logged import LoggedRow


def explains(judge: Judge, group: str, rows: Iterable[LoggedRow]) -> bool:
    """Tell whether the rules explain all of a group: responses, rebalances and lines."""
    return all(
        name == "comparison" and row["outcome"] == "match"
        for name, row in judge.differences(group, rows)
    )
