"""The lines a group coordinator writes, as tables of data.

In: the release and coordinator that wrote a log. Out: its grammar, and the lists of requests that
matter. It may know Kafka's wording, and nothing of how lines are read.
"""

from reports.grammar.form import Grammar, Template
from reports.grammar.java import JAVA
from reports.grammar.scala import SCALA
from reports.grammar.scala_2 import SCALA_2

GROUP_APIS = ("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT")
"""The requests that go through the oracle."""
KIP_848_APIS = ("CONSUMER_GROUP_HEARTBEAT",)
"""Requests of the other protocol: a group that sends one is beyond the oracle."""

GRAMMARS = {grammar.coordinator: grammar for grammar in (JAVA, SCALA)}
"""The grammars by coordinator, as `environment.json` names it."""


def grammar_of(version: str, coordinator: str) -> Grammar:
    """Return the grammar of a release such as `3.9.1`; KeyError without such a coordinator."""
    if coordinator == SCALA_2.coordinator and version.startswith("2."):
        return SCALA_2
    return GRAMMARS[coordinator]


__all__ = ["GRAMMARS", "GROUP_APIS", "KIP_848_APIS", "Grammar", "Template", "grammar_of"]
