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
    cluster: ServedCluster | None = None
    try:
        with suppress(ConnectionError):  # the runner was killed, and had an answer unread
            while line := await commands.readline():
                command, wrong = json.loads(line), None
                try:
                    if cluster is None:
                        of = command["settings"]
                        rules, folder = served(of["profile"]), Path(of["folder"])
                        cluster = ServedCluster(of["ports"], rules, of["config"], folder)
                    else:
                        await cluster.act(command["do"], command["broker"])
                except (KeyError, ValueError, OSError) as error:
                    wrong = f"{type(error).__name__}: {error}"
                reply = {"ok": wrong is None, "error": wrong, "result": None}
                answers.write(json.dumps(reply).encode() + b"\n")
    finally:
        if cluster is not None:
            cluster.end()


if __name__ == "__main__":
    asyncio.run(_run())
