"""The tap's process: commands on stdin, answers on stdout; it ends when stdin does."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from chaos.errors import ChaosError
from chaos.tap.answers import DECODED
from chaos.tap.messages import load_readers
from chaos.tap.process import TapSettings
from chaos.tap.rules import Rule
from chaos.tap.server import Tap

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


def _answer(number: int, **more: Any) -> None:
    print(json.dumps({"id": number, **more}), flush=True)


async def _run() -> None:
    loop = asyncio.get_running_loop()
    stdin = asyncio.StreamReader(limit=_LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    start = json.loads(await stdin.readline())
    settings = msgspec.convert(
        start["settings"], TapSettings, str_keys=True, dec_hook=lambda _, text: Path(text)
    )
    tap = Tap(settings)
    listeners = {node: str(address) for node, address in tap.start().items()}
    _answer(start["id"], ok=True, result=listeners)
    loop.run_in_executor(None, load_readers, DECODED)
    try:
        while line := await stdin.readline():  # until the runner closes it, or ends
            request = json.loads(line)
            try:
                _answer(request["id"], ok=True, result=_done(tap, request))
            except (ValueError, msgspec.ValidationError) as error:
                _answer(request["id"], ok=False, error=f"{type(error).__name__}: {error}")
    finally:
        await tap.end()


def main() -> None:
    """Run until stdin ends."""
    try:
        asyncio.run(_run())
    except ChaosError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
