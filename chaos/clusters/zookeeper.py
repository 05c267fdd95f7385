"""The ZooKeeper in which brokers before 3.3 keep their metadata: one for a run, a JVM of its own.

It is no target of faults: without it, every broker fails at once.
"""

import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from chaos.clusters.java import Process, error_line, launch
from chaos.clusters.ports import HOST
from chaos.clusters.releases import TEMPLATES, as_properties
from chaos.errors import ClusterError
from chaos.timing import (
    ZOOKEEPER_FORGETS_S,
    ZOOKEEPER_LONGEST_SESSION_MS,
    ZOOKEEPER_READY_S,
    ZOOKEEPER_TICK_MS,
)
from chaos.waiting import until

LOGGING = TEMPLATES / "log4j-zookeeper.properties"
_HEAP = "-Xmx128m"


class ZooKeeper:
    """A standalone server on a port of 127.0.0.1; its folder holds its data and its log."""

    def __init__(self, folder: Path, port: int) -> None:
        self.address = f"{HOST}:{port}"
        self._port = port
        self._folder = folder
        self._output = folder / "stdout.log"
        self._process: Process | None = None

    def start(self, jvm: Sequence[str]) -> None:
        """Start it and wait until it serves. Raises ClusterError if it ends, or takes a minute."""
        self._folder.mkdir()
        settings = self._folder / "zookeeper.properties"
        settings.write_text(
            as_properties(
                {
                    "dataDir": str(self._folder / "data"),
                    "clientPortAddress": HOST,
                    "clientPort": self._port,
                    "tickTime": ZOOKEEPER_TICK_MS,
                    "maxSessionTimeout": ZOOKEEPER_LONGEST_SESSION_MS,
                    "admin.enableServer": False,  # it would take port 8080
                    "4lw.commands.whitelist": "dump",
                }
            )
        )
        logging = f"-Dlog4j.configuration={LOGGING.as_uri()}"
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        process = launch([*jvm, _HEAP, logging, main, str(settings)], self._output)
        self._process = process
        until(lambda: self._serves() or process.poll() is not None, ZOOKEEPER_READY_S)
        if not self._serves():
            status = process.poll()
            trouble = "is not ready" if status is None else f"ended with status {status}"
            reason = error_line(self._output.read_text())
            raise ClusterError(f"ZooKeeper {trouble}: {reason}; see {self._output}")

    def wait_until_forgotten(self, broker_id: int) -> None:
        """Wait until the session of a dead broker has expired.

        Until then the id is registered, and a broker that starts with it gives up (KafkaZkClient).
        Raises ClusterError if that takes two minutes.
        """
        name = f"\t/brokers/ids/{broker_id}"
        if not until(lambda: name not in self._dump().splitlines(), ZOOKEEPER_FORGETS_S):
            raise ClusterError(
                f"ZooKeeper still has the session of broker {broker_id} "
                f"{ZOOKEEPER_FORGETS_S:.0f} s after it ended; lower its session timeout"
            )

    def end(self) -> None:
        """SIGKILL it: its data is of no use after its brokers. Does nothing if it never ran."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _serves(self) -> bool:
        return "SessionTracker dump" in self._dump()

    def _dump(self) -> str:
        """Return its sessions and their ephemeral nodes; an empty text if it does not answer."""
        answer = b""
        with suppress(OSError), socket.create_connection((HOST, self._port), timeout=5) as peer:
            peer.sendall(b"dump")
            while part := peer.recv(65_536):
                answer += part
        return answer.decode(errors="replace")
