"""What the acting half of every fault offers."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Finding:
    """What the witness says: whether the claim holds, and the evidence, as part of a sentence."""

    holds: bool
    evidence: str


class _Common(Protocol):
    """A fault of one target, for one use. The methods are called in this order, in one thread."""

    @property
    def target(self) -> str:
        """The member, group, topic or broker that it hits."""

    @property
    def group(self) -> str | None:
        """The group that is hit, if one is."""

    @property
    def details(self) -> Mapping[str, Any]:
        """What only shows when the fault fires, or once it is injected, for the journal."""

    def inject(self) -> None:
        """Break the target. Raises ChaosError; it may or may not be broken then."""


class OneShot(_Common, Protocol):
    """A fault that nothing can undo."""

    @property
    def kind(self) -> Literal["one-shot"]:
        """There is nothing to undo."""

    def verify(self, stop: threading.Event) -> Finding:
        """Return whether it happened; may wait a little for the evidence, or until `stop`."""


class Recoverable(_Common, Protocol):
    """A fault that lasts, and is healed at its end."""

    @property
    def kind(self) -> Literal["recoverable"]:
        """There is something to undo."""

    @property
    def lasts_ms(self) -> int:
        """How long it stays broken."""

    @property
    def undo(self) -> Mapping[str, Any]:
        """What undoes it, as the journal stores it for `heal_from_journal`."""

    def verify(self) -> Finding:
        """Return whether the target is broken, while it should be."""

    @classmethod
    def heal_from_journal(cls, undo: Mapping[str, Any]) -> str | None:
        """Carry out an `undo` of the journal, and return how; None if it is none of this class.

        The load process of its run has ended. Raises ChaosError if it fails.
        """

    def heal(self) -> str:
        """Heal the target, broken or not, and return how. Raises ChaosError if that fails."""

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the target works again, until the time limit of the fault, or until `stop`."""


Fault = OneShot | Recoverable
