"""A served cluster as a process: its stdin is a socket for commands; it ends when that does.

The first line holds `settings`, each other one a verb and a broker; each is answered by a line.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from reference_coordinator.classic.releases import profile_named
from reference_coordinator.server import ServedCluster, ServerSettings


def settings_of(given: Mapping[str, Any]) -> ServerSettings:
    """Return settings from their JSON. Raises KeyError for a profile that is none."""
    profile = profile_named(given["profile"])
    if profile is None:
        raise KeyError(given["profile"])
    return ServerSettings(tuple(given["ports"]), profile, given["config"], Path(given["folder"]))


async def _run() -> None:
    connection = socket.socket(fileno=sys.stdin.fileno())
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
                        cluster = ServedCluster(settings_of(command["settings"]))
                        await cluster.start()
                    else:
                        await cluster.act(command["do"], command["broker"])
                    answer(None)
                except (KeyError, OSError) as error:
                    answer(f"{type(error).__name__}: {error}")
    finally:
        if cluster is not None:
            cluster.end()


if __name__ == "__main__":
    asyncio.run(_run())
