"""`member.kill`: a member ends as in a crash, without LeaveGroup, and is started afresh."""

import re
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from chaos.faults.interface import Finding
from chaos.faults.member_evidence import MemberEvidence
from chaos.faults.member_restart import MemberRestart
from chaos.journal import now_ms
from chaos.members import Members

Address = IPv4Address | IPv6Address

_CONNECTION = re.compile(r"(.+):(\d+)-(.+):(\d+)(?:-\d+)+")
_SOCKETS, _SOCKETS_6 = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
"""Two files, and so read in time: psutil also looks for each socket's process, which takes longer
than a fault may be late. A Java client's socket stands in the second, its IPv4 addresses mapped
(RFC 4291, 2.5.5.2)."""
_ESTABLISHED = "01"


class MemberKill(MemberRestart):
    """Kills one member over the control channel.

    The brokers' logs show that it was silent and sent no LeaveGroup; the kernel shows that the
    connection of its last request is gone. A static member sends no LeaveGroup when it is closed,
    either (KIP-345), and its connection ends as well: its crash looks like a close, and the
    evidence says so.
    """

    def __init__(
        self, member: str, group: str, lasts_ms: int, evidence: MemberEvidence, members: Members
    ) -> None:
        super().__init__(member, group, lasts_ms, evidence, members)
        self._killed_ms = 0
        self._connection: str | None = None
        self._is_static = False

    def inject(self) -> None:
        """Kill the member; its sockets are gone when this returns."""
        witness = self._evidence.witness
        witness.poll()
        last = witness.last_request(self.target)
        # the broker may name it otherwise: from inside a container, or behind a NAT
        self._connection = last.connection if last and is_open(last.connection) else None
        self._is_static = bool(last and last.instance_id)
        self._began_ms = now_ms()
        self._members.kill(self.target)
        self._killed_ms = now_ms()

    def verify(self) -> Finding:
        """Return whether the member fell silent without a LeaveGroup."""
        silence = self._evidence.silence(self._killed_ms)
        left = self._evidence.witness.left_since(self.target, self._began_ms)
        if left:
            return Finding(False, f"{self.target} said goodbye with LEAVE_GROUP ({left.place})")
        if self._connection and is_open(self._connection):
            return Finding(False, f"{silence.evidence}, but connection {self._connection} is open")
        left_out = " (a static member sends none when closed, either)" if self._is_static else ""
        gone = (
            f"connection {self._connection} gone"
            if self._connection
            else "no socket of this machine could be matched with its connection"
        )
        return Finding(silence.holds, f"{silence.evidence}, no LEAVE_GROUP of it{left_out}, {gone}")


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
