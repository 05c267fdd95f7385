"""A served cluster in a thread of the test: what a `step` may be handed to."""

import asyncio
import threading
from contextlib import contextmanager

from chaos.clusters.ports import free_ports
from reference_coordinator.classic.step import step
from reference_coordinator.server import ServedCluster, served


class Serving:
    """The cluster, its ports, and what is done in its loop."""

    def __init__(self, loop, cluster, ports):
        self.loop, self.cluster, self.ports = loop, cluster, ports
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def act(self, verb, broker):
        self.do(self.cluster.act(verb, broker))

    def ask(self, function):
        async def asked():
            return function()

        return self.do(asked())


@contextmanager
def serving(folder=None, *, brokers=3, profile="4.3", config=None, coordinator=step):
    """Serve, in a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    ports = free_ports(brokers)

    async def made():
        cluster = ServedCluster(ports, served(profile), config or {}, folder, coordinator)
        await cluster.start()
        return cluster

    cluster = asyncio.run_coroutine_threadsafe(made(), loop).result(60)
    running = Serving(loop, cluster, ports)
    try:
        yield running
    finally:
        running.ask(cluster.end)
        running.do(asyncio.sleep(0))  # the ends of its connections
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
