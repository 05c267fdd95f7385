"""What every kind of cluster offers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from chaos.clusters.broker_network import BrokerNetwork
from chaos.clusters.clock import Clock
from chaos.clusters.ports import HOST
from chaos.clusters.volume import Volume
from chaos.errors import ClusterError
from scenarios.client_properties import without_tls
from scenarios.external import Verb

GROUP_LOG = "group.log"
"""The log of a broker's group coordinator and its group requests, in the folder of the broker."""


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
    host: str = HOST
    security: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def address(self) -> str:
        """`host:port`, as clients write it."""
        return f"{self.host}:{self.port}"


class CutShort(NamedTuple):
    """A broker whose group log ends before its shutdown, and the length of that log.

    It had to be killed, or it runs on while the run is judged.
    """

    broker: int
    log_bytes: int


class Cluster(ABC):
    """A Kafka cluster of a run. Every method raises `ClusterError` and blocks until done.

    `brokers` are all brokers, ordered by id, running or not; `bootstrap` is `host:port` of each,
    comma-separated. `client_properties` say how clients authenticate
    (`scenarios.client_properties`); these may hold secrets. `logs_shutdowns` says whether the last
    line of a coordinator that shuts down is in its `group_log`.
    """

    kind: ClassVar[str]
    """The name of this kind, as `--cluster` takes it."""

    bootstrap: str
    brokers: tuple[BrokerInfo, ...]
    client_properties: Mapping[str, str]
    logs_shutdowns: bool

    def behind_tap(self, bootstrap: str, logs: Path | None) -> Self:
        """Return the same cluster as clients see it, through a tap that listens at `bootstrap`.

        TLS ends at the tap. With `logs`, the tap's folder, the logs of the brokers are those that
        the tap writes, since their own cannot be read; it does not see how coordinators end.
        """
        seen = copy(self)
        seen.bootstrap = bootstrap
        seen.client_properties = without_tls(self.client_properties)
        if logs is not None:
            seen.logs_shutdowns = False
            seen.brokers = tuple(
                replace(info, group_log=logs / str(info.id) / GROUP_LOG) for info in self.brokers
            )
        return seen

    @property
    def process_ids(self) -> Mapping[int, int]:
        """The process ids of the brokers that run on this machine, by broker id."""
        return {}

    def undo(self, verb: Verb, broker_id: int) -> Mapping[str, Any]:
        """Return what starts or resumes a broker from the journal alone.

        It only names a broker of ours: the whole cluster ends when the run has died.
        """
        return {"do": f"{verb}-broker", "broker": broker_id}

    @abstractmethod
    def start(self) -> None:
        """Start every broker and wait until each takes requests."""

    @abstractmethod
    def stop(self) -> tuple[CutShort, ...]:
        """Stop every broker that still runs, paused ones too; nothing is left behind.

        Returns those that had to be killed, whose logs lack the last line of a shutdown.
        """

    @abstractmethod
    def end_logs(self) -> tuple[CutShort, ...]:
        """End the logs that are evidence: what brokers log from now on is not added to them.

        The brokers run on. Returns those whose logs end so.
        """

    @abstractmethod
    def act(self, verb: Verb, broker_id: int) -> None:
        """Change a broker.

        `kill` ends it without a shutdown (SIGKILL), `stop` shuts it down cleanly (SIGTERM); `start`
        starts one that has ended: same ports, same data, same logs. `pause` freezes it (SIGSTOP):
        its sockets stay open and nothing answers; `resume` lets it go on (SIGCONT).
        """

    def volume(self, broker_id: int) -> Volume:
        """Return the file system with a broker's data, if it has one of its own."""
        raise ClusterError(f"the disk of broker {broker_id} is not groupquake's to break")

    def network(self) -> BrokerNetwork:
        """Return the network between the brokers, if it can be broken."""
        raise ClusterError("the network of this cluster is not groupquake's to break")

    def clock(self, broker_id: int) -> Clock:
        """Return the wall clock of a broker, if it can be set."""
        raise ClusterError(f"the clock of broker {broker_id} is not groupquake's to set")
