"""The tap's process: settings on stdin, addresses on stdout; it ends when stdin does."""

import asyncio
import hmac
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from chaos.errors import ChaosError
from chaos.tap.answers import DECODED
from chaos.tap.messages import load_readers
from chaos.tap.rules import Rule
from chaos.tap.server import Tap
from chaos.tap.settings import TapSettings

_LONGEST_LINE = 1 << 20


def _done(tap: Tap, request: Mapping[str, Any]) -> Any:
    """Carry a request of the control channel out."""
    match request:
        case {"do": "add", "name": str(name), "rule": rule}:
            return tap.add(name, msgspec.convert(rule, Rule))
        case {"do": "remove", "rule": str(rule)}:
            return tap.remove(rule)
        case {"do": "hits"}:
            return tap.rules.hits
    raise ValueError(f"{request} is not known")


def _answer(tap: Tap, line: bytes) -> bytes:
    """Answer a request; a refusal is an answer, too."""
    try:
        reply = {"ok": True, "result": _done(tap, json.loads(line))}
    except (ValueError, msgspec.ValidationError) as error:
        reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    return json.dumps(reply).encode() + b"\n"


async def _run() -> None:
    loop = asyncio.get_running_loop()
    stdin = asyncio.StreamReader(limit=_LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    start = json.loads(await stdin.readline())
    tap = Tap(
        msgspec.convert(
            start["settings"], TapSettings, str_keys=True, dec_hook=lambda _, text: Path(text)
        )
    )
    listeners = tap.start()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if hmac.compare_digest(await reader.readline(), f"{start['token']}\n".encode()):
                while line := await reader.readline():
                    writer.write(_answer(tap, line))
                    await writer.drain()
        except (OSError, ValueError):
            pass  # the other side has gone, or sent a line without an end
        finally:
            writer.close()

    control = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_LONGEST_LINE)
    ready = {
        "control": control.sockets[0].getsockname()[1],
        "listeners": {str(node): str(address) for node, address in listeners.items()},
    }
    print(json.dumps(ready), flush=True)
    loop.run_in_executor(None, load_readers, DECODED)
    try:
        await stdin.read()  # until the runner closes it, or ends
    finally:
        control.close()
        await tap.end()


def main() -> None:
    """Run until stdin ends."""
    try:
        asyncio.run(_run())
    except ChaosError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
