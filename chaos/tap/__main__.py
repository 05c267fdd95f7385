"""The tap's process: settings on stdin, addresses on stdout; it ends when stdin does."""

import asyncio
import hmac
import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from chaos.errors import ChaosError
from chaos.tap.answers import DECODED
from chaos.tap.messages import load_readers
from chaos.tap.rules import rule_of
from chaos.tap.server import Tap
from chaos.tap.settings import TapSettings

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_LINE = 1 << 20


class Commands:
    """What the control channel can do. Each command gets its request and returns a JSON value."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self.known: dict[str, Callable[[dict[str, Any]], Any]] = {
            "add": lambda request: tap.add(request["name"], rule_of(request["rule"])),
            "remove": lambda request: tap.remove(request["rule"]),
            "counters": lambda _: tap.counters(),
        }

    def answer(self, line: bytes) -> bytes:
        """Carry a request out; a refusal is an answer, too."""
        reply: dict[str, Any]
        try:
            request = json.loads(line)
            reply = {"ok": True, "result": self.known[request["do"]](request)}
        except (ValueError, TypeError, KeyError, msgspec.ValidationError) as error:
            reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        return json.dumps(reply).encode() + b"\n"


async def _serve(
    token: str, commands: Commands, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        if hmac.compare_digest(await reader.readline(), f"{token}\n".encode()):
            while line := await reader.readline():
                writer.write(commands.answer(line))
                await writer.drain()
    except (OSError, ValueError):
        pass  # the other side has gone, or sent a line without an end
    finally:
        writer.close()


async def _run() -> None:
    loop = asyncio.get_running_loop()
    stdin = asyncio.StreamReader(limit=_LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    start = json.loads(await stdin.readline())
    settings = msgspec.convert(
        start["settings"], TapSettings, str_keys=True, dec_hook=lambda kind, text: kind(text)
    )
    tap = Tap(settings)
    listeners = tap.start()
    serve = partial(_serve, start["token"], Commands(tap))
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
