"""Lines of logs whose release is not known: every grammar is tried, the newest first."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_protocol.coordinator_lines.grammar import Grammar
from kafka_protocol.coordinator_lines.parser import by_logger

PREFIX = re.compile(r"\[Group(?:Coordinator|MetadataManager) ")
"""How a line of any group coordinator begins that has a prefix, be the rest of it damaged."""


class KnownLine(NamedTuple):
    """A line that a group coordinator wrote.

    `broker` and `partition` are empty where its prefix does not name them; `template` is None if
    no grammar has it. `fields` are those of the template and of the reason in it. There `reason` is
    the reason's class, or its text if it is of none.
    """

    broker: str
    partition: str
    template: str | None
    fields: Mapping[str, str]
    message: str


class AnyRelease:
    """The grammars of one coordinator, ready to parse lines of any of its releases."""

    __slots__ = ("_grammars", "_loggers", "_newest", "_prefix")

    def __init__(self, grammars: Iterable[Grammar]) -> None:
        """Take the grammars of the coordinator, the newest first."""
        self._grammars = [(grammar, by_logger(grammar.templates)) for grammar in grammars]
        self._newest = self._grammars[0][0]
        self._prefix = re.compile(self._newest.prefix, re.ASCII)
        self._loggers = frozenset(name for _, matchers in self._grammars for name in matchers)

    def parsed(self, logger: str, body: str) -> KnownLine | None:
        """Parse the body of a line of a logger; None if it says nothing about groups.

        Loggers that other coordinators share (shares, transactions) name them in a prefix.
        """
        if logger in self._newest.irrelevant_loggers:
            return None
        head = self._prefix.match(body)
        broker, partition, message = head.groups(default="") if head else ("", "", "")
        if not broker and logger not in self._newest.loggers_without_prefix:
            named = logger in self._loggers and not body.startswith(_OF_OTHERS)
            return KnownLine("", "", None, {}, body) if named else None
        return KnownLine(broker, partition, *self._said(logger, message), message)

    def _said(self, logger: str, message: str) -> tuple[str | None, Mapping[str, str]]:
        """Return a message's template and fields, by the newest grammar that knows all of it."""
        first: tuple[str | None, Mapping[str, str]] = (None, {})
        for grammar, matchers in self._grammars:
            matcher = matchers.get(logger)
            found = matcher.match(message) if matcher else None
            if found is None:
                continue
            name, fields = found
            said = grammar.said(name, message)
            if "reason" not in fields or grammar.classed(fields["reason"]) is not None:
                return name, said
            if first[0] is None:
                first = name, said
        return first


_OF_OTHERS = ("[ShareCoordinator ", "[TransactionCoordinator ")
