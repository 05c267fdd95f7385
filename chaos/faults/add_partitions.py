"""`topic.add-partitions`: a topic gets more partitions.

Kafka cannot remove partitions, so nothing undoes it.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from chaos.cluster_view import ClusterView
from chaos.clusters import BrokerInfo
from chaos.errors import ChaosError
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import await_finding
from scenarios import faults as declared

_KNOWN_WITHIN_MS = 15_000
"""How long the last broker may take to learn of a partition and of its leader."""


class AddPartitions:
    """Gives a topic `to` partitions; the metadata of every broker is the witness.

    `add` requests them.
    """

    kind: Literal["one-shot"] = "one-shot"
    group = None
    details: Mapping[str, Any]

    def __init__(
        self,
        topic: str,
        to: int,
        add: Callable[[], None],
        brokers: Sequence[BrokerInfo],
        view: ClusterView,
    ) -> None:
        self.target = topic
        self.details = {}
        self._to = to
        self._add = add
        self._brokers = brokers
        self._view = view

    def inject(self) -> None:
        """Request the partitions; the controller has created them when this returns."""
        self._add()

    def verify(self, stop: threading.Event) -> Finding:
        """Wait until every broker that answers knows `to` partitions, each with a leader."""
        missing = f"not every broker knows {self._to} partitions of {self.target} with a leader"
        return await_finding(self._look, _KNOWN_WITHIN_MS, missing, stop)

    def _look(self) -> Finding | None:
        known = {}
        for broker in self._brokers:
            try:
                known[broker.id] = self._view.partitions(broker.address, self.target)
            except ChaosError:
                continue  # another fault has taken it down
        if not known or set(known.values()) != {self._to}:
            return None
        known_by = ", ".join(f"broker {broker}" for broker in known)
        return Finding(True, f"{self._to} partitions of {self.target} with leaders, by {known_by}")


def make(fault: declared.AddPartitions, context: FaultContext) -> tuple[AddPartitions]:
    """Return the growth of the topic that the fault names."""

    def add() -> None:
        context.unless_stopped(lambda: context.view.add_partitions(fault.topic, fault.to))

    brokers = context.cluster.brokers
    return (AddPartitions(fault.topic, fault.to, add, brokers, context.view),)
