"""The connections to a broker: those of a sequence, and one that detects its stalls.

In a stall of the broker, or of the machine that it shares with the fuzzer, timers expire late and
responses come late, which is no fault of the coordinator. The detector sends heartbeats on its own
connection for a group that no sequence uses.
"""

import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from groupquake.background import Background
from groupquake.fuzz.timing import ANSWER_WITHIN_S, BEAT_EVERY_S, STILL_S
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


BEAT = {"groupId": "fuzz-stall-detector", "generationId": -1, "memberId": ""}


@dataclass
class StallDetector(Background):
    """Sends heartbeats to a broker as long as the context lasts, in one thread.

    Times are those of `time.monotonic`, in s.
    """

    thread_name = "stall-detector"
    host: str
    port: int
    _stalls: list[tuple[float, float]] = field(default_factory=list)
    _last_response_s: float = field(default_factory=time.monotonic)

    def stalls(self, from_s: float, until_s: float) -> list[tuple[float, float]]:
        """List the stalls between two times, cut to them."""
        waits_since_s = self._last_response_s  # read first: a response may end this stall meanwhile
        known = [*self._stalls, (waits_since_s, time.monotonic())]
        cut = ((max(begun, from_s), min(ended, until_s)) for begun, ended in known)
        return [(begun, ended) for begun, ended in cut if ended - begun > STILL_S]

    def _run(self) -> None:
        connection = Connection(self.host, self.port, "stall-detector")
        try:
            while not self._over.wait(BEAT_EVERY_S):
                connection.ask("HEARTBEAT", 0, BEAT, ANSWER_WITHIN_S)
                self._note_response()
        except WireError:
            return  # the broker is gone; the sequences find that out too
        finally:
            connection.close()

    def _note_response(self) -> None:
        now_s = time.monotonic()
        if now_s - self._last_response_s > STILL_S:
            self._stalls.append((self._last_response_s, now_s))
        self._last_response_s = now_s
