"""The lines that a group coordinator writes, as templates that are parsed and printed.

Input: the release and coordinator that wrote a log. Output: its grammar.
`java` and `scala` hold the newest lines, `scala_2_8` and `scala_2_4` what earlier releases word
otherwise; `template` explains the form of a template, `parser` parses lines.
"""

from kafka_protocol.coordinator_lines.grammar import Grammar
from kafka_protocol.coordinator_lines.java import JAVA
from kafka_protocol.coordinator_lines.parser import LineFinder, LineParser
from kafka_protocol.coordinator_lines.scala import SCALA
from kafka_protocol.coordinator_lines.scala_2_4 import SCALA_2_4, SCALA_2_5, SCALA_2_7
from kafka_protocol.coordinator_lines.scala_2_8 import SCALA_2
from kafka_protocol.coordinator_lines.template import Reason, Template

GRAMMARS = {grammar.coordinator: grammar for grammar in (JAVA, SCALA)}
"""The grammars by coordinator, as `environment.json` names it."""


_SCALA_BEFORE_3 = {
    "2.4.": SCALA_2_4, "2.5.": SCALA_2_5, "2.6.0": SCALA_2_5, "2.6.": SCALA_2_7, "2.7.": SCALA_2_7,
    "2.": SCALA_2,
}  # fmt: skip
"""By how a release begins; the first counts."""


def grammar_of(version: str, coordinator: str) -> Grammar:
    """Return the grammar of a release such as `3.9.1`; KeyError without such a coordinator."""
    newest = GRAMMARS[coordinator]
    if newest is not SCALA:
        return newest
    of = (grammar for begin, grammar in _SCALA_BEFORE_3.items() if version.startswith(begin))
    return next(of, SCALA)


ALL_GRAMMARS = (JAVA, SCALA, SCALA_2, SCALA_2_7, SCALA_2_5, SCALA_2_4)
"""The newest first."""


def finder_of(*names: str) -> LineFinder:
    """Return what finds the lines of these templates in logs of any release. Raises KeyError."""
    for name in names:
        for grammar in GRAMMARS.values():
            grammar.template(name)
    return LineFinder(ALL_GRAMMARS, names)


__all__ = [
    "ALL_GRAMMARS", "GRAMMARS", "JAVA", "SCALA", "Grammar", "LineFinder", "LineParser",
    "Reason", "Template", "finder_of", "grammar_of",
]  # fmt: skip
