"""A member that keeps its group inside a rebalance until told: faults land there without a race."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from loadtest.wire.connection import Connection, Exchange, WireError
from loadtest.wire.member import MEMBER_ID_REQUIRED, NONE, WireMember

HELD_MS = 300_000
"""How long a hold may last: it is the holder's timeouts, which the coordinator waits for."""

HELD = "held-"
"""How the protocol is named that the holder alone supports."""


@dataclass
class Holder:
    """Holds a group in PreparingRebalance or CompletingRebalance.

    `member` joins with long timeouts, so nothing runs out while it holds; `connect` opens a second
    connection. Where others are to join meanwhile, they must do so by themselves.
    """

    member: WireMember
    connect: Callable[[], Connection]
    _guard: WireMember | None = field(default=None, init=False)
    _joining: Exchange | None = field(default=None, init=False)
    _holds: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Give the member its long timeouts."""
        self.member.session_timeout_ms = self.member.rebalance_timeout_ms = HELD_MS

    def hold_joining(self) -> None:
        """Start a rebalance whose join phase stays open: the group is in PreparingRebalance.

        A member that was given its id and does not come (KIP-394) is waited for. When it goes, it
        causes no rebalance of its own; a member that did not rejoin would, in the end.
        """
        self._guard = replace(
            self.member, connection=self.connect(), instance_id=None, member_id="", generation=-1
        )
        error = self._guard.joined(self._guard.send_join())
        if error != MEMBER_ID_REQUIRED:
            raise WireError(f"{self.member.group}: no pending member to hold it: error {error}")
        self._joining = self._start()

    def hold_assigning(self) -> None:
        """Start a rebalance, and withhold the leader's SyncGroup: CompletingRebalance.

        Returns once everybody has joined. Raises WireError if the member does not lead then.
        """
        error = self.member.joined(self._start())
        if error != NONE or not self.member.leads:
            raise WireError(f"{self.member.group}: the holder does not lead it (error {error})")

    def release(self) -> None:
        """Let the rebalance go on, and take part in it to its end."""
        if self._guard is not None:
            self._guard.leave("the hold is over")
            self._guard.connection.close()
            self._guard = None
        if self._joining is not None:
            error, self._joining = self.member.joined(self._joining), None
            if error != NONE:
                raise WireError(f"{self.member.group}: the holder is refused with error {error}")
        self.member.sync()

    def _start(self) -> Exchange:
        """Join with one protocol more than before, which makes every coordinator rebalance."""
        self._holds += 1
        (name, metadata), *more = self.member.protocols
        more = [protocol for protocol in more if not protocol[0].startswith(HELD)]
        self.member.protocols = ((name, metadata), *more, (f"{HELD}{self._holds}", metadata))
        return self.member.send_join()
