"""Parsing the coordinator's lines: the body of a log line in; template and fields out.

`LineParser` knows the release. `AnyRelease` does not, nor the logger: it tries every grammar of a
coordinator. `LineFinder` looks for a few lines alone, in logs of any coordinator.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka_protocol.coordinator_lines.grammar import Grammar, united
from kafka_protocol.coordinator_lines.template import Fields, Template

NO_FIELDS: Mapping[str, str] = {}


class CoordinatorLine(NamedTuple):
    """A parsed line.

    `message` is what follows the prefix, and empty if the line is not its broker's. `partition` is
    the offsets partition in the prefix, or empty. `template` is None if none matches the message.
    """

    message: str
    partition: str
    template: str | None
    fields: Mapping[str, str]


class Matcher:
    """Finds the template of a message: one pattern of all, so that C makes the choice."""

    def __init__(self, templates: Iterable[Template]) -> None:
        """Take templates; the first counts of those that match the same message."""
        numbered = {f"t{place}": template for place, template in enumerate(templates)}
        choices = (f"(?P<{key}>{template.regex})" for key, template in numbered.items())
        self._pattern = re.compile("|".join(choices), re.ASCII)
        self._templates = numbered

    def match(self, message: str) -> tuple[Template, Fields] | None:
        """Return a message's template, and the fields that it reports; None if it is of none."""
        match = self._pattern.match(message)
        if match is None or match.lastgroup is None or match.lastindex is None:
            return None
        template = self._templates[match.lastgroup]
        groups = match.groups(default="")[match.lastindex :]
        return template, dict(zip(template.fields, groups, strict=False))


def by_logger(templates: Sequence[Template]) -> dict[str, Matcher]:
    """Return a matcher for each logger that writes one of these templates."""
    loggers = {logger for template in templates for logger in template.loggers}
    return {
        logger: Matcher(template for template in templates if logger in template.loggers)
        for logger in loggers
    }


class LineParser:
    """A grammar, ready to parse lines one after the other."""

    def __init__(self, grammar: Grammar) -> None:
        """Compile the grammar."""
        self._prefix = re.compile(grammar.prefix, re.ASCII)
        self._matchers = by_logger(grammar.templates)
        self._without_prefix = frozenset(grammar.loggers_without_prefix)

    def parsed(self, broker: str, logger: str, body: str) -> CoordinatorLine:
        """Parse the body of a line that a logger of this broker (id) wrote."""
        head = self._prefix.match(body)
        named, partition, message = head.groups(default="") if head else ("", "", "")
        if named != broker and (named or logger not in self._without_prefix):
            return CoordinatorLine("", partition, None, NO_FIELDS)
        matcher = self._matchers.get(logger)
        found = matcher.match(message) if matcher else None
        if found is None:
            return CoordinatorLine(message, partition, None, NO_FIELDS)
        template, fields = found
        return CoordinatorLine(message, partition, template.name, fields)


_LINE = re.compile(r".*\[Group(?:Coordinator|MetadataManager)[^\]]*\]:? (.*) \(([^()\s]+)\)$")
"""A whole line of `group.log`, from its last prefix on: a killed broker leaves half a line, and its
successor goes on behind it."""


class LineFinder:
    """Finds the lines of some templates in logs of any release."""

    def __init__(self, grammars: Iterable[Grammar], names: Sequence[str]) -> None:
        """Take the names of templates of lines that have a prefix."""
        templates = (t for grammar in grammars for t in grammar.templates if t.name in names)
        self._matchers = by_logger(tuple(dict.fromkeys(templates)))

    def find(self, line: str) -> tuple[str, Fields] | None:
        """Return the template's name and the fields of a whole line; None if it is no such line."""
        match = _LINE.match(line)
        matcher = self._matchers.get(match[2]) if match else None
        found = matcher.match(match[1]) if match and matcher else None
        return (found[0].name, found[1]) if found else None


OF_OTHERS = ("[ShareCoordinator ", "[TransactionCoordinator ")
"""How lines of other coordinators begin, also of loggers that they share with the group's."""
PREFIX = re.compile(r"\[Group(?:Coordinator|MetadataManager| Metadata Manager on Broker) ")
"""How a line of any group coordinator begins that has a prefix, be the rest of it damaged."""
PREPARING = "Preparing to re"
"""How the message of every release begins that says that a rebalance begins."""


class KnownLine(NamedTuple):
    """A line that a group coordinator wrote.

    `broker` and `partition` are empty where its prefix does not name them; `template` is None if
    no grammar has it. `fields` are those that `Grammar.fields` returns.
    """

    broker: str
    partition: str
    template: str | None
    fields: Mapping[str, str]
    message: str


class AnyRelease:
    """The grammars of one coordinator, ready to parse lines of any of its releases.

    A message is that of the newest grammar that has it, whichever logger it is of.
    """

    def __init__(self, grammars: Sequence[Grammar]) -> None:
        """Take the grammars of the coordinator, the newest first."""
        self._grammar = united(grammars)
        self._matcher = Matcher(self._grammar.templates)
        self._prefix = re.compile(self._grammar.prefix, re.ASCII)

    def begins(self, body: str) -> bool:
        """Tell whether a body has the coordinator's prefix, with a broker."""
        head = self._prefix.match(body)
        return head is not None and bool(head[1])

    def parsed(self, body: str) -> KnownLine:
        """Parse the body of a coordinator's line, with its prefix if its logger writes one."""
        head = self._prefix.match(body)
        broker, partition, message = head.groups(default="") if head else ("", "", body)
        found = self._matcher.match(message)
        if found is None:
            return KnownLine(broker, partition, None, NO_FIELDS, message)
        fields = self._grammar.fields(found[0], message)
        return KnownLine(broker, partition, found[0].name, fields, message)
