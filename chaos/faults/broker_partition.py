"""`broker.partition`: nothing passes between a broker and the others; clients reach it."""

import threading

from chaos.clusters import Cluster, ClusterError
from chaos.faults.broker_probe import BACK_WITHIN_MS, BrokerProbe
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import await_finding
from chaos.faults.one_broker import OneBroker, cluster_errors
from scenarios import faults as declared


class BrokerPartition(OneBroker):
    """Parts one broker from the others; connections from within its container are the witness."""

    UNDO = "join-broker"

    def __init__(
        self, broker: int, group: str | None, lasts_ms: int, cluster: Cluster, probe: BrokerProbe
    ) -> None:
        super().__init__(broker, group, lasts_ms, cluster, probe)
        self._others: tuple[int, ...] = ()

    def inject(self) -> None:
        """Let no packet pass, when this returns; remember which brokers it reached before."""
        with cluster_errors():
            network = self._cluster.network()
            self._others = network.reaches(self._broker)
            network.part(self._broker)

    def verify(self) -> Finding:
        """Return whether it reaches none of the brokers that it reached, and clients reach it."""
        try:
            reached = self._cluster.network().reaches(self._broker)
        except ClusterError as error:
            return Finding(False, str(error))
        answers = self._probe.answers()
        held = bool(self._others) and not reached and answers
        client = f"{self._probe.address} {'answers' if answers else 'does not answer'} clients"
        return Finding(held, f"{self.target} {_reaches(reached, self._others)}, {client}")

    def heal(self) -> str:
        """Let packets pass."""
        with cluster_errors():
            self._cluster.network().join(self._broker)
        return "packets pass"

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until it reaches the others, and is in sync again."""
        reached = await_finding(
            self._look_for_others, BACK_WITHIN_MS, f"{self.target} does not reach all others", stop
        )
        back = self._probe.await_back(stop)
        return Finding(reached.holds and back.holds, f"{reached.evidence}, {back.evidence}")

    def _look_for_others(self) -> Finding | None:
        try:
            reached = self._cluster.network().reaches(self._broker)
        except ClusterError:
            return None
        if not set(self._others) <= set(reached):
            return None
        return Finding(True, f"it {_reaches(reached, self._others)}")


def make(fault: declared.BrokerPartition, context: FaultContext) -> tuple[BrokerPartition, ...]:
    """Return the partition of each broker that the fault hits now."""
    return tuple(
        BrokerPartition(broker, group, fault.for_ms, context.cluster, context.probe(broker))
        for broker, group in context.brokers_of(fault)
    )


def _reaches(reached: tuple[int, ...], others: tuple[int, ...]) -> str:
    """Say which brokers one reaches; without any, of which."""
    if reached:
        return f"reaches broker {', '.join(map(str, reached))}"
    return f"does not reach broker {' or '.join(map(str, others))}" if others else "reaches none"
