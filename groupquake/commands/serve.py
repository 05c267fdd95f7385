"""`groupquake oracle serve`: the reference coordinator as brokers that clients connect to."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from chaos.clusters.ports import HOST, require_free
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.signals import SIGNALS
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.server import ServedCluster, served
from reference_coordinator.server.apis import load


@click.command()
@click.option("--profile", metavar="P", default="4.3", show_default=True,
              help="The rules: a release from 4.0 on, kip-345, or another proposal.")  # fmt: skip
@click.option("--port", type=click.IntRange(1, 65_531), default=9092, show_default=True,
              help="Port of the first broker on 127.0.0.1; the others follow.")  # fmt: skip
@click.option("--brokers", type=click.IntRange(1, 5), default=3, show_default=True,
              help="Number of brokers.")  # fmt: skip
@click.option("--log", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Folder for the brokers' logs, <id>/group.log.  [none are written]")  # fmt: skip
def serve(profile: str, port: int, brokers: int, folder: Path | None) -> Exit:
    """Serve the reference coordinator to Kafka clients, until Ctrl-C: no Java, no disk.

    Any client joins groups, commits and reads; topics and records are in memory alone.
    """
    try:
        rules = served(profile)
    except ValueError as error:
        raise click.UsageError(f"--profile: {error}") from error
    ports = range(port, port + brokers)
    require_free(ports)
    load()
    try:
        asyncio.run(_served(ports, rules, folder))
    except OSError as error:
        raise click.UsageError(f"{error.filename or folder}: {error.strerror}") from error
    return Exit.PASS


async def _served(ports: Sequence[int], rules: Profile, folder: Path | None) -> None:
    cluster, over = ServedCluster(ports, rules, folder=folder), asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt(_: str) -> None:  # an exception in a callback of the loop would be lost
        loop.call_soon_threadsafe(over.set)

    try:
        await cluster.start()
        bootstrap = ",".join(f"{HOST}:{port}" for port in ports)
        Console().progress(f"{rules.name} is served at {bootstrap}; end it with Ctrl-C")
        with SIGNALS.handling(interrupt):
            await over.wait()
    finally:
        cluster.end()
