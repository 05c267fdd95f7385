"""The lines a group coordinator writes, as tables of data.

In: the release and coordinator that wrote a log. Out: its grammar.
It may know Kafka's wording, and nothing of how lines are read.
"""

from kafka_protocol.coordinator_lines.grammar import Grammar, Template
from kafka_protocol.coordinator_lines.java import JAVA
from kafka_protocol.coordinator_lines.scala import SCALA
from kafka_protocol.coordinator_lines.scala_2_4 import SCALA_2_4, SCALA_2_5, SCALA_2_7
from kafka_protocol.coordinator_lines.scala_2_8 import SCALA_2

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


__all__ = ["GRAMMARS", "Grammar", "Template", "grammar_of"]
