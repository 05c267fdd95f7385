"""Parsing the coordinator's lines: the body of a log line in; template and fields out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka_protocol.coordinator_lines.grammar import Grammar
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

    __slots__ = ("_fields", "_pattern")

    def __init__(self, templates: Iterable[Template]) -> None:
        """Take templates; the first counts of those that match the same message."""
        numbered = {f"t{place}": template for place, template in enumerate(templates)}
        choices = (f"(?P<{key}>{template.regex})" for key, template in numbered.items())
        self._pattern = re.compile("|".join(choices), re.ASCII)
        self._fields = {key: (t.name, t.fields) for key, t in numbered.items()}

    def match(self, message: str) -> tuple[str, Fields] | None:
        """Return the name of a message's template, and its fields; None if it is of none."""
        match = self._pattern.match(message)
        if match is None or match.lastgroup is None or match.lastindex is None:
            return None
        name, fields = self._fields[match.lastgroup]
        groups = match.groups(default="")[match.lastindex :]
        return name, dict(zip(fields, groups, strict=False))


def by_logger(templates: Sequence[Template]) -> dict[str, Matcher]:
    """Return a matcher for each logger that writes one of these templates."""
    loggers = {logger for template in templates for logger in template.loggers}
    return {
        logger: Matcher(template for template in templates if logger in template.loggers)
        for logger in loggers
    }


class LineParser:
    """A grammar, ready to parse lines one after the other."""

    __slots__ = ("_matchers", "_prefix", "_without_prefix")

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
        return CoordinatorLine(message, partition, *found)


_LINE = re.compile(r".*\[Group(?:Coordinator|MetadataManager)[^\]]*\]:? (.*) \(([^()\s]+)\)$")
"""A whole line of `group.log`, from its last prefix on: a killed broker leaves half a line, and its
successor goes on behind it."""


class LineFinder:
    """Finds the lines of some templates in logs of any release."""

    __slots__ = ("_matchers",)

    def __init__(self, grammars: Iterable[Grammar], names: Sequence[str]) -> None:
        """Take the names of templates of lines that have a prefix."""
        templates = (t for grammar in grammars for t in grammar.templates if t.name in names)
        self._matchers = by_logger(tuple(dict.fromkeys(templates)))

    def find(self, line: str) -> tuple[str, Fields] | None:
        """Return the template's name and the fields of a whole line; None if it is no such line."""
        match = _LINE.match(line)
        matcher = self._matchers.get(match[2]) if match else None
        return matcher.match(match[1]) if match and matcher else None
