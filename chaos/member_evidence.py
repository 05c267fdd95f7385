"""Evidence of a member in the brokers' logs: that it is silent, or that it has rejoined."""

import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from chaos.timing import CONNECTING_MS, SILENCE_GRACE_MS
from chaos.witness import Request, Witness
from kafka_protocol.errors import Error
from scenarios.durations import now_ms
from scenarios.faults.base import Finding, await_finding, grouped
from scenarios.setup import SAME, Identity

Address = IPv4Address | IPv6Address

_CONNECTION = re.compile(r"(.+):(\d+)-(.+):(\d+)(?:-\d+)+")
_SOCKETS, _SOCKETS_6 = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
"""Two files, and so read in time: psutil also looks for each socket's process, which takes longer
than a fault may be late. A Java client's socket stands in the second, its IPv4 addresses mapped
(RFC 4291, 2.5.5.2)."""
_ESTABLISHED = "01"


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

    @property
    def least_silence_ms(self) -> int:
        """How long a member has to be silent for that to show."""
        return 2 * self.heartbeat_interval_ms + SILENCE_GRACE_MS

    def silence(self, since_ms: int) -> Finding:
        """Return whether the brokers received no request of the member from a time until now."""
        until_ms = now_ms()
        self.witness.poll()
        last = self.witness.latest(self.member)
        if last is None:
            return Finding(False, f"no group.log ever told of {self.member}, up or down")
        if self.witness.latest(self.member, since_ms + SILENCE_GRACE_MS):
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
        if heard_ms <= since_ms + SILENCE_GRACE_MS and not self.answers(coordinator):
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
        beat = self.witness.latest(self.member, since_ms, "HEARTBEAT", Error.NONE)
        return Finding(True, f"HEARTBEAT answered NONE ({beat.place})") if beat else None

    def _rejoin(self, since_ms: int, identity: Identity) -> Finding | None:
        self.witness.poll()
        joined = self.witness.latest(self.member, since_ms, "JOIN_GROUP", Error.NONE)
        synced = self.witness.latest(self.member, since_ms, "SYNC_GROUP", Error.NONE)
        if not (joined and synced):
            return None
        came = f"{_joined(joined)} and SYNC_GROUP answered NONE ({synced.place})"
        wanted = identity.get("instance_id")
        if identity and joined.instance_id != wanted:
            return Finding(False, f"{came}, but as {joined.instance_id}, not as {wanted}")
        return Finding(True, f"{came}, as {wanted or 'a dynamic member'}" if identity else came)


def _joined(joined: Request) -> str:
    return f"JOIN_GROUP answered NONE with member id {joined.member_id} ({joined.place})"


def is_open(connection: str) -> bool:
    """Return whether the kernel has the client's end of a connection that a broker names.

    Kafka's name for it is `<local host>:<port>-<remote host>:<port>-<numbers>`.
    """
    named = _CONNECTION.fullmatch(connection)
    if named is None:
        return False
    try:
        broker, client = ip_address(named[1]), ip_address(named[3])
    except ValueError:
        return False
    ports = int(named[2]), int(named[4])
    if isinstance(broker, IPv4Address) and isinstance(client, IPv4Address):
        if _is_listed(_SOCKETS, broker, client, ports):
            return True
        broker, client = (IPv6Address(f"::ffff:{each}") for each in (broker, client))
    return _SOCKETS_6.exists() and _is_listed(_SOCKETS_6, broker, client, ports)


def _is_listed(table: Path, broker: Address, client: Address, ports: tuple[int, int]) -> bool:
    """Return whether one of the kernel's tables has the client's end, established."""
    there, here = (f"{_as_kernel(h)}:{p:04X}" for h, p in zip((broker, client), ports, strict=True))
    wanted = f" {here} {there} {_ESTABLISHED} "
    with table.open() as rows:
        return any(wanted in row for row in rows)


def _as_kernel(host: Address) -> str:
    """Write an address as the kernel's tables do: each 32 bits as a number of this machine."""
    words = (host.packed[at : at + 4] for at in range(0, len(host.packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
