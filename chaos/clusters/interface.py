"""What every kind of cluster offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from chaos.errors import ChaosError

if TYPE_CHECKING:
    from chaos.clusters.broker_network import BrokerNetwork
    from chaos.clusters.clock import Clock
    from chaos.clusters.volume import Volume

Verb = Literal["start", "resume"]


class ClusterError(ChaosError):
    """A cluster operation failed; the message says what, where and what to do."""


class UnsupportedError(ClusterError):
    """Clusters of that release, or with that coordinator, are not supported."""


LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """One broker: its node id, host and port that clients use, and where it logs.

    `group_log` holds the observation log (coordinator and group request lines), `server_log` the
    rest. A broker that restarts after a fault appends to both. `security` are the client properties
    of that port, which may hold secrets.
    """

    id: int
    port: int
    group_log: Path
    server_log: Path
    host: str = LOOPBACK
    security: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def address(self) -> str:
        """`host:port`, as clients write it."""
        return f"{self.host}:{self.port}"


class CutShort(NamedTuple):
    """A broker that had to be killed, and the length of its group log after that."""

    broker: int
    log_bytes: int


class Cluster(Protocol):
    """A Kafka cluster of a run. Every method raises `ClusterError` and blocks until done."""

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: `host:port` of every broker, comma-separated."""

    @property
    def brokers(self) -> tuple[BrokerInfo, ...]:
        """All brokers, ordered by id, running or not."""

    @property
    def process_ids(self) -> Mapping[int, int]:
        """The process ids of the brokers that run on this machine, by broker id."""

    @property
    def client_properties(self) -> Mapping[str, str]:
        """How clients authenticate (`scenarios.client_properties`); these may hold secrets."""

    @property
    def logs_shutdowns(self) -> bool:
        """Whether the last line of a coordinator that shuts down is in its `group_log`."""

    def undo(self, verb: Verb, broker_id: int) -> Mapping[str, Any]:
        """Return what starts or resumes a broker from the journal alone."""

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

    def volume(self, broker_id: int) -> "Volume":
        """Return the file system with a broker's data, if it has one of its own."""

    def network(self) -> "BrokerNetwork":
        """Return the network between the brokers, if it can be broken."""

    def clock(self, broker_id: int) -> "Clock":
        """Return the wall clock of a broker, if it can be set."""

    def pause(self, broker_id: int) -> None:
        """Freeze a broker (SIGSTOP): its sockets stay open and nothing answers."""

    def resume(self, broker_id: int) -> None:
        """Resume a paused broker (SIGCONT)."""
