"""A line that a coordinator writes, as one text that is both printed and parsed.

The text is the line's, with its fields in braces:

    Group {group} with generation {generation:count} is now empty.
    Member {member} has left group {group}{*end: request|; client reason: …}

`{group}` is a field; what follows a colon is its kind (`KINDS`), or a choice of texts between bars,
in which `…` stands for anything. `{*end}` is matched and printed, and not reported.
The pattern and the list of fields are derived from the text, and `printed` fills it in.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from string import Formatter
from typing import NamedTuple

KINDS: Mapping[str, str] = {
    "text": ".+",
    "shortest": ".+?",
    "any": ".*",
    "count": r"\d+",
    "int": r"-?\d+",
    "word": r"\w+",
    "dashed": r"[\w-]+",
    "cause": "(?!EventProcessor is).*",
}
"""The kinds of fields, as patterns: without one a field is a text of one character or more."""

CLIENT_REASON = "; client reason: "
"""What stands before the reason that a client gives (KIP-800, from 3.2 on)."""

Fields = dict[str, str]


class Part(NamedTuple):
    """A field of a template's text, the words before it, and its choices if it is a choice."""

    before: str
    name: str
    pattern: str
    reported: bool
    choices: tuple[str, ...] = ()


def _chosen(choices: Sequence[str]) -> str:
    return "|".join(re.escape(choice).replace("…", ".*") for choice in choices)


@cache
def parts_of(text: str) -> tuple[tuple[Part, ...], str]:
    """Split a template's text at its fields; return the parts, and the text after the last."""
    parts: list[Part] = []
    for before, field_name, kind, _ in Formatter().parse(text):
        if field_name is None:
            return tuple(parts), before
        name = field_name.removeprefix("*")
        choices = tuple(kind.split("|")) if kind and "|" in kind else ()
        pattern = f"(?:{_chosen(choices)})" if choices else KINDS[kind or "text"]
        parts.append(Part(before, name, pattern, name == field_name, choices))
    return tuple(parts), ""


def pattern_of(text: str) -> str:
    """Return the regular expression of a template's text; its groups are the fields in order."""
    return _joined(text, lambda part: f"({part.pattern})" if part.reported else part.pattern)


@cache
def _with_all_fields(text: str) -> re.Pattern[str]:
    """Return the pattern of a template's text; its groups are all fields, by their names."""
    return re.compile(_joined(text, lambda part: f"(?P<{part.name}>{part.pattern})"), re.ASCII)


def _joined(text: str, pattern: Callable[[Part], str]) -> str:
    parts, end = parts_of(text)
    return "".join(re.escape(part.before) + pattern(part) for part in parts) + re.escape(end)


def printed(text: str, values: Mapping[str, object]) -> str:
    """Fill in a template's text; a choice that is not given is printed as its first.

    Line ends in values are escaped, as log4j 2 does (`%enc{CRLF}`).

    Raises KeyError for a field that is not given, ValueError for a value that is not of its kind.
    """
    parts, end = parts_of(text)
    return "".join(part.before + _value(part, values) for part in parts) + end


def _value(part: Part, values: Mapping[str, object]) -> str:
    if part.name not in values and part.choices and "…" not in part.choices[0]:
        return part.choices[0]
    value = str(values[part.name]).replace("\r", "\\r").replace("\n", "\\n")
    if re.fullmatch(part.pattern, value, re.ASCII) is None:
        raise ValueError(f"{part.name} cannot be {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class Template:
    """One line; messages are matched whole. `regex` has a group for each of `fields`."""

    name: str
    loggers: tuple[str, ...]
    text: str
    regex: str = field(init=False)
    fields: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", f"^{pattern_of(self.text)}$")
        reported = (part.name for part in parts_of(self.text)[0] if part.reported)
        object.__setattr__(self, "fields", tuple(reported))

    def values(self, message: str) -> Fields:
        """Return all fields of a message of this template, those too that are not reported."""
        match = _with_all_fields(self.text).fullmatch(message)
        return match.groupdict() if match else {}

    def printed(self, values: Mapping[str, object]) -> str:
        """Return the line with these values. Raises as `printed` does."""
        return printed(self.text, values)


@dataclass(frozen=True, slots=True)
class Reason:
    """A class of the reasons in "Preparing to rebalance" lines; its field is the member it names.

    Any text may follow: from 3.2 on, the client's own reason (KIP-800).
    """

    name: str
    text: str
    regex: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", f"^{pattern_of(self.text)}")

    def values(self, reason: str) -> Fields:
        """Return all fields of a reason, with the client's own as `client_reason` if it has one."""
        text, _, given = reason.partition(CLIENT_REASON)
        match = _with_all_fields(self.text).match(text)
        found = match.groupdict() if match else {}
        return found | {"client_reason": given} if given else found

    def printed(self, values: Mapping[str, object]) -> str:
        """Return the reason with these values. Raises as `printed` does."""
        return printed(self.text, values)
