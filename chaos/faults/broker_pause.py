"""`broker.pause`: a broker freezes; its sockets stay open, and nothing answers."""

import threading
import time
from collections.abc import Mapping
from typing import Any, Literal

from chaos.clusters import Cluster, ClusterError
from chaos.errors import ChaosError
from chaos.faults.broker_down import gone_with_cluster
from chaos.faults.broker_probe import BrokerProbe, Question
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import grouped
from chaos.members import Members
from scenarios import faults as declared

_SETTLING_S = 0.1
"""Until the last thread has stopped: right after SIGSTOP, one request in sixty was answered."""


class BrokerPause:
    """Pauses and resumes one broker; a request that it does not answer meanwhile is the witness.

    `group` is the one that the broker was selected for, if any.
    """

    kind: Literal["recoverable"] = "recoverable"
    details: Mapping[str, Any]
    undo: Mapping[str, Any]

    def __init__(
        self, broker: int, group: str | None, lasts_ms: int, cluster: Cluster, probe: BrokerProbe
    ) -> None:
        self.target = f"broker-{broker}"
        self.group = group
        self.lasts_ms = lasts_ms
        self.details = {"broker": broker}
        self.undo = {"do": "resume-broker", "broker": broker}
        self._broker = broker
        self._cluster = cluster
        self._probe = probe
        self._question: Question | None = None

    def inject(self) -> None:
        """Freeze the broker and send it a request: the kernel accepts the connection."""
        try:
            self._cluster.pause(self._broker)
            time.sleep(_SETTLING_S)
            self._question = self._probe.ask()
        except ClusterError as error:
            raise ChaosError(str(error)) from error
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

    @staticmethod
    def heal_from_journal(undo: Mapping[str, Any], _: Members | None) -> str | None:
        """Return that nothing is left to do: `groupquake heal` ends all brokers of the run."""
        return gone_with_cluster("resume-broker", undo)

    def heal(self) -> str:
        """Let the broker go on."""
        try:
            self._cluster.resume(self._broker)
        except ClusterError as error:
            raise ChaosError(str(error)) from error
        finally:
            if self._question:
                self._question.close()
        return "resumed"

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the broker is in sync again."""
        return self._probe.await_back(stop)


def make(fault: declared.BrokerPause, context: FaultContext) -> tuple[BrokerPause, ...]:
    """Return the pause of each broker that the fault hits now."""
    return tuple(
        BrokerPause(broker, group, fault.down_for_ms, context.cluster, context.probe(broker))
        for broker, group in context.brokers_of(fault)
    )
