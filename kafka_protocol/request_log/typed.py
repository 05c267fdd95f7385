"""The request log as JSON, decoded into types: several times as fast as into dictionaries.

Only what Kafka's own writer prints is decoded: the bodies have exactly the fields of their version
(`bodies.BODIES`), in their order, without spaces. All else is refused; `request_log.parsed` reads
it. So the text of a body that is decoded is the text that its values are printed as.
"""

import re
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct

from kafka_protocol.apis import CONFIGURE, READ_APIS
from kafka_protocol.bodies import body_types

Int32 = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
_TOO_LONG = re.compile(rb"[0-9]{4300}")
"""A number that Python's `int` refuses (`sys.int_info.default_max_str_digits`)."""


class Header(Struct, rename="camel", gc=False):
    """Whose request it is, and of which API and version."""

    request_api_key_name: str
    request_api_version: Int32
    client_id: str
    correlation_id: Int32


class Completed(Struct, rename="camel", gc=False):
    """What a line says of a completed request, its bodies as they are printed."""

    request_header: Header
    request: Raw
    response: Raw
    connection: str
    total_time_ms: float
    request_queue_time_ms: float
    local_time_ms: float
    remote_time_ms: float
    response_queue_time_ms: float
    send_time_ms: float


class Typed(NamedTuple):
    """A completed request of a group; `request_text` and `response_text` are the bodies as JSON.

    `request` and `response` have the fields of `bodies.BODIES` as attributes.
    """

    completed: Completed
    request: Any
    response: Any
    request_text: str
    response_text: str


_line = msgspec.json.Decoder(Completed)
_encode = msgspec.json.Encoder().encode


def typed(content: bytes) -> Typed | None:
    """Decode what follows `Completed request:`; None for what is not as Kafka writes it."""
    if b"\\" in content or (len(content) > 4300 and _TOO_LONG.search(content)):
        return None
    try:
        completed = _line.decode(content)
        header = completed.request_header
        api = header.request_api_key_name
        former_names = api == "OFFSET_COMMIT" and b'"generationId"' in content
        decoders = _decoders(api, header.request_api_version, former_names)
        if decoders is None:
            return None
        request = _body(decoders[0], bytes(completed.request))
        response = _body(decoders[1], bytes(completed.response))
    except (ValueError, RecursionError):
        return None
    if request is None or response is None:
        return None
    return Typed(completed, request[0], response[0], request[1], response[1])


Decoder = msgspec.json.Decoder[Any]
Decoders = tuple[Decoder, Decoder]
Body = tuple[Any, str]
KEPT, KEPT_BYTES = 16_384, 1_000
"""How many bodies are kept decoded, and how long each may be: most heartbeats have the same."""


def _body(decoder: Decoder, text: bytes) -> Body | None:
    return _known(decoder, text) if len(text) <= KEPT_BYTES else _decoded(decoder, text)


def _decoded(decoder: Decoder, text: bytes) -> Body | None:
    """Decode a body; None if it is not printed as Kafka does. Raises ValueError."""
    body = decoder.decode(text)
    return (body, text.decode()) if _encode(body) == text else None


_known = lru_cache(maxsize=KEPT)(_decoded)


@lru_cache(maxsize=256)
def _decoders(api: str, version: int, former_names: bool) -> Decoders | None:
    if api not in (*READ_APIS, CONFIGURE):
        return None
    request, response = body_types(api, version, former_names, as_read=False)
    return msgspec.json.Decoder(request), msgspec.json.Decoder(response)
