"""`member.slow-poll`: the application of a member polls no more, while its client's threads go on.

After max.poll.interval.ms a dynamic member leaves, and a static one is silent (KIP-345).
"""

from chaos.faults.interface import Finding
from chaos.faults.member_evidence import GRACE_MS
from chaos.faults.member_pause import MemberPause
from chaos.journal import now_ms


class MemberSlowPoll(MemberPause):
    """Stops the polls of one member over the control channel; the brokers' logs are the witness."""

    def inject(self) -> None:
        """Let the application poll no more."""
        self._began_ms = now_ms()
        self._members.stop_polling(self.target)

    def verify(self) -> Finding:
        """Return whether the member left the group, or else fell silent."""
        quiet_ms = 2 * self._evidence.heartbeat_interval_ms + GRACE_MS
        silence = self._evidence.silence(now_ms() - quiet_ms)
        left = self._evidence.witness.left_since(self.target, self._began_ms)
        if left is None:
            return silence
        after_ms = round(left.arrived_ms) - self._began_ms
        evidence = f"LEAVE_GROUP of {self.target} {after_ms} ms after its last poll ({left.place})"
        return Finding(silence.holds, f"{evidence}, {silence.evidence}")
