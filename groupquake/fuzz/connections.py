"""The connections of a sequence: those of one group's processes to one broker."""

import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kafka_protocol.kio_bodies import Body
from loadtest.wire import Connection, EventLog, Exchange, WireError


@dataclass
class BrokerConnections:
    """Sends numbered requests and receives responses, in one thread.

    `on_response` gets every response, with the number of its request.
    """

    host: str
    port: int
    group: str
    on_response: Callable[[int, Exchange], None] = lambda _number, _exchange: None
    log: EventLog = field(default_factory=EventLog)
    lost: int = 0
    """How many connections the broker has closed."""
    _connections: dict[str, tuple[Connection, int]] = field(default_factory=dict)
    """The open ones, with their sockets' descriptors, which a closed one no longer has."""
    _numbers: dict[Exchange, int] = field(default_factory=dict)
    _ready: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    @property
    def now_ms(self) -> float:
        """The ms since the sequence began."""
        return self.log.now_ms()

    def send(
        self, number: int, client_id: str, name: str, api: str, version: int, body: Body
    ) -> None:
        """Send a request about the group on a connection; one that is lost sends nothing."""
        try:
            connection = self._connection(client_id, name)
            exchange = connection.send(api, version, {"groupId": self.group, **body})
        except WireError:
            self._lose(name)
        else:
            self._numbers[exchange] = number

    def receive_until(self, until_ms: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Receive responses until a time, or until `enough` returns True."""
        while not enough():
            left_s = (until_ms - self.now_ms) / 1000
            if left_s <= 0:
                return
            if not self._ready.get_map():
                time.sleep(left_s)
                return
            for key, _ in self._ready.select(left_s):
                self._read(key.data)

    def finish(self, within_ms: float) -> None:
        """Await the last responses, close all connections and stop the clock."""
        self.receive_until(self.now_ms + within_ms, lambda: not self._numbers)
        self.log.end()
        for name in list(self._connections):
            self.close(name)
        self._ready.close()

    def close(self, name: str) -> None:
        """Close a connection, as the crash of a process does."""
        if name in self._connections:
            connection, socket = self._connections.pop(name)
            self._ready.unregister(socket)
            for exchange in connection.awaited:
                self._numbers.pop(exchange, None)
            connection.close()

    def _connection(self, client_id: str, name: str) -> Connection:
        if name not in self._connections:
            connection = Connection(self.host, self.port, client_id, name=name, log=self.log)
            self._connections[name] = connection, connection.fileno()
            self._ready.register(connection.fileno(), selectors.EVENT_READ, name)
        return self._connections[name][0]

    def _read(self, name: str) -> None:
        try:
            for exchange in self._connections[name][0].receive(0):
                self.on_response(self._numbers.pop(exchange), exchange)
        except WireError:
            self._lose(name)

    def _lose(self, name: str) -> None:
        self.lost += 1
        self.close(name)
