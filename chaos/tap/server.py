"""The tap: a listener for each broker, made as brokers become known."""

import asyncio
import socket
import sys

from chaos.tap.answers import Address
from chaos.tap.connection import Broker, Connection
from chaos.tap.group_log import GroupLog
from chaos.tap.process import TapSettings
from chaos.tap.rules import Rule, RuleTable
from kafka_protocol.printable import printable

_BACKLOG = 1024


class Tap:
    """Listens for every broker it knows, until `end`. All its methods run in the event loop."""

    def __init__(self, settings: TapSettings) -> None:
        self._settings = settings
        self.rules = RuleTable()
        self.tls = settings.to_brokers()
        self.shows_certificate = settings.shows_certificate
        self._brokers: dict[int, Broker] = {}
        self._servers: list[asyncio.Task[asyncio.Server]] = []

    def start(self) -> dict[int, Address]:
        """Listen for the brokers of the settings; return where, by broker id."""
        for node, address in self._settings.brokers.items():
            host, _, port = address.rpartition(":")
            self.listener(node, Address(host, int(port)))
        return {node: broker.listener for node, broker in self._brokers.items()}

    def listener(self, node: int, address: Address) -> Address:
        """Return where the tap listens for a broker, which has this address now."""
        broker = self._brokers.get(node) or self._listen(node, address)
        if broker.address != address:
            self._say(f"broker {node} is at {address} now, no longer {broker.address}")
            broker.address = address
        return broker.listener

    def _listen(self, node: int, address: Address) -> Broker:
        """Listen for a broker; the kernel takes connections when this returns."""
        host = self._settings.host
        listening = socket.create_server((host, 0), backlog=_BACKLOG)
        listener = Address(host, listening.getsockname()[1])
        loop = asyncio.get_running_loop()
        log = GroupLog(self._settings.folder / str(node) / "group.log", loop.call_soon)
        broker = self._brokers[node] = Broker(node, address, listener, log, self)
        served = loop.create_server(lambda: Connection(broker).protocol(), sock=listening)
        self._servers.append(loop.create_task(served))
        self._say(f"broker {node} at {address}: {listener}")
        return broker

    def add(self, name: str, rule: Rule) -> None:
        """Put a rule in force under an id."""
        self.rules.add(name, rule)
        self._drain()

    def remove(self, name: str) -> int:
        """End a rule, and let pass what it held; return how many requests it has hit."""
        hits = self.rules.remove(name)
        self._drain()
        return hits

    def _drain(self) -> None:
        for broker in self._brokers.values():
            for connection in list(broker.connections):
                connection.drain()

    async def end(self) -> None:
        """End every connection, and write what is left to write."""
        for server in self._servers:
            (await server).close()
        for broker in self._brokers.values():
            for connection in list(broker.connections):
                connection.end("the tap ended")
            broker.log.close()

    @staticmethod
    def _say(what: str) -> None:
        print(printable(what), file=sys.stderr, flush=True)
