"""Bodies of requests and responses, by kio: which versions it knows, reading, writing."""

import io
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from chaos.tap.frames import framed

NAMES: Mapping[int, str] = {key: name.upper() for key, name in api_key_map.items()}
"""The names of all APIs, as the request log has them, by key."""
KEYS: Mapping[str, int] = {name: key for key, name in NAMES.items()}


class BodyError(Exception):
    """A body that kio cannot read; the message says of what."""


def known_versions(api_key: int) -> range:
    """Return the versions of an API that kio knows; none if it does not know the API."""
    versions = schema_name_map.get(api_key_map.get(api_key, ""), {})
    return range(min(versions), max(versions) + 1) if versions else range(0)


@cache
def _readers(api_key: int, version: int, *, response: bool) -> tuple[Any, Any]:
    load = load_response_schema if response else load_request_schema
    schema = load(api_key, version)
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


def response_frame(header: Any, body: Any) -> bytes:
    """Write a response."""
    buffer = io.BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(type(body))(buffer, body)
    return framed(buffer.getvalue())
