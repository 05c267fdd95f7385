"""What faults of one member share: what they hit, and how they undo it over the control channel."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self

from chaos.errors import LoadGoneError, WorkerGoneError
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import MemberEvidence
from chaos.members import Members
from scenarios import MemberFault

GONE = "nothing to undo: the load process is gone, and its members with it"

WORKER_GONE = "nothing to undo: the worker of the load is gone that ran the member"


class OneMember:
    """A recoverable fault of one member; what the brokers' logs tell of it is the witness."""

    kind: Literal["recoverable"] = "recoverable"
    UNDO: ClassVar[str]
    """What undoes it, by the name that the journal has."""
    GONE: ClassVar[str] = GONE
    details: Mapping[str, Any] = {}
    undo: Mapping[str, Any]

    def __init__(
        self, member: str, group: str, lasts_ms: int, evidence: MemberEvidence, members: Members
    ) -> None:
        self.target = member
        self.group = group
        self.lasts_ms = lasts_ms
        self.undo = {"do": self.UNDO, "member": member}
        self._evidence = evidence
        self._members = members
        self._began_ms = self._healing_ms = 0

    @classmethod
    def each(cls, fault: MemberFault, lasts_ms: int, context: FaultContext) -> tuple[Self, ...]:
        """Return one for each member that a fault hits now."""
        return tuple(
            cls(member.name, member.group, lasts_ms, context.evidence(member), context.members)
            for member in context.targets_of(fault)
        )

    def verify(self) -> Finding:
        """Return whether the brokers received no request of the member since it was hit."""
        return self._evidence.silence(self._began_ms)

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the brokers let the member join and gave it its assignment."""
        return self._evidence.rejoined(self._healing_ms, stop)

    @classmethod
    def heal_from_journal(cls, undo: Mapping[str, Any]) -> str | None:
        """Return that its member ended with the load."""
        match undo:
            case {"do": cls.UNDO, "member": str()}:
                return cls.GONE
        return None


def unless_gone(act: Callable[[], str], gone: str = GONE) -> str:
    """Undo something of members, and return how that went.

    If the load process is gone, its members are gone too: nothing is left to undo, which `gone`
    says. Raises ChaosError if the load process is there and refuses.
    """
    try:
        return act()
    except WorkerGoneError:
        return WORKER_GONE
    except LoadGoneError:
        return gone
