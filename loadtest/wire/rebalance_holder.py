"""A member that keeps its group inside a rebalance, so that faults surely hit that state."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kafka_protocol.errors import Error
from loadtest.wire.connection import Connection, Exchange, WireError
from loadtest.wire.member import WireMember

HELD_MS = 300_000
"""How long a hold may last: the holder's timeouts."""

HELD = "held-"
"""The prefix of the protocol that only the holder supports."""


@dataclass
class RebalanceHolder:
    """Holds a group in PreparingRebalance or CompletingRebalance.

    `member` joins with long timeouts, so no timer expires during the hold; `connect` opens a second
    connection. The other members join on their own.
    """

    member: WireMember
    connect: Callable[[], Connection]
    _guard: WireMember | None = field(default=None, init=False)
    _joining: Exchange | None = field(default=None, init=False)
    _holds: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Set the member's long timeouts."""
        self.member.session_timeout_ms = self.member.rebalance_timeout_ms = HELD_MS

    def hold_join_phase(self) -> None:
        """Start a rebalance whose join phase does not end: PreparingRebalance.

        The group waits for a pending member (KIP-394) that does not join. Its leaving causes no
        further rebalance, unlike that of a member that did not rejoin.
        """
        self._guard = replace(
            self.member, connection=self.connect(), instance_id=None, member_id="", generation=-1
        )
        error = self._guard.joined(self._guard.send_join())
        if error != Error.MEMBER_ID_REQUIRED:
            raise WireError(f"{self.member.group}: no MEMBER_ID_REQUIRED, but error {error}")
        self._joining = self._start()

    def hold_assignment(self) -> None:
        """Start a rebalance, and withhold the leader's SyncGroup: CompletingRebalance.

        Returns when all members have joined. Raises WireError if the member is not the leader.
        """
        error = self.member.joined(self._start())
        if error != Error.NONE or not self.member.leads:
            raise WireError(f"{self.member.group}: the holder is not its leader (error {error})")

    def release(self) -> None:
        """End the hold, and complete the rebalance."""
        if self._guard is not None:
            self._guard.leave("the hold is over")
            self._guard.connection.close()
            self._guard = None
        if self._joining is not None:
            error, self._joining = self.member.joined(self._joining), None
            if error != Error.NONE:
                raise WireError(f"{self.member.group}: the holder is refused with error {error}")
        self.member.sync()

    def _start(self) -> Exchange:
        """Join with a new protocol in the list, which makes every coordinator rebalance."""
        self._holds += 1
        (name, metadata), *more = self.member.protocols
        more = [protocol for protocol in more if not protocol[0].startswith(HELD)]
        self.member.protocols = ((name, metadata), *more, (f"{HELD}{self._holds}", metadata))
        return self.member.send_join()
