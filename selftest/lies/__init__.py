"""Lies in recorded runs: one answer, line or time changed, as a broker that is wrong would.

A mutant breaks a rule and writes what follows from it. A lie changes one place and nothing else, to
claim a freedom that Kafka leaves open further than it goes (`docs/trust.md`).
In: the lines of a group in a recorded run. Out: those lines with the lie. It does not use Spark.
"""

from collections.abc import Mapping

from selftest.lies import answers, lines
from selftest.lies.group_lines import GroupLines, Lie

LIES: Mapping[str, Lie] = {
    lie.name: lie
    for part in (answers.refusals, lines.lines, lines.held, answers.fetches, lines.fenced_lines)
    for lie in part()
}
"""All lies by their names."""

__all__ = ["LIES", "GroupLines", "Lie"]
