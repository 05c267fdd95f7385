"""Requests decoded into types: as the parser of any line reads them, or refused."""

import json
import lzma
import random
from pathlib import Path

import pytest

from kafka_protocol.request_log import COMPLETED, typed_of
from reports.judgement.log.parsing import parse_any, parse_request

RECORDED = Path(__file__).parents[1] / "recorded"
BODIES = [
    line[line.index(COMPLETED) : line.rindex(" (")]
    for place in ("kafka-*", "fetches/*")
    for log in sorted(RECORDED.glob(f"{place}/brokers/*/group.log.xz"))
    for line in lzma.decompress(log.read_bytes()).decode().splitlines()
    if COMPLETED + "{" in line
]
ODD = '{}[]",:0123456789-.eE \\tfnul\x00\x01é\ud800\r/abZ='


def test_what_brokers_wrote_is_decoded_and_agrees() -> None:
    assert len(BODIES) > 2_000
    for body in BODIES:
        assert typed_of(body) is not None, body
        assert parse_request(body) == parse_any(body), body


def test_altered_lines_agree() -> None:
    chance = random.Random(13)
    decoded = 0
    for _ in range(6_000):
        body = chance.choice(BODIES)
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
