"""The ZooKeeper in which brokers before 3.3 keep their metadata: one for a run, a JVM of its own.

It is no target of faults: without it, every broker fails at once.
"""

import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from chaos.clusters.child import Child, launch
from chaos.clusters.config import Properties, as_properties
from chaos.clusters.error_line import error_line
from chaos.clusters.interface import ClusterError
from chaos.clusters.ports import HOST

LOGGING = Path(__file__).parent / "templates" / "log4j-zookeeper.properties"
_HEAP = "-Xmx128m"
_READY_WITHIN_S = 60.0
_FORGOTTEN_WITHIN_S = 120.0
_POLL_S = 0.05
_TICK_MS = 500
"""Its tick; it grants sessions from two ticks to its limit."""
_LONGEST_SESSION_MS = 60_000


class ZooKeeper:
    """A standalone server on a port of 127.0.0.1; its folder holds its data and its log."""

    def __init__(self, folder: Path, port: int) -> None:
        self.address = f"{HOST}:{port}"
        self._port = port
        self._folder = folder
        self._output = folder / "stdout.log"
        self._process: Child | None = None

    def start(self, jvm: Sequence[str]) -> None:
        """Start it and wait until it serves. Raises ClusterError if it ends, or takes a minute."""
        self._folder.mkdir()
        settings = self._folder / "zookeeper.properties"
        properties: Properties = {
            "dataDir": str(self._folder / "data"),
            "clientPortAddress": HOST,
            "clientPort": self._port,
            "tickTime": _TICK_MS,
            "maxSessionTimeout": _LONGEST_SESSION_MS,
            "admin.enableServer": False,  # it would take port 8080
            "4lw.commands.whitelist": "dump",
        }
        settings.write_text(as_properties(properties))
        logging = f"-Dlog4j.configuration={LOGGING.as_uri()}"
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._process = launch([*jvm, _HEAP, logging, main, str(settings)], self._output)
        deadline = time.monotonic() + _READY_WITHIN_S
        while "SessionTracker dump" not in self._dump():
            status = self._process.poll()
            if status is not None or time.monotonic() > deadline:
                trouble = "is not ready" if status is None else f"ended with status {status}"
                reason = error_line(self._output.read_text())
                raise ClusterError(f"ZooKeeper {trouble}: {reason}; see {self._output}")
            time.sleep(_POLL_S)

    def wait_until_forgotten(self, broker_id: int) -> None:
        """Wait until the session of a dead broker has expired.

        Until then the id is registered, and a broker that starts with it gives up (KafkaZkClient).
        Raises ClusterError if that takes two minutes.
        """
        name = f"\t/brokers/ids/{broker_id}"
        deadline = time.monotonic() + _FORGOTTEN_WITHIN_S
        while name in self._dump().splitlines():
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"ZooKeeper still has the session of broker {broker_id} "
                    f"{_FORGOTTEN_WITHIN_S:.0f} s after it ended; lower its session timeout"
                )
            time.sleep(_POLL_S)

    def end(self) -> None:
        """SIGKILL it: its data is of no use after its brokers. Does nothing if it never ran."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _dump(self) -> str:
        """Return its sessions and their ephemeral nodes; an empty text if it does not answer."""
        answer = b""
        with suppress(OSError), socket.create_connection((HOST, self._port), timeout=5) as peer:
            peer.sendall(b"dump")
            while part := peer.recv(65_536):
                answer += part
        return answer.decode(errors="replace")
