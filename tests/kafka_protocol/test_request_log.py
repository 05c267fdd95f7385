"""Lines about completed requests: what is printed is parsed, in both forms, or refused."""

import json
import random
import re
from itertools import product
from typing import Any

import pytest

from kafka_protocol.apis import ApiKey
from kafka_protocol.bodies import BODIES, Field, of_version
from kafka_protocol.kio_bodies import to_body, to_entity
from kafka_protocol.request_log import COMPLETED, parsed, printed, typed_of
from kafka_protocol.request_log.text import _TIMES, FLEXIBLE_END, Slot, slots_of
from kafka_protocol.schemas import schema_of
from kafka_protocol.versions import FIRST_FLEXIBLE
from reports.judgement.log.parsing import parse_any, parse_request
from tests.kafka_protocol.recorded import requests_in

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


def test_text_that_a_broker_wrote_has_the_same_bodies_when_it_is_printed_again() -> None:
    seen = set()
    for body in requests_in("before-2.8/protocol-corners-2.4.1"):
        request = parsed(body)
        end = body.index(" from connection ")
        assert as_text(request).startswith(body[:end])
        seen.add(request["requestHeader"]["requestApiKeyName"])
    assert seen == set(LAST_AS_TEXT)


def test_only_requests_of_members_are_read_as_text() -> None:
    with pytest.raises(ValueError, match="DESCRIBE_GROUPS is no request of a group"):
        slots_of("DESCRIBE_GROUPS", 5)


OF_GROUPS = ("kafka-3.9.1-java", "kafka-3.9.1-scala", "kafka-4.3.0")
"""Recordings with all requests of group members."""
WRITTEN = [
    (place, body)
    for place in (*OF_GROUPS, "fetches/*")
    for body in requests_in(place)
    if body.startswith(COMPLETED + "{")
]
ODD = '{}[]",:0123456789-.eE \\tfnul\x00\x01é\ud800\r/abZ='


def test_what_brokers_wrote_is_decoded_and_printed_again() -> None:
    """Decoded into types it is what the parser of any line reads; its bodies are kio's, too."""
    seen, apis = set(), set()
    for place, body in WRITTEN:
        assert typed_of(body) is not None, body
        assert parse_request(body) == parse_any(body), body
        request = parsed(body)
        assert json.loads(printed(request)[len(COMPLETED) :]) == request
        header = request["requestHeader"]
        api, version = header["requestApiKeyName"], header["requestApiVersion"]
        for which in ("request", "response"):
            apis.add((place, api, which))
            key = api, version, which, json.dumps(request[which])
            if key not in seen:
                seen.add(key)
                schema = schema_of(ApiKey[api], version, response=which == "response")
                again = to_body(to_entity(schema, request[which]))
                assert json.dumps(again) == key[-1], "the order of fields is Kafka's as well"
    assert len(WRITTEN) > 2_000
    bodies = ("request", "response")
    assert apis >= {*product(OF_GROUPS, LAST_AS_TEXT, bodies)}


def test_altered_lines_agree() -> None:
    chance = random.Random(13)
    decoded = 0
    for _ in range(6_000):
        _, body = chance.choice(WRITTEN)
        for _ in range(chance.choice((1, 1, 2))):
            body = altered(body, chance)
        decoded += typed_of(body) is not None
        assert repr(parse_request(body)) == repr(parse_any(body)), body
    assert 600 < decoded < 5_400


def altered(body: str, chance: random.Random) -> str:
    """Remove, insert, replace or repeat some characters."""
    at = chance.randrange(len(COMPLETED), len(body))
    end = min(len(body), at + chance.choice((1, 1, 1, 40)))
    put = chance.choice(("", chance.choice(ODD), body[at:end] * 2, chance.choice(ODD) + body[at]))
    return body[:at] + put + body[end:]


HEARTBEAT = {
    "requestHeader": {"requestApiKeyName": "HEARTBEAT", "requestApiVersion": 4, "clientId": "c",
                      "correlationId": 7},
    "request": {"groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": None},
    "response": {"throttleTimeMs": 0, "errorCode": 0},
    "connection": "c", "totalTimeMs": 3, "requestQueueTimeMs": 0.5, "localTimeMs": 1.0,
    "remoteTimeMs": 1.0, "responseQueueTimeMs": 0.25, "sendTimeMs": 0.25,
}  # fmt: skip
PRINTED = json.dumps(HEARTBEAT, separators=(",", ":"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"c","correlationId"', '"\\u0063","correlationId"'),
        ('"generationId":1', '"generationId": 1'),
        ('"generationId":1', '"generationId":1.0'),
        ('"generationId":1', '"generationId":-0'),
        ('"generationId":1', '"generationId":true'),
        ('"generationId":1', '"generationId":1,"generationId":1'),
        ('"groupInstanceId":null', '"groupInstanceId":null,"more":1'),
        ('"totalTimeMs":3', '"totalTimeMs":1e999'),
        ('"totalTimeMs":3', f'"more":{"9" * 5_000},"totalTimeMs":3'),
        ('"totalTimeMs":3', f'"totalTimeMs":{"9" * 400}'),
        ("HEARTBEAT", "FETCH"),
    ],
)
def test_what_kafka_does_not_print_is_refused(old: str, new: str) -> None:
    assert typed_of(COMPLETED + PRINTED) is not None
    body = COMPLETED + PRINTED.replace(old, new, 1)
    assert typed_of(body) is None
    assert parse_request(body) == parse_any(body)
