"""Bodies as the request log prints them: every line of the recorded brokers, there and back."""

import json
import lzma
from pathlib import Path

import pytest

from kafka_protocol.kio_bodies import to_body, to_entity
from kafka_protocol.request_log import COMPLETED
from loadtest.wire import schemas

RECORDED = Path(__file__).parents[1] / "recorded"


def logged(folder):
    """Read what a real broker printed of requests and responses: (api, version, which, body)."""
    seen = set()
    for log in sorted((RECORDED / folder).glob("brokers/*/group.log.xz")):
        for line in lzma.decompress(log.read_bytes()).decode().splitlines():
            _, found, rest = line.partition(COMPLETED)
            if not found:
                continue
            logged, _ = json.JSONDecoder().raw_decode(rest)
            header = logged["requestHeader"]
            api, version = header["requestApiKeyName"], header["requestApiVersion"]
            for which in ("request", "response"):
                text = json.dumps(logged[which])
                if (api, version, which, text) not in seen:
                    seen.add((api, version, which, text))
                    yield api, version, which, logged[which]


@pytest.mark.parametrize("folder", ["kafka-4.3.0", "kafka-3.9.1-java", "kafka-3.9.1-scala"])
def test_bodies_are_those_of_the_request_log(folder):
    checked = set()
    for api, version, which, body in logged(folder):
        schema = getattr(schemas, f"{which}_schema")(api, version)
        again = to_body(to_entity(schema, body))
        assert again == body
        assert list(again) == list(body), "the order of fields is Kafka's as well"
        checked.add((api, which))
    apis = {"JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT"}
    assert checked >= {(api, which) for api in apis for which in ("request", "response")}
