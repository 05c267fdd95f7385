"""Frames of the Kafka protocol: a length of four bytes, then a request or a response.

A request begins with its API, version, correlation id and client id (request header v1; v2 has the
same beginning, KIP-482), a response with the correlation id of its request.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kio.schema.request_header.v1.header import RequestHeader
from kio.serial import entity_reader

LONGEST = 0x15FF_FFFF
"""Of a length; Kafka's default limit (`socket.request.max.bytes`) is less than a third of it. A
handshake of TLS begins with what would be the next one (`_TLS_HANDSHAKE`)."""

_LENGTH = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">i")
_read_header = entity_reader(RequestHeader)
_TLS_HANDSHAKE = b"\x16\x03"


class FrameError(Exception):
    """The bytes are not of the Kafka protocol; the message says what they look like."""


class Head(NamedTuple):
    """The beginning of a request; `client_id` may be null."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


def head_of(frame: bytes) -> Head:
    """Read the beginning of a request's frame. Raises FrameError."""
    try:
        header, _ = _read_header(frame, 4)
    except Exception as error:
        raise FrameError(f"a request whose header cannot be read ({error})") from error
    return Head(
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        header.client_id,
    )


def correlation_id_of(frame: bytes) -> int:
    """Read to which request a response belongs. Raises FrameError."""
    if len(frame) < 8:
        raise FrameError(f"a response of {len(frame) - 4} bytes")
    (correlation_id,) = _CORRELATION_ID.unpack_from(frame, 4)
    return int(correlation_id)


def framed(payload: bytes) -> bytes:
    """Put the length before a payload."""
    return _LENGTH.pack(len(payload)) + payload


class FrameBuffer:
    """Cuts a stream of bytes into frames, each with its length in front."""

    def __init__(self) -> None:
        self._unread = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that are complete with these bytes. Raises FrameError."""
        unread = self._unread
        if not unread and len(data) >= 4 and _LENGTH.unpack_from(data)[0] == len(data) - 4:
            yield data  # the usual case: one frame, one segment
            return
        unread += data
        start = 0
        while len(unread) - start >= 4:
            (length,) = _LENGTH.unpack_from(unread, start)
            if not 0 <= length <= LONGEST:
                if unread.startswith(_TLS_HANDSHAKE, start):
                    raise FrameError("TLS where plain text is expected")
                raise FrameError(f"a frame of {length} bytes")
            end = start + 4 + length
            if len(unread) < end:
                break
            yield bytes(unread[start:end])
            start = end
        del unread[:start]
