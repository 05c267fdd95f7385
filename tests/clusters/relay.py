"""Hands TCP connections to one address on to another: FROM_HOST TO_HOST PORT.

Brokers in containers advertise ports of 127.0.0.1, and a network namespace has another 127.0.0.1.
"""

import asyncio
import sys
from contextlib import suppress


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def main(here: str, there: str, port: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onward = await asyncio.open_connection(there, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pipe(reader, onward[1]), pipe(onward[0], writer))

    server = await asyncio.start_server(serve, here, port)
    print("listening", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
