"""`coordinator.move`: another broker leads the group's partition of the offsets topic."""

import threading
from collections.abc import Mapping
from typing import Any, Literal

from chaos.errors import ChaosError
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import await_finding
from chaos.journal import now_ms
from scenarios import faults as declared

_KNOWN_WITHIN_MS = 30_000
"""How long the last broker may take to learn of it, and a member to find the new coordinator."""


class CoordinatorMove:
    """Moves the coordinator by an election; metadata and the new one's log are the witness."""

    kind: Literal["one-shot"] = "one-shot"
    details: Mapping[str, Any] = {}

    def __init__(self, group: str, to: int | None, context: FaultContext) -> None:
        self.target = self.group = group
        self._to = to
        self._context = context
        self._view = context.view
        self._new = self._moved_ms = 0

    def inject(self) -> None:
        """Elect the new leader; the controller has elected it when this returns."""
        group, to = self.group, self._to
        before = self._view.coordinator(group)
        self._new = self._context.unless_stopped(lambda: self._view.move_coordinator(group, to))
        self._moved_ms = now_ms()
        self.details = {"moved_from": before, "moved_to": self._new}

    def verify(self, stop: threading.Event) -> Finding:
        """Wait until every broker that answers knows it, and it has served the group."""
        missing = f"not every broker knows broker {self._new} as coordinator, or it served nobody"
        return await_finding(self._look, _KNOWN_WITHIN_MS, missing, stop)

    def _look(self) -> Finding | None:
        knows = {}
        for broker in self._context.cluster.brokers:
            try:
                knows[broker.id] = self._view.coordinator(self.group, broker.address)
            except ChaosError:
                continue  # another fault has taken it down
        witness = self._context.witness
        witness.poll()
        served = witness.served_since(self.group, self._new, self._moved_ms)
        if set(knows.values()) != {self._new} or served is None:
            return None
        by = ", ".join(f"broker {broker}" for broker in knows)
        return Finding(
            True,
            f"broker {self._new} coordinates {self.group} by {by}, and served {served.api} of "
            f"{served.client} ({served.place})",
        )


def make(fault: declared.CoordinatorMove, context: FaultContext) -> tuple[CoordinatorMove]:
    """Return the move of the group's coordinator."""
    return (CoordinatorMove(fault.group, fault.to, context),)
