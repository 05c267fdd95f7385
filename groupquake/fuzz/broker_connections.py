"""The connections of a sequence: those of one group's processes to one broker."""

import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from groupquake.fuzz.script import CLOSE, Step, resolve
from loadtest.wire import Connection, EventLog, Exchange, WireError


@dataclass
class BrokerConnections:
    """Sends steps and receives responses, in one thread.

    `on_response` gets every response, with the number of its step.
    """

    host: str
    port: int
    group: str
    on_response: Callable[[int, Exchange], None] = lambda _number, _exchange: None
    log: EventLog = field(default_factory=EventLog)
    answers: dict[int, dict[str, Any]] = field(init=False)
    steps: list[Step] = field(default_factory=list)
    lost: int = 0
    """How many connections the broker has closed."""
    _connections: dict[str, Connection] = field(default_factory=dict)
    _sockets: dict[str, int] = field(default_factory=dict)
    _numbers: dict[Exchange, int] = field(default_factory=dict)
    _ready: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def __post_init__(self) -> None:
        """Start with the group's name."""
        self.answers = {0: {"groupId": self.group}}

    @property
    def now_ms(self) -> float:
        """The ms since the sequence began."""
        return self.log.now_ms()

    @property
    def awaited(self) -> int:
        """The number of requests on open connections without a response."""
        return len(self._numbers)

    def send_step(self, step: Step) -> Exchange | None:
        """Send the request of a step, or close its connection."""
        self.steps.append(step)
        if step.api == CLOSE:
            self._close(step.connection)
            return None
        body = {"groupId": self.group, **resolve(step.body, self.answers)}
        try:
            connection = self._connection(step)
            exchange = connection.send(step.api, step.version, body)
        except WireError:
            self._lose(step.connection)
            return None
        self._numbers[exchange] = step.number
        return exchange

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

    def finish(self) -> None:
        """Close all connections and stop the clock."""
        self.log.end()
        for name in list(self._connections):
            self._close(name)
        self._ready.close()

    def _connection(self, step: Step) -> Connection:
        if step.connection not in self._connections:
            connection = Connection(
                self.host, self.port, step.client_id, name=step.connection, log=self.log
            )
            self._connections[step.connection] = connection
            self._sockets[step.connection] = connection.fileno()
            self._ready.register(connection.fileno(), selectors.EVENT_READ, step.connection)
        return self._connections[step.connection]

    def _read(self, name: str) -> None:
        try:
            for exchange in self._connections[name].receive(0):
                number = self._numbers.pop(exchange)
                assert exchange.response is not None
                self.answers[number] = exchange.response
                self.on_response(number, exchange)
        except WireError:
            self._lose(name)

    def _lose(self, name: str) -> None:
        self.lost += 1
        self._close(name)

    def _close(self, name: str) -> None:
        connection = self._connections.pop(name, None)
        if connection is not None:
            self._ready.unregister(self._sockets.pop(name))
            for exchange in connection.awaited:
                self._numbers.pop(exchange, None)
            connection.close()
