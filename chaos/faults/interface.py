"""What every fault has to offer."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Finding:
    """What the witness says: whether it was so, and the evidence, as a part of a sentence."""

    holds: bool
    evidence: str


class _Any(Protocol):
    """One target, to be broken once. The methods are called in this order, in one thread."""

    @property
    def target(self) -> str:
        """Whom it hits."""

    @property
    def group(self) -> str | None:
        """The group that is hit, if it is one."""

    @property
    def details(self) -> Mapping[str, Any]:
        """What the plan could not know of it, for the journal."""

    def inject(self) -> None:
        """Break it. Raises ChaosError, and then it may or may not be broken."""


class OneShot(_Any, Protocol):
    """A fault that nothing can undo."""

    @property
    def kind(self) -> Literal["one-shot"]:
        """There is nothing to undo."""

    def verify(self, stop: threading.Event) -> Finding:
        """Tell whether it happened; may wait for the evidence a little, or until `stop`."""


class Recoverable(_Any, Protocol):
    """A fault that lasts, and is put right in the end."""

    @property
    def kind(self) -> Literal["recoverable"]:
        """There is something to undo."""

    @property
    def lasts_ms(self) -> int:
        """How long it stays broken."""

    @property
    def undo(self) -> Mapping[str, Any]:
        """What undoes it, for someone who has nothing but the journal."""

    def verify(self) -> Finding:
        """Tell, while it should be broken, whether it is."""

    def heal(self) -> str:
        """Put it right, broken or not, and return how. Raises ChaosError if that failed."""

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until it is right again, no longer than a fault of this kind may take, or `stop`."""


Fault = OneShot | Recoverable
