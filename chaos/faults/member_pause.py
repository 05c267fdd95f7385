"""`member.pause`: a member freezes; no thread of it runs, and its sockets stay open."""

import threading
from collections.abc import Mapping
from typing import Any

from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import MemberEvidence
from chaos.faults.one_member import OneMember, unless_gone
from chaos.journal import now_ms
from chaos.members import Members
from scenarios import faults as declared


class MemberPause(OneMember):
    """Freezes and resumes one member over the control channel; the brokers' logs are the witness.

    They show that it was silent, and that it is heard of again.
    """

    def __init__(
        self, member: str, group: str, lasts_ms: int, evidence: MemberEvidence, members: Members
    ) -> None:
        super().__init__(member, group, lasts_ms, evidence, members)
        self.undo = {"do": "resume-member", "member": member}

    def inject(self) -> None:
        """Freeze the member; its last thread stops within some milliseconds."""
        self._members.pause(self.target)
        self._began_ms = now_ms()

    def verify(self) -> Finding:
        """Return whether the brokers received no request of the member since it was frozen."""
        return self._evidence.silence(self._began_ms)

    @staticmethod
    def heal_from_journal(undo: Mapping[str, Any], members: Members | None) -> str | None:
        """Resume the member of a run that died."""
        match undo:
            case {"do": "resume-member", "member": str(member)}:
                return resume(member, members)
        return None

    def heal(self) -> str:
        """Let the member go on; its next request is on its way when this returns."""
        self._healing_ms = now_ms()
        return resume(self.target, self._members)

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the brokers took a heartbeat of the member, or let it join again."""
        return self._evidence.back(self._healing_ms, stop)


def resume(member: str, members: Members | None) -> str:
    """Let a member go on and poll, and return how that went; raises as `unless_gone`."""

    def act(there: Members) -> str:
        there.resume(member)
        return "resumed over the control channel"

    return unless_gone(members, act)


def make(fault: declared.MemberPause, context: FaultContext) -> tuple[MemberPause, ...]:
    """Return the pause of each member that the fault hits now."""
    return tuple(
        MemberPause(
            member.name, member.group, fault.down_for_ms, context.evidence(member), context.members
        )
        for member in context.targets_of(fault)
    )
