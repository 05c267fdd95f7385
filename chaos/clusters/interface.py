"""What every kind of cluster offers."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol


class ClusterError(Exception):
    """A cluster operation failed; the message says what, where and what to do."""


class UnsupportedError(ClusterError):
    """Clusters of that release, or with that coordinator, are not supported."""


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """One broker: its node id, the port that clients use, and where it logs.

    `group_log` holds the observation log (coordinator and group request lines), `server_log` the
    rest. A broker that restarts after a fault appends to both.
    """

    id: int
    port: int
    group_log: Path
    server_log: Path


class CutShort(NamedTuple):
    """A broker that had to be killed, and the length of its group log after that."""

    broker: int
    log_bytes: int


class Cluster(Protocol):
    """A Kafka cluster that a run owns. Every method raises `ClusterError` and blocks until done."""

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: `host:port` of every broker, comma-separated."""

    @property
    def brokers(self) -> tuple[BrokerInfo, ...]:
        """All brokers, ordered by id, running or not."""

    def start(self) -> None:
        """Start every broker and wait until each takes requests."""

    def stop(self) -> tuple[CutShort, ...]:
        """Stop every broker that still runs, paused ones too; nothing is left behind.

        Returns those that had to be killed, whose logs lack the last line of a shutdown.
        """

    def kill(self, broker_id: int) -> None:
        """End a broker without a shutdown (SIGKILL)."""

    def stop_broker(self, broker_id: int) -> None:
        """Shut a broker down cleanly (SIGTERM)."""

    def start_broker(self, broker_id: int) -> None:
        """Start a broker that was killed or stopped: same ports, same data, same logs."""

    def pause(self, broker_id: int) -> None:
        """Freeze a broker (SIGSTOP): its sockets stay open and nothing answers."""

    def resume(self, broker_id: int) -> None:
        """Resume a paused broker (SIGCONT)."""
