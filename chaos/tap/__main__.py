"""The tap's process: its stdin is a socket for commands and answers; it ends when that does."""

import asyncio
import json
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from chaos.errors import ChaosError
from chaos.tap.answers import DECODED
from chaos.tap.process import TapSettings
from chaos.tap.rules import Rule
from chaos.tap.server import Tap
from kafka_protocol.frames import load_readers

_LONGEST_LINE = 1 << 20


def _done(tap: Tap, request: Mapping[str, Any]) -> Any:
    """Carry a command out."""
    match request:
        case {"do": "add", "name": str(name), "rule": rule}:
            return tap.add(name, msgspec.convert(rule, Rule))
        case {"do": "remove", "rule": str(rule)}:
            return tap.remove(rule)
        case {"do": "hits"}:
            return tap.rules.hits
    raise ValueError(f"{request} is not known")


async def _run() -> None:
    loop = asyncio.get_running_loop()
    connection = socket.socket(fileno=sys.stdin.fileno())
    commands, answers = await asyncio.open_connection(sock=connection, limit=_LONGEST_LINE)

    def answer(**reply: Any) -> None:
        answers.write(json.dumps(reply).encode() + b"\n")

    start = json.loads(await commands.readline())
    settings = msgspec.convert(
        start["settings"], TapSettings, str_keys=True, dec_hook=lambda _, text: Path(text)
    )
    tap = Tap(settings)
    listeners = {node: str(address) for node, address in tap.start().items()}
    answer(ok=True, result=listeners)
    loop.run_in_executor(None, load_readers, DECODED)
    try:
        with suppress(ConnectionError):  # the runner was killed, and had an answer unread
            while line := await commands.readline():  # until the runner closes it, or ends
                try:
                    answer(ok=True, result=_done(tap, json.loads(line)))
                except (ValueError, msgspec.ValidationError) as error:
                    answer(ok=False, error=f"{type(error).__name__}: {error}")
    finally:
        await tap.end()


def main() -> None:
    """Run until the runner ends its side of the socket."""
    try:
        asyncio.run(_run())
    except ChaosError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
