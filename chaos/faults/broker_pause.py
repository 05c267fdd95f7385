"""`broker.pause`: a broker freezes; its sockets stay open, and nothing answers."""

import time

from chaos.clusters import Cluster
from chaos.errors import ChaosError
from chaos.faults.broker_probe import BrokerProbe, Question
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import grouped
from chaos.faults.one_broker import OneBroker, cluster_errors
from scenarios import faults as declared

_SETTLING_S = 0.1
"""Until the last thread has stopped: right after SIGSTOP, one request in sixty was answered."""


class BrokerPause(OneBroker):
    """Pauses and resumes one broker; a request that it does not answer meanwhile is the witness."""

    UNDO = "resume-broker"

    def __init__(
        self, broker: int, group: str | None, lasts_ms: int, cluster: Cluster, probe: BrokerProbe
    ) -> None:
        super().__init__(broker, group, lasts_ms, cluster, probe)
        self.undo = cluster.undo("resume", broker)
        self._question: Question | None = None

    def inject(self) -> None:
        """Freeze the broker and send it a request: the kernel accepts the connection."""
        try:
            with cluster_errors():
                self._cluster.pause(self._broker)
                time.sleep(_SETTLING_S)
                self._question = self._probe.ask()
        except OSError as error:
            raise ChaosError(f"{self._probe.address}: takes no connections ({error})") from error

    def verify(self) -> Finding:
        """Return whether the request is still unanswered, and the connection open."""
        assert self._question is not None, "sent when it was paused"
        what = f"ApiVersions sent to {self._probe.address}"
        match self._question.reply():
            case None:
                waited = grouped(self._question.age_ms())
                return Finding(True, f"{what} has had no answer for {waited} ms")
            case b"":
                return Finding(False, f"{what} found the connection closed")
            case _:
                return Finding(False, f"{what} was answered")

    def heal(self) -> str:
        """Let the broker go on."""
        try:
            with cluster_errors():
                self._cluster.resume(self._broker)
        finally:
            if self._question:
                self._question.close()
        return "resumed"


def make(fault: declared.BrokerPause, context: FaultContext) -> tuple[BrokerPause, ...]:
    """Return the pause of each broker that the fault hits now."""
    return tuple(
        BrokerPause(broker, group, fault.down_for_ms, context.cluster, context.probe(broker))
        for broker, group in context.brokers_of(fault)
    )
