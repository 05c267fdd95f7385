"""The lines that a group coordinator writes, as templates that are parsed and printed.

Input: the release and coordinator that wrote a log. Output: its grammar.
`java.toml` and `scala.toml` hold the newest lines; those with a release in their names what earlier
ones word otherwise; `*-others.toml` what is read in logs of any release alone. `template` explains
the form of a template, `parser` parses lines.
"""

from kafka_protocol.coordinator_lines.grammar import Grammar, read
from kafka_protocol.coordinator_lines.parser import LineFinder, LineParser
from kafka_protocol.coordinator_lines.template import Reason, Template

JAVA, SCALA = read("java"), read("scala")
GRAMMARS = {grammar.coordinator: grammar for grammar in (JAVA, SCALA)}
"""The grammars by coordinator, as `environment.json` names it."""
_SCALA_BEFORE_3 = {
    "2.4.": "scala-2.4", "2.5.": "scala-2.5", "2.6.0": "scala-2.5", "2.6.": "scala-2.7",
    "2.7.": "scala-2.7", "2.": "scala-2.8",
}  # fmt: skip
"""By how a release begins; the first counts."""


OPERATIONS = {
    "JOIN_GROUP": ("join-group",),
    "SYNC_GROUP": ("sync-group",),
    "HEARTBEAT": ("heartbeat",),
    "LEAVE_GROUP": ("leave-group",),
    # Scala until 2.6 and later; Java calls every commit so
    "OFFSET_COMMIT": ("commit-offsets", "offset-commit", "txn-offset-commit"),
}
"""What lines call the APIs; seen on 2.6.0, 3.9.1 and 4.3.0."""


def grammar_of(version: str, coordinator: str) -> Grammar:
    """Return the grammar of a release such as `3.9.1`; KeyError without such a coordinator."""
    newest = GRAMMARS[coordinator]
    if newest is not SCALA:
        return newest
    of = (name for begin, name in _SCALA_BEFORE_3.items() if version.startswith(begin))
    return read(next(of, "scala"))


OF_RUNS = (JAVA, SCALA, *map(read, sorted(set(_SCALA_BEFORE_3.values()), reverse=True)))
"""The grammars of releases that runs may have, the newest of a coordinator first."""
_OF_OLD = ("scala-2.3", "scala-2.2", "scala-2.0", "scala-0.10", "scala-others")
OF_COORDINATORS = {
    "java": (JAVA, read("java-3.8"), read("java-others")),
    "scala": (*OF_RUNS[1:], *map(read, _OF_OLD)),
}
"""All grammars by coordinator, the newest first: those too that are for logs of any release."""
ALL_GRAMMARS = tuple(grammar for found in OF_COORDINATORS.values() for grammar in found)


def finder_of(*names: str) -> LineFinder:
    """Return what finds the lines of these templates in logs of any release. Raises KeyError."""
    for name in names:
        for grammar in GRAMMARS.values():
            grammar.template(name)
    return LineFinder(ALL_GRAMMARS, names)


__all__ = [
    "ALL_GRAMMARS", "GRAMMARS", "JAVA", "OF_COORDINATORS", "OF_RUNS", "OPERATIONS", "SCALA",
    "Grammar", "LineFinder", "LineParser", "Reason", "Template", "finder_of", "grammar_of",
]  # fmt: skip
