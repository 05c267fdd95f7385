"""What every fault has to offer."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["recoverable", "one-shot"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What the witness says: whether it was so, and the evidence, as a part of a sentence."""

    holds: bool
    evidence: str


class Fault(Protocol):
    """One target, to be broken once. The methods are called in this order, in one thread."""

    @property
    def kind(self) -> Kind:
        """Whether there is something to undo."""

    @property
    def target(self) -> str:
        """Whom it hits."""

    @property
    def group(self) -> str:
        """The group that is hit."""

    @property
    def undo(self) -> Mapping[str, str]:
        """What undoes it, for someone who has nothing but the journal."""

    def inject(self) -> None:
        """Break it. Raises ChaosError, and then it may or may not be broken."""

    def verify(self) -> Finding:
        """Tell, while it should be broken, whether it is."""

    def heal(self) -> str:
        """Put it right, broken or not, and return how. Raises ChaosError if that failed."""

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until it is right again, no longer than a fault of this kind may take, or `stop`."""
