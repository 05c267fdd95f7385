"""`member.restart`: a member closes, and comes back, at times as somebody else."""

import threading
from collections.abc import Mapping
from typing import Any, Literal

from chaos.errors import LoadGoneError
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import MemberEvidence
from chaos.journal import now_ms
from chaos.members import SAME, Identity, Members


class MemberRestart:
    """Stops and starts one member over the control channel; the brokers' logs are the witness."""

    kind: Literal["recoverable"] = "recoverable"
    details: Mapping[str, Any]
    undo: Mapping[str, Any]

    def __init__(
        self,
        member: str,
        group: str,
        lasts_ms: int,
        evidence: MemberEvidence,
        members: Members,
        identity: Identity = SAME,
    ) -> None:
        self.target = member
        self.group = group
        self.lasts_ms = lasts_ms
        self.details = dict(identity)
        self.undo = {"do": "start", "member": member, **identity}
        self._identity = identity
        self._evidence = evidence
        self._members = members
        self._stopped_ms = self._started_ms = 0

    def inject(self) -> None:
        """Close the member; it is closed when this returns."""
        self._members.stop(self.target)
        self._stopped_ms = now_ms()

    def verify(self) -> Finding:
        """Tell whether the brokers heard nothing of the member since it was stopped."""
        return self._evidence.silence(self._stopped_ms)

    def heal(self) -> str:
        """Start the member; it has not joined yet when this returns."""
        self._started_ms = now_ms()
        return start_again(self.target, self._members, self._identity)

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the brokers let the member join and gave it its assignment."""
        return self._evidence.comeback(self._started_ms, stop, self._identity)


def start_again(member: str, members: Members | None, identity: Identity = SAME) -> str:
    """Start a member that may be down, and return how that went.

    A load process that is gone (None, or found so) took its members along: nothing is left to undo.
    Raises ChaosError if the load process is there and does not do it.
    """
    try:
        if members is not None:
            members.start(member, identity)
            return "started over the control channel"
    except LoadGoneError:
        pass
    return "nothing to undo: the load process is gone, and its members with it"
