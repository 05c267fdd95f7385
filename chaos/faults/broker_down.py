"""`broker.kill`, `broker.stop`, `broker.restart`: a broker ends, and starts with its old data."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from chaos.clusters import Cluster, ClusterError
from chaos.errors import ChaosError
from chaos.faults.broker_probe import BrokerProbe
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.members import Members
from scenarios import BrokerFault


class BrokerDown:
    """Kills or stops one broker and starts it; its port and its last log line are the witness.

    The coordinator of a broker that stops `cleanly` logs its shutdown in group.log; that of a
    killed one does not. `group` is the one that the broker was selected for, if any.
    """

    kind: Literal["recoverable"] = "recoverable"
    details: Mapping[str, Any]
    undo: Mapping[str, Any]

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
        self.target = f"broker-{broker}"
        self.group = group
        self.lasts_ms = lasts_ms
        self.details = {"broker": broker}
        self.undo = {"do": "start-broker", "broker": broker}
        self._cleanly = cleanly
        self._broker = broker
        self._cluster = cluster
        self._probe = probe
        self._is_down = False

    def inject(self) -> None:
        """Take the broker down; its process is gone when this returns."""
        self._probe.note_log()
        act = self._cluster.stop_broker if self._cleanly else self._cluster.kill
        try:
            act(self._broker)
        except ClusterError as error:
            raise ChaosError(str(error)) from error
        self._is_down = True
        self.details = {**self.details, "log_lines": self._probe.log_lines()}

    def verify(self) -> Finding:
        """Return whether its port is closed, and whether it ended as intended."""
        shut_down = self._probe.logged_shutdown()
        last = f"{'a' if shut_down else 'no'} goodbye of its coordinator in its group.log"
        if self._probe.takes_connections():
            return Finding(False, f"{self._probe.address} takes connections, {last}")
        return Finding(
            shut_down == self._cleanly, f"{self._probe.address} takes no connections, {last}"
        )

    @staticmethod
    def heal_from_journal(undo: Mapping[str, Any], _: Members | None) -> str | None:
        """Return that nothing is left to do: `groupquake heal` ends all brokers of the run."""
        return gone_with_cluster("start-broker", undo)

    def heal(self) -> str:
        """Start the broker; it takes requests when this returns."""
        try:
            if not self._is_down:  # it may be shutting down still, and would block the new process
                with suppress(ClusterError):
                    self._cluster.kill(self._broker)
            self._cluster.start_broker(self._broker)
        except ClusterError as error:
            raise ChaosError(str(error)) from error
        return "started, and ready for requests"

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the broker is in sync again."""
        return self._probe.await_back(stop)


def make(
    fault: BrokerFault, lasts_ms: int, context: FaultContext, *, cleanly: bool
) -> tuple[BrokerDown, ...]:
    """Return the end of each broker that the fault hits now."""
    return tuple(
        BrokerDown(broker, group, lasts_ms, context.cluster, context.probe(broker), cleanly=cleanly)
        for broker, group in context.brokers_of(fault)
    )


def gone_with_cluster(do: str, undo: Mapping[str, Any]) -> str | None:
    """Return what became of a broker whose `undo` is `do`, once all brokers have ended."""
    match undo:
        case {"do": str(found), "broker": int(broker)} if found == do:
            return f"nothing to undo: broker {broker} ends with all that is left of its cluster"
    return None
