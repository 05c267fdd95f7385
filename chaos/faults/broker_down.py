"""`broker.kill`, `broker.stop`, `broker.restart`: a broker goes, and comes back with its data."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from chaos.clusters import Cluster, ClusterError
from chaos.errors import ChaosError
from chaos.faults.broker_probe import BrokerProbe
from chaos.faults.interface import Finding


class BrokerDown:
    """Kills or stops one broker, and starts it; its port and its last words are the witness.

    One that goes `cleanly` leaves a goodbye in its group.log, one that is killed does not.
    `group` is the one that it was chosen for, if any.
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

    def verify(self) -> Finding:
        """Tell whether nobody listens at its port, and whether it went as it was meant to."""
        goodbye = self._probe.said_goodbye()
        last = f"{'a' if goodbye else 'no'} goodbye of its coordinator in its group.log"
        if self._probe.takes_connections():
            return Finding(False, f"{self._probe.address} takes connections, {last}")
        return Finding(
            goodbye == self._cleanly, f"{self._probe.address} takes no connections, {last}"
        )

    def heal(self) -> str:
        """Start the broker; it takes requests when this returns."""
        try:
            if not self._is_down:  # on its way at most: let it not be in the way of the new one
                with suppress(ClusterError):
                    self._cluster.kill(self._broker)
            self._cluster.start_broker(self._broker)
        except ClusterError as error:
            raise ChaosError(str(error)) from error
        return "started, and ready for requests"

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the cluster has the broker back in sync."""
        return self._probe.await_back(stop)
