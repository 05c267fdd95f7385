"""`topic.add-partitions`: a topic grows, and the leader of each group has to notice.

Kafka takes no partition away again, so nothing undoes it.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from chaos.cluster_view import ClusterView
from chaos.clusters import BrokerInfo
from chaos.errors import ChaosError
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import await_finding

_KNOWN_WITHIN_MS = 15_000
"""What it takes until the last broker has heard of a partition and of its leader."""


class AddPartitions:
    """Lets a topic have `to` partitions; the metadata of every broker is the witness.

    `add` asks for them.
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
        """Ask for the partitions; the controller has agreed when this returns."""
        self._add()

    def verify(self, stop: threading.Event) -> Finding:
        """Wait until every broker that answers knows so many partitions, each with a leader."""
        missing = f"not every broker knows {self._to} partitions of {self.target} with a leader"
        return await_finding(self._look, _KNOWN_WITHIN_MS, missing, stop)

    def _look(self) -> Finding | None:
        known = {}
        for broker in self._brokers:
            try:
                known[broker.id] = self._view.partitions(broker.port, self.target)
            except ChaosError:
                continue  # it is away, as another fault wants it
        if not known or set(known.values()) != {self._to}:
            return None
        told = ", ".join(f"broker {broker}" for broker in known)
        return Finding(True, f"{self._to} partitions of {self.target} with leaders, by {told}")
