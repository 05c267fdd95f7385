"""`broker.slow-network`: what a broker sends to the others passes at a low rate."""

from chaos.clusters import Cluster, ClusterError
from chaos.faults.broker_probe import BrokerProbe
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import grouped
from chaos.faults.one_broker import OneBroker, cluster_errors
from scenarios import faults as declared


class BrokerSlowNetwork(OneBroker):
    """Limits what one broker sends to the others; the kernel's own counters are the witness."""

    UNDO = "unslow-broker"

    def __init__(
        self,
        broker: int,
        group: str | None,
        fault: declared.BrokerSlowNetwork,
        cluster: Cluster,
        probe: BrokerProbe,
    ) -> None:
        super().__init__(broker, group, fault.for_ms, cluster, probe)
        self._rate = fault.rate

    def inject(self) -> None:
        """Limit the rate, from now on."""
        with cluster_errors():
            self._cluster.network().slow(self._broker, self._rate)

    def verify(self) -> Finding:
        """Return whether packets of the broker had to wait."""
        try:
            shaped = self._cluster.network().shaped(self._broker)
        except ClusterError as error:
            return Finding(False, str(error))
        return Finding(
            shaped.sent > 0 and shaped.waited > 0,
            f"{self.target} sent {grouped(shaped.sent)} bytes at {self._rate}, and had to wait "
            f"{grouped(shaped.waited)} times",
        )

    def heal(self) -> str:
        """Remove the limit."""
        with cluster_errors():
            self._cluster.network().unslow(self._broker)
        return "no limit"


def make(fault: declared.BrokerSlowNetwork, context: FaultContext) -> tuple[BrokerSlowNetwork, ...]:
    """Return the slow network of each broker that the fault hits now."""
    return tuple(
        BrokerSlowNetwork(broker, group, fault, context.cluster, context.probe(broker))
        for broker, group in context.brokers_of(fault)
    )
