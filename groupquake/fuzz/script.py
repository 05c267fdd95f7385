"""A sequence as steps that can be played again: values from responses are references."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Answers = Mapping[int, Mapping[str, Any]]
"""Responses by step number; 0 stands for the group itself."""

CLOSE = "close"
"""The step closes its connection, as the crash of a process does."""


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of a key in the response to a step; `plus` is added to a number."""

    step: int
    key: str
    plus: int = 0


@dataclass(frozen=True, slots=True)
class Assignments:
    """The assignments for the members in the JoinGroup response to a step.

    The last `spare` members get none; `size` is the length of each assignment in base64.
    """

    step: int
    spare: int = 0
    size: int = 8


GROUP = Ref(0, "groupId")
UNKNOWN: Mapping[str, Any] = {"memberId": "nobody", "generationId": -1, "protocolName": None}
"""The values if there was no response."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request, or the close of a connection, `at_ms` after the begin of the sequence."""

    number: int
    at_ms: float
    client_id: str
    connection: str
    api: str
    version: int = 0
    body: Any = None

    def needs(self) -> set[int]:
        """Return the steps whose responses this step refers to."""
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
    """Replace references by the values in responses."""
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
    members = answers.get(shares.step, {}).get("members") or []
    kept = members[: max(0, len(members) - shares.spare)]
    return [
        {"memberId": member["memberId"], "assignment": f"{number:0>{shares.size}}"}
        for number, member in enumerate(kept, 1)
    ]
