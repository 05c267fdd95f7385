"""Frames of the Kafka protocol, and the requests and responses in them.

A frame is a length of four bytes, then a request or a response. A request begins with its API,
version, correlation id and client id (request header v1; v2 has the same beginning, KIP-482), a
response with the correlation id of its request. kio reads and writes bodies.
"""

import io
import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from kio.schema.index import api_key_map
from kio.schema.request_header.v1.header import RequestHeader
from kio.serial import entity_reader, entity_writer

from kafka_protocol.schemas import known_versions, schema_of

NAMES: Mapping[int, str] = {key: name.upper() for key, name in api_key_map.items()}
"""The names of all APIs, as the request log has them, by key."""
KEYS: Mapping[str, int] = {name: key for key, name in NAMES.items()}
LONGEST = 0x15FF_FFFF
"""Of a length; Kafka's default limit (`socket.request.max.bytes`) is less than a third of it. A
handshake of TLS begins with what would be the next one (`_TLS_HANDSHAKE`)."""

_INT = struct.Struct(">i")
_read_header = entity_reader(RequestHeader)
_TLS_HANDSHAKE = b"\x16\x03"


class FrameError(Exception):
    """The bytes are not of the Kafka protocol; the message says what they look like."""


class BodyError(Exception):
    """A body that kio cannot read; the message says of what."""


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
    (correlation_id,) = _INT.unpack_from(frame, 4)
    return int(correlation_id)


class FrameBuffer:
    """Cuts a stream of bytes into frames, each with its length in front."""

    def __init__(self) -> None:
        self._unread = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that are complete with these bytes. Raises FrameError."""
        unread = self._unread
        if not unread and len(data) >= 4 and _INT.unpack_from(data)[0] == len(data) - 4:
            yield data  # the usual case: one frame, one segment
            return
        unread += data
        start = 0
        while len(unread) - start >= 4:
            (length,) = _INT.unpack_from(unread, start)
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


@cache
def _readers(api_key: int, version: int, *, response: bool) -> tuple[Any, Any]:
    schema = schema_of(api_key, version, response=response)
    return entity_reader(schema.__header_schema__), entity_reader(schema)


def _read(frame: bytes, api_key: int, version: int, *, response: bool) -> tuple[Any, Any]:
    try:
        read_header, read_body = _readers(api_key, version, response=response)
        header, size = read_header(frame, 4)
        body, used = read_body(frame, 4 + size)
    except Exception as error:
        raise BodyError(f"{_called(api_key, version, response=response)}: {error}") from error
    if (left := len(frame) - 4 - size - used) != 0:
        raise BodyError(f"{_called(api_key, version, response=response)}: {left} bytes too many")
    return header, body


def _called(api_key: int, version: int, *, response: bool) -> str:
    what = "response" if response else "request"
    return f"{what} of {NAMES.get(api_key, f'API {api_key}')} v{version}"


def load_readers(api_keys: Iterable[int]) -> None:
    """Load what reads all versions of APIs: the first message of each would take long else."""
    for api_key in api_keys:
        for version in known_versions(api_key):
            for response in (False, True):
                _readers(api_key, version, response=response)


def request_of(frame: bytes, api_key: int, version: int) -> Any:
    """Read the body of a request's frame as kio's entity. Raises BodyError."""
    return _read(frame, api_key, version, response=False)[1]


def response_of(frame: bytes, api_key: int, version: int) -> tuple[Any, Any]:
    """Read header and body of a response's frame. Raises BodyError."""
    return _read(frame, api_key, version, response=True)


def written(header: Any, body: Any) -> bytes:
    """Return the frame of a request or a response."""
    buffer = io.BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(type(body))(buffer, body)
    return _INT.pack(buffer.tell()) + buffer.getvalue()
