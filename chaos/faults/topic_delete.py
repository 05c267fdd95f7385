"""`topic.delete`: a topic is deleted; nothing undoes it."""

import threading
from collections.abc import Mapping
from typing import Any, Literal

from chaos.errors import ChaosError
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import await_finding
from scenarios import faults as declared

_KNOWN_WITHIN_MS = 15_000
"""How long the last broker may take to learn that a topic is gone."""


class TopicDelete:
    """Deletes a topic; the metadata of every broker is the witness."""

    kind: Literal["one-shot"] = "one-shot"
    group = None
    details: Mapping[str, Any] = {}

    def __init__(self, topic: str, context: FaultContext) -> None:
        self.target = topic
        self._context = context

    def inject(self) -> None:
        """Delete the topic; the controller has deleted it when this returns."""
        view, topic = self._context.view, self.target
        self._context.unless_stopped(lambda: view.delete_topic(topic))

    def verify(self, stop: threading.Event) -> Finding:
        """Wait until no broker that answers knows the topic."""
        missing = f"a broker still knows topic {self.target}"
        return await_finding(self._look, _KNOWN_WITHIN_MS, missing, stop)

    def _look(self) -> Finding | None:
        known = {}
        for broker in self._context.cluster.brokers:
            try:
                known[broker.id] = self._context.view.partitions(broker.address, self.target)
            except ChaosError:
                continue  # another fault has taken it down
        if not known or any(known.values()):
            return None
        by = ", ".join(f"broker {broker}" for broker in known)
        return Finding(True, f"no partition of {self.target} is known by {by}")


def make(fault: declared.TopicDelete, context: FaultContext) -> tuple[TopicDelete]:
    """Return the deletion of the topic that the fault names."""
    return (TopicDelete(fault.topic, context),)
