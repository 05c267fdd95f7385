"""Brokers that are a port and a log, and what the cluster would say of them."""

import socket
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from chaos.clusters import BrokerInfo, ClusterError
from chaos.errors import ChaosError

SHUTDOWN_LINE = (
    "kafka-shutdown-hook INFO [GroupCoordinator id=1] Shutdown complete."
    " (org.apache.kafka.coordinator.group.GroupCoordinatorService)"
)


class FakeBroker:
    """Answers every client that connects, unless it is down or paused."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.port = 0
        self.goes_on = threading.Event()
        self.goes_on.set()
        self._listener: socket.socket | None = None
        self._connections: list[socket.socket] = []
        self.start()

    @property
    def is_up(self) -> bool:
        return self._listener is not None

    def start(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def end(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def end_connections(self) -> None:
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if connection.recv(100):
                self.goes_on.wait()
                connection.sendall(b"\0\0\0\6\0\0\0\1\0\0")


class FakeCluster:
    """A `Cluster`, and the `ClusterView` of it. Broker 1 has every role by default.

    Brokers in `immortal` survive whatever ends a broker, those in `lost` do not come back. Those in
    `lagging` are never in sync again, or not as the broker in `seen_lagging` knows it, and those in
    `mute` know nothing. Those in `behind` know so few partitions of any topic.
    """

    def __init__(self, *logs: Path) -> None:
        self._by_id = {number: FakeBroker(log) for number, log in enumerate(logs, 1)}
        self.immortal: set[int] = set()
        self.lagging: set[int] = set()
        self.seen_lagging: dict[int, set[int]] = {}
        self.mute: set[int] = set()
        self.lost: set[int] = set()
        self.coordinates: dict[str, int] = {}
        self.leads: dict[tuple[str, int], int] = {}
        self.topics: dict[str, int] = {"orders": 4}
        self.behind: dict[int, int] = {}
        self.sizes: dict[str, int] = {}
        self.controls = 1
        self.answers_from_call = 1
        self.calls: list[tuple[str, int]] = []

    def close(self) -> None:
        for broker in self._by_id.values():
            broker.goes_on.set()
            broker.end()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self._by_id.values())

    @property
    def brokers(self) -> tuple[BrokerInfo, ...]:
        return tuple(
            BrokerInfo(number, broker.port, broker.log, broker.log.with_name("server.log"))
            for number, broker in self._by_id.items()
        )

    process_ids: ClassVar[dict[int, int]] = {}
    client_properties: ClassVar[dict[str, str]] = {}
    logs_shutdowns = True

    def undo(self, verb: str, broker_id: int) -> dict[str, Any]:
        return {"do": f"{verb}-broker", "broker": broker_id}

    def start(self) -> None: ...
    def stop(self) -> None: ...

    def act(self, verb: str, broker_id: int) -> None:
        broker, is_immortal = self._by_id[broker_id], broker_id in self.immortal
        self.calls.append((verb, broker_id))
        if broker.is_up == (verb == "start"):
            raise ClusterError(
                f"broker {broker_id} {'already runs' if broker.is_up else 'is down'}"
            )
        match verb:
            case "kill" if not is_immortal:
                broker.end()
            case "stop" if is_immortal:
                raise ClusterError(f"broker {broker_id} still runs 20 s after SIGTERM")
            case "stop":
                with broker.log.open("a") as log:
                    log.write(f"1 1795261540000 1 {SHUTDOWN_LINE}\n")
                broker.end()
            case "start" if broker_id in self.lost:
                raise ClusterError(f"broker {broker_id} not ready after 60 s")
            case "start":
                broker.start()
            case "pause" if not is_immortal:
                broker.goes_on.clear()
            case "resume":
                broker.goes_on.set()

    def end_connections(self, broker_id: int) -> None:
        self._by_id[broker_id].end_connections()

    def coordinator(self, group: str, address: str | None = None) -> int:
        if address is not None:
            self._asked(address)
        return self.coordinates.get(group, 1)

    def move_coordinator(self, group: str, to: int | None, *, keeps_replica: bool = True) -> int:
        self.coordinates[group] = to or self.coordinator(group) % len(self._by_id) + 1
        return self.coordinates[group]

    def probes(self) -> dict[str, Callable[[str], int | str]]:
        return {"group.members": self.sizes.__getitem__, "group.state": lambda _: "Stable"}

    def delete_topic(self, topic: str) -> None:
        del self.topics[topic]

    def leader(self, topic: str, partition: int) -> int:
        return self.leads.get((topic, partition), 1)

    def controller(self) -> int:
        self.answers_from_call -= 1
        if self.answers_from_call > 0:
            raise ChaosError("there is no active controller")
        return self.controls

    def add_partitions(self, topic: str, to: int) -> None:
        self.topics[topic] = to

    def partitions(self, address: str, topic: str) -> int:
        asked = self._asked(address, self.mute)
        return self.behind.get(asked, self.topics.get(topic, 0))

    def in_sync(self, address: str) -> frozenset[int]:
        asked = self._asked(address, self.mute)
        up = {number for number, broker in self._by_id.items() if broker.is_up}
        return frozenset(up - self.lagging - self.seen_lagging.get(asked, set()))

    def _asked(self, address: str, but: Collection[int] = ()) -> int:
        """The broker that answers at an address."""
        port = int(address.rpartition(":")[2])
        for number, broker in self._by_id.items():
            if broker.is_up and broker.port == port and number not in but:
                return number
        raise ChaosError(f"no broker answers at {address}")
