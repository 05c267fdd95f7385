"""`disk.full`: a broker finds no space for its data, and ends; then it starts again."""

import threading
import time
from contextlib import suppress

from chaos.clusters import Cluster, ClusterError
from chaos.errors import ChaosError
from chaos.faults.broker_probe import BrokerProbe
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.one_broker import OneBroker, cluster_errors
from scenarios import faults as declared

_ENDS_WITHIN_S = 60.0
"""How long a broker may go on: it ends when it writes, and a block may have room left."""
_POLL_S = 0.05
_SAID = "No space left on device"


class DiskFull(OneBroker):
    """Fills the disk of one broker and waits for its end; its log and port are the witness."""

    UNDO = "free-disk"

    def __init__(
        self,
        broker: int,
        group: str | None,
        lasts_ms: int,
        cluster: Cluster,
        probe: BrokerProbe,
        stop: threading.Event,
    ) -> None:
        super().__init__(broker, group, lasts_ms, cluster, probe)
        self._stop = stop
        self._server_log = next(i.server_log for i in cluster.brokers if i.id == broker)
        self._read_to = 0

    def inject(self) -> None:
        """Fill the disk; the broker has ended when this returns, unless the run is to end."""
        with suppress(FileNotFoundError):
            self._read_to = self._server_log.stat().st_size
        with cluster_errors():
            self._cluster.volume(self._broker).fill()
        deadline = time.monotonic() + _ENDS_WITHIN_S
        while self._probe.takes_connections():
            if time.monotonic() > deadline:
                raise ChaosError(f"{self.target} goes on without a free byte on its disk")
            if self._stop.wait(_POLL_S):
                break
        self.details = {**self.details, "log_lines": self._probe.log_lines()}

    def verify(self) -> Finding:
        """Return whether the broker found no space, by its own log, and its port is closed."""
        free = self._cluster.volume(self._broker).free_bytes
        said = _SAID in self._logged()
        closed = not self._probe.takes_connections()
        evidence = (
            f"{free} bytes free on its disk, {'a' if said else 'no'} line '{_SAID}' in its "
            f"server.log, {self._probe.address} takes {'no ' if closed else ''}connections"
        )
        return Finding(said and closed, evidence)

    def heal(self) -> str:
        """Free the disk and start the broker; it takes requests when this returns."""
        with cluster_errors():
            self._cluster.volume(self._broker).free()
            with suppress(ClusterError):  # its process may be ending still
                self._cluster.kill(self._broker)
            self._cluster.start_broker(self._broker)
        return "disk freed, started, and ready for requests"

    def _logged(self) -> str:
        try:
            with self._server_log.open("rb") as log:
                log.seek(self._read_to)
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""


def make(fault: declared.DiskFull, context: FaultContext) -> tuple[DiskFull, ...]:
    """Return the full disk of each broker that the fault hits now."""
    return tuple(
        DiskFull(
            broker, group, fault.down_for_ms, context.cluster, context.probe(broker), context.stop
        )
        for broker, group in context.brokers_of(fault)
    )
