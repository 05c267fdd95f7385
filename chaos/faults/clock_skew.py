"""`clock.skew`: the wall clock of a broker is off for a while."""

import threading
import time
from collections.abc import Callable

from chaos.clusters import Cluster
from chaos.clusters.clock import Reading
from chaos.faults.broker_probe import BrokerProbe
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import grouped
from chaos.faults.one_broker import OneBroker, cluster_errors
from scenarios import faults as declared

_NOTICED_S = 10.0
"""How long a broker may take to notice; the library asks every second."""
_POLL_S = 0.1


class ClockSkew(OneBroker):
    """Sets the clock of one broker off, and right again; the times in its log are the witness."""

    UNDO = "set-clock"

    def __init__(
        self,
        broker: int,
        group: str | None,
        fault: declared.ClockSkew,
        cluster: Cluster,
        probe: BrokerProbe,
    ) -> None:
        super().__init__(broker, group, fault.lasts_ms, cluster, probe)
        self._by_ms = fault.by_ms
        self._before: Reading | None = None

    def inject(self) -> None:
        """Set the clock off; the broker has noticed when this returns, or it never does."""
        with cluster_errors():
            self._before = self._cluster.clock(self._broker).read()
            self._cluster.clock(self._broker).set_off(self._by_ms)
        self._await(self._is_off)

    def verify(self) -> Finding:
        """Return whether the time in its log is off by so much."""
        now = self._read()
        return Finding(
            self._is_off(now), f"server.log of {self.target} is {_told(now)}, {self._base()}"
        )

    def heal(self) -> str:
        """Set the clock right; the broker has noticed when this returns, or it never does."""
        with cluster_errors():
            self._cluster.clock(self._broker).set_off(0)
        self._await(self._is_right)
        return "clock set right"

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Return whether the time in its log is as before, once the broker is in sync."""
        back = self._probe.await_back(stop)
        now = self._read()
        return Finding(back.holds and self._is_right(now), f"{_told(now)}, {back.evidence}")

    def _read(self) -> Reading | None:
        with cluster_errors():
            return self._cluster.clock(self._broker).read()

    def _await(self, noticed: Callable[[Reading | None], bool]) -> None:
        deadline = time.monotonic() + _NOTICED_S
        while not noticed(self._read()) and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def _is_off(self, now: Reading | None) -> bool:
        return self._apart(now, self._by_ms)

    def _is_right(self, now: Reading | None) -> bool:
        return self._apart(now, 0)

    def _apart(self, now: Reading | None, by_ms: int) -> bool:
        """Whether a clock is certainly nearer to this offset than to the other one."""
        if now is None or self._before is None:
            return False
        near_ms = abs(self._by_ms) / 2
        least_ms = now.least_ms - self._before.most_ms
        most_ms = now.most_ms - self._before.least_ms
        return by_ms - near_ms < least_ms and most_ms < by_ms + near_ms

    def _base(self) -> str:
        return f"{_told(self._before)} before the fault"


def _told(reading: Reading | None) -> str:
    if reading is None:
        return "without a line about our request"
    least, most = grouped(reading.least_ms), grouped(reading.most_ms)
    return f"{least} to {most} ms ahead of our clock"


def make(fault: declared.ClockSkew, context: FaultContext) -> tuple[ClockSkew, ...]:
    """Return the skew of the clock of each broker that the fault hits now."""
    return tuple(
        ClockSkew(broker, group, fault, context.cluster, context.probe(broker))
        for broker, group in context.brokers_of(fault)
    )
