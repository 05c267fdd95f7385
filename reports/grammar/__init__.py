"""The lines a group coordinator writes, as tables of data.

In: the coordinator that wrote a log. Out: its grammar, and the lists of requests that matter.
It may know Kafka's wording, and nothing of how lines are read.
"""

from reports.grammar.form import Grammar, Template
from reports.grammar.java import JAVA
from reports.grammar.scala import SCALA

GROUP_APIS = ("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT")
"""The requests that go through the oracle."""
KIP_848_APIS = ("CONSUMER_GROUP_HEARTBEAT",)
"""Requests of the other protocol: a group that sends one is beyond the oracle."""

GRAMMARS = {grammar.coordinator: grammar for grammar in (JAVA, SCALA)}
"""The grammars by coordinator, as `environment.json` names it."""

__all__ = ["GRAMMARS", "GROUP_APIS", "KIP_848_APIS", "Grammar", "Template"]
