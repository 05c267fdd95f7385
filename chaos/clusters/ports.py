"""Picks TCP ports on 127.0.0.1 that a broker can use, also after a restart."""

import random
import socket
from collections.abc import Iterable
from pathlib import Path

from chaos.errors import ClusterError

HOST = "127.0.0.1"
_LOWEST = 10_000
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> tuple[int, ...]:
    """Return `count` different free ports outside the range for outgoing connections.

    The kernel could give a port of that range to a client while the broker is down: a client that
    reconnects on the loopback may even connect to itself, and the broker could not start again.
    Raises ClusterError if too few ports are free.
    """
    first, last = map(int, _OUTGOING.read_text().split())
    candidates = [*range(_LOWEST, first), *range(max(_LOWEST, last + 1), 65_536)]
    found: list[int] = []
    for port in random.sample(candidates, len(candidates)):
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return tuple(found)
    raise ClusterError(
        f"fewer than {count} free ports on {HOST} from {_LOWEST} on, outside {first}-{last}, which"
        " are for outgoing connections; narrow net.ipv4.ip_local_port_range, or end programs that"
        " listen there"
    )


def require_free(ports: Iterable[int]) -> None:
    """Raise ClusterError if something listens on one of these ports of 127.0.0.1."""
    taken = [str(port) for port in ports if not _is_free(port)]
    if taken:
        raise ClusterError(
            f"port {', '.join(taken)} on {HOST} is in use; end the program that listens there,"
            " ask for another port, or leave the choice to groupquake"
        )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the JVM does: lingering connections of a former listener do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
