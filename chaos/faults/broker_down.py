"""`broker.kill`, `broker.stop`, `broker.restart`: a broker ends, and starts with its old data."""

from contextlib import suppress

from chaos.clusters import Cluster, ClusterError
from chaos.errors import ChaosError
from chaos.faults.broker_probe import BrokerProbe
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.one_broker import OneBroker, cluster_errors
from scenarios import BrokerFault


class BrokerDown(OneBroker):
    """Kills or stops one broker and starts it; its port and its last log line are the witness.

    The coordinator of a broker that stops `cleanly` logs its shutdown in group.log; that of a
    killed one does not.
    """

    UNDO = "start-broker"

    def __init__(
        self,
        broker: int,
        group: str | None,
        lasts_ms: int,
        cluster: Cluster,
        probe: BrokerProbe,
        *,
        cleanly: bool,
    ) -> None:
        super().__init__(broker, group, lasts_ms, cluster, probe)
        self.undo = cluster.undo("start", broker)
        self._cleanly = cleanly
        self._is_down = False
        self._ours = "hook" not in self.undo

    def inject(self) -> None:
        """Take the broker down; its process is gone when this returns."""
        self._probe.note_log()
        act = self._cluster.stop_broker if self._cleanly else self._cluster.kill
        with cluster_errors():
            act(self._broker)
        self._is_down = True
        self.details = {**self.details, "log_lines": self._probe.log_lines()}

    def verify(self) -> Finding:
        """Return whether its port is closed, and whether it ended as intended."""
        shut_down = self._probe.logged_shutdown()
        try:
            door = self._probe.door()
        except ChaosError as error:
            return Finding(False, str(error))
        if not self._cluster.logs_shutdowns:
            return Finding(not door.takes, str(door))
        last = f"{'a' if shut_down else 'no'} goodbye of its coordinator in its group.log"
        return Finding(not door.takes and shut_down == self._cleanly, f"{door}, {last}")

    def heal(self) -> str:
        """Start the broker; it takes requests when this returns."""
        with cluster_errors():
            # It may be shutting down still, and would block the new process.
            if self._ours and not self._is_down:
                with suppress(ClusterError):
                    self._cluster.kill(self._broker)
            self._cluster.start_broker(self._broker)
        return "started, and ready for requests"


def make(
    fault: BrokerFault, lasts_ms: int, context: FaultContext, *, cleanly: bool
) -> tuple[BrokerDown, ...]:
    """Return the end of each broker that the fault hits now."""
    return tuple(
        BrokerDown(broker, group, lasts_ms, context.cluster, context.probe(broker), cleanly=cleanly)
        for broker, group in context.brokers_of(fault)
    )
