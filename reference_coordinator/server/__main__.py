"""A served cluster as a process: its stdin is a socket for commands; it ends when that does.

The first command has the `settings`, each other one says what to `do` to a `broker`.
"""

import asyncio
import json
import socket
import sys
from contextlib import suppress
from pathlib import Path

from reference_coordinator.server import ServedCluster, served
from reference_coordinator.server.apis import load


async def _run() -> None:
    connection = socket.socket(fileno=sys.stdin.fileno())
    load()
    commands, answers = await asyncio.open_connection(sock=connection)

    def answer(error: str | None) -> None:
        reply = {"ok": error is None, "error": error, "result": None}
        answers.write(json.dumps(reply).encode() + b"\n")

    cluster: ServedCluster | None = None
    try:
        with suppress(ConnectionError):  # the runner was killed, and had an answer unread
            while line := await commands.readline():
                command = json.loads(line)
                try:
                    if cluster is None:
                        of = command["settings"]
                        rules, folder = served(of["profile"]), Path(of["folder"])
                        cluster = ServedCluster(of["ports"], rules, of["config"], folder)
                    else:
                        await cluster.act(command["do"], command["broker"])
                    answer(None)
                except (KeyError, ValueError, OSError) as error:
                    answer(f"{type(error).__name__}: {error}")
    finally:
        if cluster is not None:
            cluster.end()


if __name__ == "__main__":
    asyncio.run(_run())
