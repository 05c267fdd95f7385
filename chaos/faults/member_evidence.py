"""Evidence of a member in the brokers' logs: that it is silent, or that it has rejoined."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from chaos.faults.interface import Finding
from chaos.journal import now_ms
from chaos.members import SAME, Identity
from chaos.witness import Request, Witness

GRACE_MS = 500
"""How long after the stop a request may still arrive: it was in flight, or the broker was slow to
log it."""
CONNECTING_MS = 10_000
"""How long a new consumer may take to find its coordinator, on a busy machine."""
POLL_S = 0.05
SLOWEST_S = 0.5
"""From one look to the next, at first and in the end: hundreds of threads may look at once."""


@dataclass(frozen=True, slots=True)
class MemberEvidence:
    """One member in the brokers' logs.

    It is down if no request of it arrived for two heartbeat intervals although its coordinator was
    alive: that completed other requests, or `answers(broker)`. It has rejoined once a JoinGroup and
    a SyncGroup of it were answered without an error. These may take two rebalance timeouts: one
    until the coordinator stops waiting for other members to join, one until it stops waiting for
    the SyncGroup of a leader that has ended, and starts another rebalance.
    """

    member: str
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    witness: Witness
    answers: Callable[[int], bool]

    def silence(self, since_ms: int) -> Finding:
        """Return whether the brokers received no request of the member from a time until now."""
        until_ms = now_ms()
        self.witness.poll()
        last = self.witness.last_request(self.member)
        if last is None:
            return Finding(False, f"no group.log ever told of {self.member}, up or down")
        if not self.witness.silent_since(self.member, since_ms + GRACE_MS):
            late_ms = round(last.arrived_ms) - since_ms
            return Finding(
                False,
                f"{self.member} sent {last.api} {grouped(late_ms)} ms after it was stopped"
                f" ({last.place})",
            )
        silent_ms = until_ms - max(since_ms, round(last.arrived_ms))
        evidence = (
            f"no request of {self.member} for {grouped(silent_ms)} ms after {last.api}"
            f" ({last.place})"
        )
        least_ms = 2 * self.heartbeat_interval_ms
        if silent_ms < least_ms:
            return Finding(
                False, f"{evidence}, less than two heartbeat intervals ({grouped(least_ms)} ms)"
            )
        coordinator, heard_ms = self.witness.coordinator(last.group)
        if heard_ms <= since_ms + GRACE_MS and not self.answers(coordinator):
            return Finding(False, f"{evidence}, but broker {coordinator} was silent altogether")
        return Finding(True, evidence)

    def rejoined(self, since_ms: int, stop: threading.Event, identity: Identity = SAME) -> Finding:
        """Wait until the brokers let the member join and gave it its assignment."""
        return self._await(
            lambda: self._rejoin(since_ms, identity),
            "no JOIN_GROUP and SYNC_GROUP of it answered NONE",
            stop,
        )

    def back(self, since_ms: int, stop: threading.Event) -> Finding:
        """Wait until the brokers took a heartbeat of the member, or let it join again."""
        return self._await(
            lambda: self._beat(since_ms) or self._rejoin(since_ms, SAME),
            "no HEARTBEAT of it answered NONE, and no JOIN_GROUP and SYNC_GROUP",
            stop,
        )

    def _await(
        self, look: Callable[[], Finding | None], missing: str, stop: threading.Event
    ) -> Finding:
        """Wait as long as the member may take, if there is a log that may tell of it."""
        self.witness.poll()
        if not self.witness.has_requests:
            return Finding(False, f"no group.log tells of {self.member} or of any other client")
        return await_finding(look, 2 * self.rebalance_timeout_ms + CONNECTING_MS, missing, stop)

    def _beat(self, since_ms: int) -> Finding | None:
        self.witness.poll()
        beat = self.witness.beat_since(self.member, since_ms)
        return Finding(True, f"HEARTBEAT answered NONE ({beat.place})") if beat else None

    def _rejoin(self, since_ms: int, identity: Identity) -> Finding | None:
        self.witness.poll()
        joined = self.witness.joined_since(self.member, since_ms)
        synced = self.witness.synced_since(self.member, since_ms)
        if not (joined and synced):
            return None
        came = f"{_joined(joined)} and SYNC_GROUP answered NONE ({synced.place})"
        wanted = identity.get("instance_id")
        if identity and joined.instance_id != wanted:
            return Finding(False, f"{came}, but as {joined.instance_id}, not as {wanted}")
        return Finding(True, f"{came}, as {wanted or 'a dynamic member'}" if identity else came)


def _joined(joined: Request) -> str:
    return f"JOIN_GROUP answered NONE with member id {joined.member_id} ({joined.place})"


def await_finding(
    look: Callable[[], Finding | None], within_ms: int, missing: str, stop: threading.Event
) -> Finding:
    """Call `look` until it returns a finding, time is up or `stop` is set.

    `missing` says what is missing when time is up.
    """
    deadline = time.monotonic() + within_ms / 1000
    wait_s = POLL_S
    while True:
        if found := look():
            return found
        if time.monotonic() >= deadline:
            return Finding(False, f"{missing} within {grouped(within_ms)} ms")
        if stop.wait(wait_s):
            return Finding(False, "its coming back was not waited for, as the run was ended")
        wait_s = min(wait_s + POLL_S, SLOWEST_S)


def grouped(number: int) -> str:
    """Return a number as people read it: `12 345`."""
    return f"{number:,}".replace(",", " ")
