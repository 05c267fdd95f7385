"""How long the clients of a group demonstrably ran while nothing changed, after its topics grew.

A client that sends requests sees to its metadata, too: so it had the time to notice, however busy
the machine was.
"""

from dataclasses import dataclass, field
from math import inf

PACE_MS = 2_000.0
"""How long a client that runs may send nothing. Heartbeats come every 500 to 700 ms, commits every
second, in the experiments that add partitions."""
CHANGES = ("JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP")
"""Requests that show that the group is about to change."""
LEAVES = "LEAVE_GROUP"


@dataclass(slots=True)
class Client:
    """A client of the group, ms: when it was last heard, its session, and how long it ran.

    `from_ms` begins the time in which it was never silent for longer than PACE_MS, since the topics
    grew or the group changed; None if it was not heard since.
    """

    heard_ms: float
    session_ms: float = inf
    from_ms: float | None = None
    longest_ms: float = 0.0

    def gone(self, at_ms: float) -> bool:
        """Whether its session, as it asked for it, has ended since it was last heard."""
        return at_ms - self.heard_ms > self.session_ms


@dataclass(slots=True)
class Pace:
    """Follows the clients of one group from when its topics grew until the load is stopped, ms.

    Clients that were heard before are among them: one that says nothing any more may not have run.
    One that has left is not, nor is one that the group has changed without.
    """

    grown_ms: float = inf
    end_ms: float = inf
    _clients: dict[str, Client] = field(default_factory=dict)

    def heard(self, client: str, api: str, at_ms: float, session_ms: float | None = None) -> None:
        """Take a request of a member, in order of time; `session_ms` if it asks for a session."""
        if at_ms > self.end_ms:
            return
        if api in CHANGES:
            left = {name: one for name, one in self._clients.items() if not one.gone(at_ms)}
            for one in left.values():
                one.from_ms, one.longest_ms = None, 0.0
            self._clients = left
        if api == LEAVES:
            self._clients.pop(client, None)
            return
        one = self._clients.setdefault(client, Client(at_ms))
        if session_ms is not None:
            one.session_ms = session_ms
        if at_ms >= self.grown_ms:
            if one.from_ms is None or at_ms - one.heard_ms > PACE_MS:
                one.from_ms = at_ms
            one.longest_ms = max(one.longest_ms, at_ms - one.from_ms)
        one.heard_ms = max(one.heard_ms, at_ms)

    @property
    def kept_ms(self) -> float | None:
        """How long each client ran without a break at least; None without a growth or clients."""
        if self.grown_ms == inf:
            return None
        return min((one.longest_ms for one in self._clients.values()), default=None)
