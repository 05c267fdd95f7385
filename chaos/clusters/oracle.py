"""The oracle as a cluster: brokers of one process of ours, whose coordinator is the reference."""

from pathlib import Path
from typing import Unpack

from chaos.child import Child, launch
from chaos.clusters.interface import BrokerInfo
from chaos.clusters.local import LocalBroker, LocalCluster, Settings
from chaos.clusters.releases import as_properties
from chaos.errors import ClusterError
from chaos.timing import ORACLE_ANSWER_S, ORACLE_START_S, STOP_S
from scenarios.external import Verb


class Server(Child):
    """The process of all brokers."""

    name, log = "the oracle", "brokers/oracle.log"
    gone = refused = ClusterError


class OracleBroker(LocalBroker):
    """A broker of the oracle's process: its listener, its connections, its coordinator."""

    server: Server
    _status: int | None = 0

    @property
    def exit_status(self) -> int | None:
        """What a process of its own would have ended with; that of all may end early."""
        return self.server.exit_status if self._status is None else self._status

    def send(self, verb: Verb) -> None:
        """Change it; it has ended, or is frozen, when this returns."""
        if self._status is not None:
            raise self._not_running()
        self.server.ask(ORACLE_ANSWER_S, do=verb, broker=self.info.id)
        self._status = {"kill": -9, "stop": 0}.get(verb)

    def is_ready(self) -> bool:
        """Return True: it takes requests once it is launched."""
        return True

    def _launch(self) -> None:
        self.server.ask(ORACLE_ANSWER_S, do="start", broker=self.info.id)
        self._status = None


class OracleCluster(LocalCluster):
    """A `LocalCluster` of the reference coordinator, which serves the rules of a profile.

    It ends when this process does. `profile` is a name as `groupquake oracle serve` takes it; by
    default the rules are those of the version.
    """

    kind = "oracle"

    def __init__(
        self, run_id: str, folder: Path, *, profile: str | None = None, **settings: Unpack[Settings]
    ) -> None:
        super().__init__(run_id, folder, **settings)
        self._profile = profile or self._version
        self._server: Server | None = None
        self._brokers: dict[int, OracleBroker] = self._each(OracleBroker)

    def _set_up(self) -> None:
        self._write_files()
        self._server = Server(*launch("reference_coordinator.server", self._folder / "oracle.log"))
        ports = [info.port for info in self.brokers]
        given = {"profile": self._profile, "config": self._config, "folder": str(self._folder)}
        self._server.ask(ORACLE_START_S, do="serve", settings={**given, "ports": ports})
        for broker in self._brokers.values():
            broker.server = self._server

    def _properties(self, _: BrokerInfo) -> str:
        return as_properties(self._config)

    def _clean_up(self) -> None:
        if self._server is not None:
            self._server.end(STOP_S)
            self._server = None
