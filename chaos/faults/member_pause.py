"""`member.pause`: a member freezes; no thread of it runs, and its sockets stay open."""

import threading

from chaos.faults.interface import Finding
from chaos.faults.one_member import OneMember, unless_gone
from chaos.journal import now_ms


class MemberPause(OneMember):
    """Freezes and resumes one member over the control channel; the brokers' logs are the witness.

    They show that it was silent, and that it is heard of again.
    """

    UNDO = "resume-member"

    def inject(self) -> None:
        """Freeze the member; its last thread stops within some milliseconds."""
        self._members.pause(self.target)
        self._began_ms = now_ms()

    def heal(self) -> str:
        """Let the member go on; its next request is on its way when this returns."""
        self._healing_ms = now_ms()
        return unless_gone(self._resume)

    def _resume(self) -> str:
        self._members.resume(self.target)
        return "resumed over the control channel"

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the brokers took a heartbeat of the member, or let it join again."""
        return self._evidence.back(self._healing_ms, stop)
