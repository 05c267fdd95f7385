"""`member.restart`: a member closes, and comes back under the same identity."""

import threading
import time

from chaos.errors import LoadGoneError
from chaos.faults.interface import Finding, Kind
from chaos.journal import now_ms
from chaos.members import Members
from chaos.witness import Request, Witness

GRACE_MS = 250
"""How long after the stop a request may still seem to arrive: it was under way, or the broker was
slow to log it."""
CONNECTING_MS = 10_000
"""What a fresh consumer may take to find its coordinator, on a busy machine."""
_POLL_S = 0.05


class MemberRestart:
    """Stops and starts one member over the control channel; the brokers' logs are the witness.

    It was down if no request of it arrived for two heartbeat intervals. It is back once a JoinGroup
    and a SyncGroup of it were answered without an error; for these it may have to wait as long as
    the group's rebalance timeout.
    """

    kind: Kind = "recoverable"

    def __init__(
        self,
        member: str,
        group: str,
        *,
        heartbeat_interval_ms: int,
        rebalance_timeout_ms: int,
        members: Members,
        witness: Witness,
    ) -> None:
        self.target = member
        self.group = group
        self.undo = {"do": "start", "member": member}
        self._silence_ms = 2 * heartbeat_interval_ms
        self._back_within_ms = rebalance_timeout_ms + CONNECTING_MS
        self._members = members
        self._witness = witness
        self._stopped_ms = self._started_ms = 0

    def inject(self) -> None:
        """Close the member; it is closed when this returns."""
        self._members.stop(self.target)
        self._stopped_ms = now_ms()

    def verify(self) -> Finding:
        """Tell whether the brokers heard nothing of the member since it was stopped."""
        until_ms = now_ms()
        self._witness.poll()
        last = self._witness.last_request(self.target)
        if last is None:
            return Finding(False, f"no group.log ever told of {self.target}, up or down")
        if not self._witness.silent_since(self.target, self._stopped_ms + GRACE_MS):
            late_ms = round(last.arrived_ms) - self._stopped_ms
            return Finding(
                False,
                f"{self.target} sent {last.api} {_grouped(late_ms)} ms after it was stopped"
                f" ({last.place})",
            )
        silent_ms = until_ms - max(self._stopped_ms, round(last.arrived_ms))
        evidence = (
            f"no request of {self.target} for {_grouped(silent_ms)} ms"
            f" after {last.api} ({last.place})"
        )
        if silent_ms < self._silence_ms:
            return Finding(
                False,
                f"{evidence}, less than two heartbeat intervals ({_grouped(self._silence_ms)} ms)",
            )
        return Finding(True, evidence)

    def heal(self) -> str:
        """Start the member; it has not joined yet when this returns."""
        self._started_ms = now_ms()
        return start_again(self.target, self._members)

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the brokers let the member join and gave it its assignment."""
        deadline = time.monotonic() + self._back_within_ms / 1000
        while True:
            self._witness.poll()
            joined = self._witness.joined_since(self.target, self._started_ms)
            synced = self._witness.synced_since(self.target, self._started_ms)
            if joined and synced:
                return Finding(True, _came_back(joined, synced))
            if time.monotonic() >= deadline:
                waited = f"within {_grouped(self._back_within_ms)} ms"
                return Finding(False, f"no JOIN_GROUP and SYNC_GROUP of it answered NONE {waited}")
            if stop.wait(_POLL_S):
                return Finding(False, "its coming back was not waited for, as the run was ended")


def start_again(member: str, members: Members | None) -> str:
    """Start a member that may be down, and return how that went.

    A load process that is gone (None, or found so) took its members along: nothing is left to undo.
    Raises ChaosError if the load process is there and does not do it.
    """
    try:
        if members is not None:
            members.start(member)
            return "started over the control channel"
    except LoadGoneError:
        pass
    return "nothing to undo: the load process is gone, and its members with it"


def _came_back(joined: Request, synced: Request) -> str:
    return (
        f"JOIN_GROUP answered NONE with member id {joined.member_id} ({joined.place})"
        f" and SYNC_GROUP answered NONE ({synced.place})"
    )


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")
