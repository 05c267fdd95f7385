"""A cluster as clients see it through the tap."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chaos.clusters.broker_network import BrokerNetwork
from chaos.clusters.clock import Clock
from chaos.clusters.interface import BrokerInfo, Cluster, CutShort, Verb
from chaos.clusters.log_collection import NAME
from chaos.clusters.volume import Volume
from scenarios.client_properties import without_tls


@dataclass(frozen=True, slots=True)
class TappedCluster:
    """A `Cluster` whose `bootstrap` is the tap's; brokers keep their own addresses.

    Towards clients the tap speaks without TLS, on the loopback. With `logs`, the tap's folder, the
    logs of the brokers are those that the tap writes: their own cannot be read.
    """

    cluster: Cluster
    bootstrap: str
    logs: Path | None = None

    @property
    def brokers(self) -> tuple[BrokerInfo, ...]:
        """All brokers, ordered by id."""
        if self.logs is None:
            return self.cluster.brokers
        return tuple(
            replace(info, group_log=self.logs / str(info.id) / NAME)
            for info in self.cluster.brokers
        )

    @property
    def process_ids(self) -> Mapping[int, int]:
        """The process ids of its brokers."""
        return self.cluster.process_ids

    @property
    def client_properties(self) -> Mapping[str, str]:
        """How clients authenticate: TLS ends at the tap."""
        return without_tls(self.cluster.client_properties)

    @property
    def logs_shutdowns(self) -> bool:
        """Whether brokers log what their coordinators do; the tap does not see it."""
        return self.logs is None and self.cluster.logs_shutdowns

    def undo(self, verb: Verb, broker_id: int) -> Mapping[str, Any]:
        """Return what starts or resumes a broker from the journal alone."""
        return self.cluster.undo(verb, broker_id)

    def start(self) -> None:
        """Start the cluster."""
        self.cluster.start()

    def stop(self) -> tuple[CutShort, ...]:
        """Stop the cluster."""
        return self.cluster.stop()

    def kill(self, broker_id: int) -> None:
        """End a broker without a shutdown."""
        self.cluster.kill(broker_id)

    def stop_broker(self, broker_id: int) -> None:
        """Shut a broker down cleanly."""
        self.cluster.stop_broker(broker_id)

    def start_broker(self, broker_id: int) -> None:
        """Start a broker that was killed or stopped."""
        self.cluster.start_broker(broker_id)

    def volume(self, broker_id: int) -> Volume:
        """Return the file system with a broker's data."""
        return self.cluster.volume(broker_id)

    def network(self) -> BrokerNetwork:
        """Return the network between the brokers."""
        return self.cluster.network()

    def clock(self, broker_id: int) -> Clock:
        """Return the wall clock of a broker."""
        return self.cluster.clock(broker_id)

    def pause(self, broker_id: int) -> None:
        """Freeze a broker."""
        self.cluster.pause(broker_id)

    def resume(self, broker_id: int) -> None:
        """Resume a paused broker."""
        self.cluster.resume(broker_id)
