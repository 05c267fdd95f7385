"""Parsing the coordinator's lines: the body of a log line in; template and fields out.

`LineParser` knows the release. `LineFinder` looks for a few lines alone, in logs of any release.
`AnyRelease` knows neither release nor coordinator, and need not be given the logger:

    any_release = AnyRelease(ALL_GRAMMARS)
    match = any_release.begins.search(text)
    known = any_release.parsed(None, text[match.start() :])
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka_protocol.coordinator_lines.grammar import Grammar, united
from kafka_protocol.coordinator_lines.template import Fields, Template, beginning_of

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

    __slots__ = ("_pattern", "_templates")

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
        template, fields = found
        return CoordinatorLine(message, partition, template.name, fields)


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
        found = matcher.match(match[1]) if match and matcher else None
        return (found[0].name, found[1]) if found else None


_OF_OTHERS = ("[ShareCoordinator ", "[TransactionCoordinator ")
PREFIX = re.compile(r"\[Group(?:Coordinator|MetadataManager| Metadata Manager on Broker) ")
"""How a line of any group coordinator begins that has a prefix, be the rest of it damaged."""


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
    """Grammars of one coordinator or more, ready to parse lines of any of their releases.

    `begins` finds where the body of such a line begins, whatever stands before it: at the prefix,
    or at the fixed words of a template that is written without one.
    """

    __slots__ = ("_bare", "_coordinators", "_irrelevant", "_loggers", "begins")

    def __init__(self, grammars: Iterable[Grammar]) -> None:
        """Take the grammars, the newest of a coordinator first."""
        of: dict[str, list[Grammar]] = {}
        for grammar in grammars:
            of.setdefault(grammar.coordinator, []).append(grammar)
        joined = [united(found) for found in of.values()]
        self._coordinators = [
            (re.compile(one.prefix, re.ASCII), one, Matcher(one.templates)) for one in joined
        ]
        bare = [(one, tuple(filter(one.is_bare, one.templates))) for one in joined]
        self._bare = [(one, Matcher(templates)) for one, templates in bare if templates]
        self._irrelevant = {_last(name) for one in joined for name in one.irrelevant_loggers}
        self._loggers = {_last(name) for one in joined for t in one.templates for name in t.loggers}
        beginnings = {beginning_of(t.text): None for _, templates in bare for t in templates}
        self.begins = re.compile("|".join((PREFIX.pattern, *beginnings)))

    def parsed(self, logger: str | None, body: str) -> KnownLine | None:
        """Parse the body of a line; None if it says nothing about groups.

        The logger is its name, or what a pattern such as `%c{1}` leaves of it, and None if the line
        does not name it: that is for lines which are of no template, and those without a prefix.
        Loggers that other coordinators share (shares, transactions) name them in a prefix.
        """
        name = _last(logger or "")
        if name in self._irrelevant:
            return None
        for prefix, grammar, matcher in self._coordinators:
            head = prefix.match(body)
            if head is not None and head[1]:
                broker, partition, message = head.groups(default="")
                return KnownLine(broker, partition, *_said(grammar, matcher, message), message)
        for grammar, matcher in self._bare:
            template, fields = _said(grammar, matcher, body)
            if template is not None:
                return KnownLine("", "", template, fields, body)
        ours = name in self._loggers and not body.startswith(_OF_OTHERS)
        return KnownLine("", "", None, NO_FIELDS, body) if ours else None


def _last(logger: str) -> str:
    return logger.rpartition(".")[2]


def _said(grammar: Grammar, matcher: Matcher, message: str) -> tuple[str | None, Mapping[str, str]]:
    """Return a message's template, and all that it says."""
    found = matcher.match(message)
    if found is None:
        return None, NO_FIELDS
    return found[0].name, grammar.fields(found[0], message)
