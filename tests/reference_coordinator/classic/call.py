"""A request of a play, and what becomes of it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Response

R = TypeVar("R", bound=Response)


@dataclass(slots=True)
class Call(Generic[R]):
    """One request, with its answer once there is one."""

    request: str
    response: R | None = None

    @property
    def pending(self) -> bool:
        """Whether the answer is still out."""
        return self.response is None

    @property
    def answer(self) -> R:
        """The answer; there must be one."""
        assert self.response is not None, f"{self.request} is not answered yet"
        return self.response

    @property
    def error(self) -> Error:
        """The answer's error."""
        return Error(self.answer.error)
