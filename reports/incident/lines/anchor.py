"""Where a coordinator's message stands: a line in; what is before it, it, and its logger, out.

A message is recognised by the coordinator's prefix, or by how a template begins that some loggers
write without one. A logger stands behind it in parentheses, before it, or in a field of JSON; its
name is whole, abbreviated (`o.a.k.c.g.GroupMetadataManager`) or its last part, with or without the
number of a source line.
"""

import re
from typing import NamedTuple

from kafka_protocol.coordinator_lines import ALL_GRAMMARS, OF_COORDINATORS
from kafka_protocol.coordinator_lines.parser import OF_OTHERS, PREFIX, AnyRelease, KnownLine
from kafka_protocol.coordinator_lines.template import parts_of

_short = lambda names: {name.rpartition(".")[2] for name in names}
_LOGGERS = _short(
    logger for one in ALL_GRAMMARS for template in one.templates for logger in template.loggers
)
_IRRELEVANT = _short(name for one in ALL_GRAMMARS for name in one.irrelevant_loggers) - _LOGGERS
_BEGINS = {
    part.before
    for grammar in ALL_GRAMMARS
    for template in grammar.templates
    if set(template.loggers) <= set(grammar.loggers_without_prefix)
    for part in parts_of(template.text)[0][:1]
}
ANCHOR = re.compile("|".join([PREFIX.pattern, *map(re.escape, sorted(_BEGINS))]))
_SHORT = "|".join(map(re.escape, sorted(_LOGGERS | _IRRELEVANT, reverse=True)))
_NAME = rf"((?:[\w$]+\.)*(?:{_SHORT}))(?::(?:\d+|\?))?"
_BEHIND = re.compile(rf" ?\({_NAME}\)", re.ASCII)
_BEFORE = re.compile(rf"(?<![\w.$]){_NAME}(?![\w.$])", re.ASCII)
_NAMES_LINE = re.compile(rf'(?<![\w.$])(?=[\w$]+[.:]){_NAME}(?: \w+)?(?: [-:]+ |"|\] )', re.ASCII)
_JAVA, _SCALA = map(AnyRelease, OF_COORDINATORS.values())
_TRACE = re.compile(r"\s*(?:at |\.\.\. \d+ more|Caused by: )")


class Anchored(NamedTuple):
    """A line, divided at its message, which is empty where only the logger shows whose it is.

    `logger` is empty where the line does not name it. `after` is what follows message and logger.
    """

    before: str
    message: str
    logger: str
    after: str


def hinted(text: str) -> bool:
    """Tell, at no cost, whether a text may have a line of a coordinator, wrapped or not."""
    return "Group" in text or "coordinator." in text or "member.id" in text or "MemberMet" in text


def anchored(text: str, tail: re.Pattern[str] | None) -> Anchored | None:
    """Divide a line; None if no group coordinator wrote it. `tail` is what ends lines of its file.

    Only a line without a logger behind its message is cut at the tail.
    """
    begin = ANCHOR.search(text)
    if begin is None:
        named = _BEHIND.search(text) or _NAMES_LINE.search(text)
        ours = named and not _TRACE.match(text) and not any(name in text for name in OF_OTHERS)
        return Anchored(text[: named.start()], "", named[1], "") if named and ours else None
    before, rest = text[: begin.start()], text[begin.start() :]
    if behind := [*_BEHIND.finditer(rest)]:
        end, start = behind[-1].end(), behind[-1].start()
        return Anchored(before, rest[:start].rstrip(), behind[-1][1], rest[end:])
    names = [match[1] for match in _BEFORE.finditer(before)]
    cut = tail.search(rest) if tail else None
    message, after = (rest[: cut.start()], cut[0]) if cut else (rest, "")
    return Anchored(before, message, names[-1] if names else "", after)


def is_irrelevant(logger: str) -> bool:
    """Tell whether a logger, by its name in whatever length, says nothing about groups."""
    return logger.rpartition(".")[2] in _IRRELEVANT


def known_line(message: str) -> KnownLine:
    """Parse a message that a coordinator of any release wrote."""
    return (_JAVA if _JAVA.begins(message) else _SCALA).parsed(message)
