"""What all faults of one broker share: what they hit, and what undoes them from the journal."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

from chaos.clusters import Cluster, ClusterError
from chaos.errors import ChaosError
from chaos.external.hooks import run_again
from chaos.faults.broker_probe import BrokerProbe
from chaos.faults.interface import Finding


class OneBroker:
    """A recoverable fault of one broker; `group` is the one that it was selected for, if any."""

    kind: Literal["recoverable"] = "recoverable"
    UNDO: ClassVar[str]
    """What undoes it, by the name that the journal has."""
    details: Mapping[str, Any]
    undo: Mapping[str, Any]

    def __init__(
        self, broker: int, group: str | None, lasts_ms: int, cluster: Cluster, probe: BrokerProbe
    ) -> None:
        self.target = f"broker-{broker}"
        self.group = group
        self.lasts_ms = lasts_ms
        self.details = {"broker": broker}
        self.undo = {"do": self.UNDO, "broker": broker}
        self._broker = broker
        self._cluster = cluster
        self._probe = probe

    @classmethod
    def heal_from_journal(cls, undo: Mapping[str, Any]) -> str | None:
        """Run the hook of a cluster of a user's; brokers of ours end with all of their cluster."""
        match undo:
            case {"do": cls.UNDO, "broker": int(broker), "hook": dict(hook)}:
                return run_again(broker, hook)
            case {"do": cls.UNDO, "broker": int(broker)}:
                return f"nothing to undo: broker {broker} ends with all that is left of its cluster"
        return None

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the broker is in sync again."""
        return self._probe.await_back(stop)


@contextmanager
def cluster_errors() -> Iterator[None]:
    """Raise what a cluster refuses as ChaosError, with the same text."""
    try:
        yield
    except ClusterError as error:
        raise ChaosError(str(error)) from error
