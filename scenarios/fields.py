"""Types of the keys of an experiment: the base of every part, names, numbers.

Python names of durations end in `_ms` and hold whole milliseconds; their YAML keys have no unit,
since the value carries one (`session_timeout: 10s` is `session_timeout_ms == 10_000`).
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from scenarios.problems import shown
from scenarios.releases import VERSION, line_of


def matching(pattern: str, advice: str, wrong: str = "is not allowed") -> AfterValidator:
    """Check text against a pattern.

    Of a value that does not match, the error says what is `wrong`, and as `advice` what matches.
    """

    def check(value: str) -> str:
        if re.fullmatch(pattern, value):
            return value
        raise ValueError(f"{shown(value)} {wrong}; {advice}")

    return AfterValidator(check)


def _supported(version: str) -> str:
    line_of(version)
    return version


# What Kafka allows in topic names and instance ids. The first character is a letter or digit, since
# names become folders and arguments: this excludes `.`, `..` and options.
_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
_INSTANCE_ID = r"([A-Za-z0-9]|\{n\})([A-Za-z0-9._-]|\{n\}){0,199}"
_NAMING = "use letters, digits, '.', '_' and '-', first a letter or digit, 200 at most"

Name = Annotated[str, matching(_NAME, _NAMING), Field(json_schema_extra={"pattern": f"^{_NAME}$"})]
InstanceId = Annotated[
    str,
    matching(_INSTANCE_ID, f"{_NAMING}; {{n}} stands for the number"),
    Field(json_schema_extra={"pattern": f"^{_INSTANCE_ID}$"}),
]
Version = Annotated[
    str,
    AfterValidator(_supported),
    Field(json_schema_extra={"pattern": f"^{VERSION}$"}),
]
Release = Annotated[
    str,
    matching(VERSION, "write a whole release, such as 4.3.0"),
    Field(json_schema_extra={"pattern": f"^{VERSION}$"}),
]
"""Any release, whether it can be run or not."""
TopicPartition = Annotated[
    str,
    matching(f"{_NAME}/[0-9]{{1,9}}", "write TOPIC/NUMBER, such as orders/0"),
    Field(json_schema_extra={"pattern": f"^{_NAME}/[0-9]{{1,9}}$"}),
]
MOST = 100_000
"""The most members, steps of a plan, rebalances: more than a machine runs. 18,000 were tried."""
MOST_ITEMS = 1_000
"""The most items of a list; lists of members' names are as long as there may be members."""
# Strict, or `true` and "3" would pass for numbers.
Count = Annotated[int, Field(strict=True, ge=0, le=MOST)]
PositiveCount = Annotated[int, Field(strict=True, ge=1, le=MOST)]
BrokerId = Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)]
# Kafka's controllers refuse to create more in one request.
Partitions = Annotated[int, Field(strict=True, ge=1, le=10_000)]
Item = TypeVar("Item")
Items = Annotated[tuple[Item, ...], Field(max_length=MOST_ITEMS)]
SomeItems = Annotated[tuple[Item, ...], Field(min_length=1, max_length=MOST_ITEMS)]
Flag = Annotated[bool, Field(strict=True)]
GroupStateName = Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]


def is_count(value: object) -> bool:
    """Tell whether a value is a `Count`. Raises ValueError for a number that is too large."""
    if type(value) is int and value > MOST:
        raise ValueError(f"{shown(value)} is too large; write {MOST} or less")
    return type(value) is int and value >= 0


BIG_SEED = 2**31
"""The greatest seed of a run."""
Seed = Annotated[int, Field(strict=True, ge=0, le=BIG_SEED)]


class Part(BaseModel):
    """A mapping in an experiment file: frozen, without unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda field: field.removesuffix("_ms"),
        use_attribute_docstrings=True,
    )


def by_key(
    forms: Mapping[str, type], otherwise: type | None = None, words: Collection[object] = ()
) -> Callable[[object], str | None]:
    """Return a function that tells which form of a union a value has: the name of its class.

    `forms` has the class of a mapping by a key that only this form has. A value among `words` is a
    `Word`, and whatever has none of the keys is `otherwise`.
    """

    def tag(value: object) -> str | None:
        if value in words:
            return "Word"
        if isinstance(value, Part):
            return type(value).__name__
        keys = value if isinstance(value, dict) else ()
        form = next((form for key, form in forms.items() if key in keys), otherwise)
        return None if form is None else form.__name__

    return tag
