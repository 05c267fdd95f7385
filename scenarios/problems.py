"""Problems of an experiment, as one line each: the key, what is wrong, what to do.

Pydantic validates the shape of a file; this module turns its errors into such lines.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
"""Where something stands: keys and list indices from the root."""

NO_KEY = "[value]"
"""The tag of a form of a union that is one value, without keys."""

_LONGEST_SHOWN = 40
_MOST_LISTED = 16
_MOST_SHOWN = 20


class ScenarioError(Exception):
    """An experiment that cannot be used; `args` are the lines, one for each problem."""

    def __str__(self) -> str:
        return "\n".join(self.args)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, at one place, and what to do about it.

    A text that takes long to make is made when it is shown: most of very many never are.
    """

    path: Path
    text: str | Callable[[], str]

    def __str__(self) -> str:
        """Return it as one line, also if a key has line breaks."""
        dotted = ".".join(map(str, self.path))
        text = self.text if isinstance(self.text, str) else self.text()
        return " ".join((f"{dotted}: {text}" if dotted else text).split())


def listed(problems: Sequence[Problem], line: Callable[[Problem], str] = str) -> list[str]:
    """Return the first problems, a line for each, and how many there are beyond."""
    lines = [line(problem) for problem in problems[:_MOST_SHOWN]]
    if beyond := len(problems) - len(lines):
        lines.append(f"and {beyond:,} more")
    return lines


def nearest(word: object, known: Iterable[str]) -> str:
    """Return the advice for a word that is not one of `known`: the closest of them, or all."""
    options = list(known)
    if close := difflib.get_close_matches(str(word), options[:1_000], n=1, cutoff=0.5):
        return f"did you mean '{close[0]}'?"
    if len(options) > _MOST_LISTED:
        options = [*options[:_MOST_LISTED], "..."]
    return f"choose from {', '.join(options)}" if options else "there is none to choose from"


def shown(value: object) -> str:
    """Return a value as a message quotes it: short, and never a whole document."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def found_in(error: "ValidationError", root: "type[BaseModel]") -> Iterator[Problem]:
    """Yield the problems behind a failed validation of `root`, in the model's order."""
    for detail in error.errors(include_url=False):
        if detail["type"] == "cross_checks":
            yield from detail["ctx"]["problems"]
            continue
        if detail["type"] == "too_short" and detail["input"]:
            continue  # not empty: none of its items is valid, which is reported already
        path, known = _place(root, detail["loc"])
        if detail["type"].startswith("union_tag"):  # the key that selects the form is wrong
            path = (*path, detail["ctx"]["discriminator"].strip("'"))
        yield Problem(path, partial(_sentence, detail, known))


_SENTENCES = {
    "missing": "missing; add it",
    "union_tag_not_found": "missing; add it",
    "target_form": "{msg}",
    "too_short": "is empty; give at least one",
    "too_long": "is too long; give {max_length} or fewer",
    "greater_than": "{value} is too small; write more than {gt:g}",
    "greater_than_equal": "{value} is too small; write {ge} or more",
    "less_than_equal": "{value} is too large; write {le:.15g} or less",
    "finite_number": "{value} is not finite; write a number",
    "string_type": "{value} is not text; write text (quotes turn numbers and dates into text)",
    "int_type": "{value} is not a whole number; write one",
    "float_type": "{value} is not a number; write one",
    "bool_type": "{value} is neither true nor false; write one of them",
    "tuple_type": "{value} is not a list; write a list",
    "dict_type": "{value} is not a mapping; write keys with values",
    "model_type": "{value} is not a mapping; write keys with values",
    "model_attributes_type": "{value} is not a mapping; write keys with values",
}


def _sentence(detail: "ErrorDetails", known: list[str]) -> str:
    value, context = detail["input"], detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden" | "invalid_key":
            return f"unknown key; {nearest(detail['loc'][-1], known)}"
        case "literal_error":
            return f"{shown(value)} is not known; {nearest(value, _quoted(context['expected']))}"
        case "union_tag_invalid":
            tag, tags = context["tag"], _quoted(context["expected_tags"])
            return f"{shown(tag)} is not known; {nearest(tag, tags)}"
        case "value_error":
            return str(context["error"])
    sentence = _SENTENCES.get(detail["type"], "{value} is not allowed ({msg}); change it")
    return sentence.format(**{**context, "value": shown(value), "msg": detail["msg"]})


def _quoted(text: str) -> list[str]:
    """Return the options that the validator lists as text: `'a', 'b' or 'c'`."""
    return re.findall("'([^']*)'", text)


def _place(root: "type[BaseModel]", loc: Path) -> tuple[Path, list[str]]:
    """Return where in the file `loc` is, and which keys its parent knows.

    The validator's locations also contain the form of a union, by the value of its discriminator or
    the name of its definition. The file does not; the schema distinguishes them from keys.
    """
    # the key itself is what is wrong, or its value
    loc = tuple(part for part in loc if part not in ("[key]", NO_KEY))
    schema = _schema(root)
    definitions = schema["$defs"]

    def resolved(node: dict[str, Any]) -> dict[str, Any]:
        forms = [form for form in node.get("anyOf", [node]) if form.get("type") != "null"]
        node = forms[-1]  # the form that can hold keys is written last
        return definitions[node["$ref"].rpartition("/")[2]] if "$ref" in node else node

    node: dict[str, Any] = schema
    path: list[str | int] = []
    for part in loc[:-1]:
        node = resolved(node)
        forms = node.get("discriminator", {}).get("mapping", {})
        if part in forms:
            node = {"$ref": forms[part]}
        elif part in definitions:
            node = definitions[part]
        else:
            path.append(part)
            inside = node.get("properties", {}).get(part, {})
            node = node.get("items", {}) if isinstance(part, int) else inside
    return (*path, *loc[-1:]), list(resolved(node).get("properties", {}))


@cache
def _schema(root: "type[BaseModel]") -> dict[str, Any]:
    return root.model_json_schema()


def unknown(what: str, name: str, known: Collection[str], path: Path) -> Iterator[Problem]:
    """Yield a problem if a name is none of those that are known."""
    if name not in known:
        yield Problem(path, lambda: f"there is no {what} {shown(name)}; {nearest(name, known)}")
