"""Lines about completed requests: what is printed is parsed, in both forms."""

import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_protocol.bodies import BODIES, Field, of_version
from kafka_protocol.request_log import COMPLETED, parsed, printed
from kafka_protocol.request_log.text import _TIMES, FLEXIBLE_END, Slot, slots_of
from kafka_protocol.versions import FIRST_FLEXIBLE

RECORDED = Path(__file__).parents[1] / "recorded"
LAST_AS_TEXT = {
    "JOIN_GROUP": 7, "SYNC_GROUP": 5, "HEARTBEAT": 4, "LEAVE_GROUP": 4, "OFFSET_COMMIT": 8,
}  # fmt: skip
"""The versions of Kafka 2.7, the last that logs text."""
SCALARS = {"text": "a-1", "number": 5, "boolean": True, "bytes": "(7 bytes)"}


def values(fields: tuple[Field, ...]) -> dict[str, Any]:
    """Two entries in each list, and null wherever it may be."""
    return {
        field.name: [values(field.kind), values(field.kind)]
        if isinstance(field.kind, tuple)
        else None if field.null_since == 0 else SCALARS[field.kind]
        for field in fields
    }  # fmt: skip


def content(api: str, version: int) -> dict[str, Any]:
    bodies = BODIES[api]
    request = of_version(bodies.request, values(bodies.request), version)
    if "generationIdOrMemberEpoch" in request:  # its name until 3.6
        names = {"generationIdOrMemberEpoch": "generationId"}
        request = {names.get(name, name): value for name, value in request.items()}
    return {
        "requestHeader": {
            "requestApiKeyName": api,
            "requestApiVersion": version,
            "clientId": "a, b",
            "correlationId": 3,
        },
        "request": request,
        "response": of_version(bodies.response, values(bodies.response), version),
        "connection": "127.0.0.1:1-127.0.0.1:2-0",
        "totalTimeMs": 10.0,
        "requestQueueTimeMs": 1.0,
        "localTimeMs": 2.0,
        "remoteTimeMs": 4.0,
        "throttleTimeMs": 0.0,
        "responseQueueTimeMs": 1.5,
        "sendTimeMs": 1.5,
    }


def as_text(content: dict[str, Any]) -> str:
    """Print a request as releases before 2.8 do; of bytes it has the length, or "" for none."""
    header = content["requestHeader"]
    api, version = header["requestApiKeyName"], header["requestApiVersion"]
    end = FLEXIBLE_END if version >= FIRST_FLEXIBLE[api] else "}"
    request, response = (
        _struct(content[which], slots, end)
        for which, slots in zip(("request", "response"), slots_of(api, version), strict=True)
    )
    times = ",".join(f"{name}:{content.get(f'{name}Ms', 0.0)}" for name in _TIMES)
    return (
        f"{COMPLETED}RequestHeader(apiKey={api}, apiVersion={version}"
        f", clientId={header['clientId']}, correlationId={header['correlationId']})"
        f" -- {request},response:{response}"
        f" from connection {content['connection']};{times}"
        ",securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT"
    )


def _struct(body: dict[str, Any], slots: tuple[Slot, ...], end: str) -> str:
    values = (f"{slot.text_name}={_printed(body[slot.name], slot.kind, end)}" for slot in slots)
    return "{" + ",".join(values) + end


def _printed(value: Any, kind: str | tuple[Slot, ...], end: str) -> str:
    if isinstance(kind, tuple):
        return f"[{','.join(_struct(entry, kind, end) for entry in value)}]"
    if kind == "bytes":
        length = re.sub("[^0-9]", "", value) or "0"
        return f"java.nio.HeapByteBuffer[pos=0 lim={length} cap={length}]"
    if kind == "boolean":
        return "true" if value else "false"
    return "null" if value is None else str(value)


@pytest.mark.parametrize("api", LAST_AS_TEXT)
def test_printed_lines_are_parsed(api: str) -> None:
    for version in range(1 if api == "OFFSET_COMMIT" else 0, LAST_AS_TEXT[api] + 1):
        expected = content(api, version)
        assert parsed(as_text(expected)) == parsed(printed(expected)) == expected


def lines(folder: str) -> Iterator[str]:
    for log in sorted((RECORDED / folder).glob("brokers/*/group.log.xz")):
        for line in lzma.decompress(log.read_bytes()).decode().splitlines():
            if COMPLETED in line:
                yield line[line.index(COMPLETED) : line.rindex(" (")]


def test_text_that_a_broker_wrote_has_the_same_bodies_when_it_is_printed_again() -> None:
    seen = set()
    for body in lines("before-2.8/protocol-corners-2.4.1"):
        request = parsed(body)
        end = body.index(" from connection ")
        assert as_text(request).startswith(body[:end])
        seen.add(request["requestHeader"]["requestApiKeyName"])
    assert seen == set(LAST_AS_TEXT)


def test_json_that_a_broker_wrote_is_printed_again() -> None:
    for body in lines("kafka-4.3.0"):
        assert json.loads(printed(parsed(body))[len(COMPLETED) :]) == parsed(body)


def test_only_requests_of_members_are_read_as_text() -> None:
    with pytest.raises(ValueError, match="DESCRIBE_GROUPS is no request of a group"):
        slots_of("DESCRIBE_GROUPS", 5)
