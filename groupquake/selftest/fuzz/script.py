"""A sequence as steps that can be played again: what an answer told is named, not written out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Answers = Mapping[int, Mapping[str, Any]]
"""What the answers said, by the number of the step; 0 stands for the group itself."""

CLOSE = "close"
"""Instead of a request: the connection is closed, as by a process that dies."""


@dataclass(frozen=True, slots=True)
class Ref:
    """What the answer to a step says under a key; `plus` is added to a number."""

    step: int
    key: str
    plus: int = 0


@dataclass(frozen=True, slots=True)
class Assignments:
    """An assignment for the members that a leader was told of by the answer to a step.

    `spare` are left out, from the end; `size` is that of each share in base64.
    """

    step: int
    spare: int = 0
    size: int = 8


GROUP = Ref(0, "groupId")
UNKNOWN: Mapping[str, Any] = {"memberId": "nobody", "generationId": -1, "protocolName": None}
"""What stands for an answer that never came."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request, or one connection closed; `at_ms` is when, since the sequence began."""

    number: int
    at_ms: float
    client_id: str
    connection: str
    api: str
    version: int = 0
    body: Any = None

    def needs(self) -> set[int]:
        """Return the steps whose answers this one speaks of."""
        return set(_refs(self.body)) - {0}


def _refs(template: Any) -> list[int]:
    match template:
        case Ref(step=step) | Assignments(step=step):
            return [step]
        case dict():
            return [step for value in template.values() for step in _refs(value)]
        case list() | tuple():
            return [step for value in template for step in _refs(value)]
    return []


def resolve(template: Any, answers: Answers) -> Any:
    """Fill in what the answers said."""
    match template:
        case Ref(step, key, plus):
            answer = answers.get(step, UNKNOWN)
            value = answer[key] if key in answer else UNKNOWN[key]
            return value + plus if plus else value
        case Assignments():
            return _shares(template, answers)
        case dict():
            return {key: resolve(value, answers) for key, value in template.items()}
        case list() | tuple():
            return [resolve(value, answers) for value in template]
    return template


def _shares(shares: Assignments, answers: Answers) -> list[dict[str, str]]:
    told = answers.get(shares.step, {}).get("members") or []
    kept = told[: max(0, len(told) - shares.spare)]
    return [
        {"memberId": member["memberId"], "assignment": f"{number:0>{shares.size}}"}
        for number, member in enumerate(kept, 1)
    ]
