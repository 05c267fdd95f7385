"""Which answers are rewritten, and that nothing but the addresses in them changes."""

import dataclasses
import io
import struct
from typing import get_args

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from chaos.tap.answers import DECODED, Address, erring, is_rewritten, rewritten
from kafka_protocol.errors import Error, codes_in
from kafka_protocol.frames import KEYS, BodyError, response_of
from kafka_protocol.kio_bodies import slots, to_body, to_entity
from kafka_protocol.schemas import known_versions, schema_of
from scenarios.faults.wire import CoordinatorApi

HERE = Address("127.0.0.1", 50_000)


def listener(node: int, address: Address) -> Address:
    """The tap's port says which broker was asked for, and that its address was handed on."""
    assert address == Address(f"kafka-{node}", 9092)
    return Address(HERE.host, HERE.port + node)


def frame_of(api: str, version: int, body: dict) -> bytes:
    schema = schema_of(KEYS[api], version, response=True)
    buffer = io.BytesIO()
    entity_writer(schema.__header_schema__)(buffer, schema.__header_schema__(correlation_id=7))
    entity_writer(schema)(buffer, to_entity(schema, body))
    return struct.pack(">i", buffer.tell()) + buffer.getvalue()


def body_of(frame: bytes, api: str, version: int) -> dict:
    header, body = response_of(frame, KEYS[api], version)
    assert header.correlation_id == 7
    return to_body(body)


def place(node: int, **more) -> dict:
    return {"nodeId": node, "host": f"kafka-{node}", "port": 9092, "rack": None, **more}


TOPIC = {
    "name": "orders", "topicId": "AAECAwQFBgcICQoLDA0ODw", "isInternal": False, "errorCode": 0,
    "topicAuthorizedOperations": -1,
    "partitions": [{"errorCode": 0, "partitionIndex": 0, "leaderId": 1, "leaderEpoch": 3,
                    "replicaNodes": [1, 2], "isrNodes": [1], "offlineReplicas": []}],
}  # fmt: skip
ANSWERS = {
    "METADATA": {
        "throttleTimeMs": 3, "brokers": [place(1), place(2, rack="r2")], "clusterId": "cluster",
        "controllerId": 1, "topics": [TOPIC], "errorCode": 0, "clusterAuthorizedOperations": 5,
    },
    "DESCRIBE_CLUSTER": {
        "throttleTimeMs": 3, "errorCode": 0, "errorMessage": None, "endpointType": 1,
        "clusterId": "cluster", "controllerId": 1, "clusterAuthorizedOperations": 5,
        "brokers": [{**place(1), "brokerId": 1, "isFenced": True}],
    },
    "FIND_COORDINATOR": {
        "throttleTimeMs": 3, "errorCode": 0, "errorMessage": "", **place(2),
        "coordinators": [
            {"key": "g", **place(2), "errorCode": 0, "errorMessage": ""},
            {"key": "h", "nodeId": -1, "host": "", "port": -1,
             "errorCode": Error.COORDINATOR_NOT_AVAILABLE, "errorMessage": "not available"},
        ],
    },
    "PRODUCE": {"responses": [], "throttleTimeMs": 3, "nodeEndpoints": [place(1)]},
    "FETCH": {"throttleTimeMs": 3, "errorCode": 0, "sessionId": 9, "responses": [],
              "nodeEndpoints": [place(1), place(2)]},
    "SHARE_FETCH": {"throttleTimeMs": 3, "errorCode": 0, "errorMessage": None,
                    "acquisitionLockTimeoutMs": 4, "responses": [], "nodeEndpoints": [place(1)]},
    "SHARE_ACKNOWLEDGE": {"throttleTimeMs": 3, "errorCode": 0, "errorMessage": None,
                          "acquisitionLockTimeoutMs": 4, "responses": [],
                          "nodeEndpoints": [place(2)]},
}  # fmt: skip
VERSIONS = [
    (api, version)
    for api in ANSWERS
    for version in known_versions(KEYS[api])
    if is_rewritten(KEYS[api], version)
]


def addresses(body: dict) -> list[dict]:
    """Every place of a body that names a broker."""
    lists = [body.get(name) or [] for name in ("brokers", "coordinators", "nodeEndpoints")]
    return [entry for entries in lists for entry in entries] + ([body] if "host" in body else [])


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_only_addresses_change(api, version):
    before = frame_of(api, version, ANSWERS[api])
    after = body_of(rewritten(before, KEYS[api], version, listener), api, version)
    expected = body_of(before, api, version)
    named = [entry for entry in addresses(expected) if entry["host"]]
    assert named
    for entry in named:
        node = entry.get("nodeId", entry.get("brokerId"))
        entry["host"], entry["port"] = HERE.host, HERE.port + node
    assert after == expected


@pytest.mark.parametrize("version", known_versions(KEYS["FIND_COORDINATOR"]))
def test_a_coordinator_that_was_not_found_is_not_broker_0(version):
    """Its id is 0 where the broker leaves it unset."""
    unset = {"nodeId": 0, "host": "", "port": 0, "errorMessage": "not available",
             "errorCode": Error.COORDINATOR_NOT_AVAILABLE}  # fmt: skip
    body = {"throttleTimeMs": 3, **unset, "coordinators": [{"key": "g", **unset}]}
    frame = frame_of("FIND_COORDINATOR", version, body)
    assert rewritten(frame, KEYS["FIND_COORDINATOR"], version, listener) == frame


def test_versions_before_node_endpoints_are_not_read():
    assert not is_rewritten(KEYS["FETCH"], 15)
    assert not is_rewritten(KEYS["PRODUCE"], 9)
    assert all(not is_rewritten(key, 0) for key in (11, 12, 14, 8, 9, 17, 36))


@pytest.mark.parametrize("api", ["PRODUCE", "FETCH"])
def test_answers_without_new_leaders_stay_byte_for_byte(api):
    version = max(known_versions(KEYS[api]))
    before = frame_of(api, version, {**ANSWERS[api], "nodeEndpoints": []})
    assert rewritten(before, KEYS[api], version, listener) is before


def versions(version: int, offered: dict[str, int], error: int = Error.NONE) -> bytes:
    keys = [{"apiKey": KEYS[api], "minVersion": 0, "maxVersion": most}
            for api, most in offered.items()]  # fmt: skip
    body = {"errorCode": error, "apiKeys": keys, "throttleTimeMs": 0}
    return frame_of("API_VERSIONS", version, body)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_unknown_versions_are_not_offered(version):
    newer = {KEYS[api] for api in ANSWERS} | {KEYS["JOIN_GROUP"], KEYS["OFFSET_FETCH"]}
    frame = versions(version, dict.fromkeys(KEYS, 99))
    body = body_of(rewritten(frame, 18, version, listener), "API_VERSIONS", version)
    most = {entry["apiKey"]: entry["maxVersion"] for entry in body["apiKeys"]}
    assert {key for key, offered in most.items() if offered < 99} == DECODED
    assert newer <= DECODED
    assert all(most[key] == max(known_versions(key)) for key in DECODED)


def test_offers_that_kio_knows_stay_byte_for_byte():
    frame = versions(3, {"METADATA": 13, "JOIN_GROUP": 9, "CREATE_TOPICS": 99})
    assert rewritten(frame, 18, 3, listener) is frame


def test_a_broker_that_does_not_know_the_request_answers_in_version_0():
    frame = versions(0, {"METADATA": 99}, Error.UNSUPPORTED_VERSION)
    after = body_of(rewritten(frame, 18, 4, listener), "API_VERSIONS", 0)
    assert after["errorCode"] == ErrorCode.unsupported_version
    assert after["apiKeys"][0]["maxVersion"] == 13


def test_what_is_of_controllers_or_cannot_be_read_is_not_passed_on():
    """Controllers have no listener."""
    frame = frame_of("DESCRIBE_CLUSTER", 1, {**ANSWERS["DESCRIBE_CLUSTER"], "endpointType": 2})
    with pytest.raises(BodyError, match="controllers"):
        rewritten(frame, KEYS["DESCRIBE_CLUSTER"], 1, listener)
    with pytest.raises(BodyError, match="METADATA v13"):
        rewritten(struct.pack(">i", 11) + b"\0\0\0\7garbage", 3, 13, listener)


FILLED = {"throttleTimeMs": 3, "errorCode": 0, "groupId": "g", "key": "g", "name": "orders",
          "topicId": TOPIC["topicId"], "partitionIndex": 4}  # fmt: skip
"""What says what an answer is about, and its first error."""
SOME = {"bytes": "eA==", "string": "x", "bool": True}
SAYS_NOTHING = ("", [], -1, False, None)


def filled(schema: type) -> dict:
    """A body in which every field says something."""

    def value(slot):
        if slot.key in FILLED:
            return FILLED[slot.key]
        return filled(slot.nested) if slot.nested else SOME.get(types[slot.attribute], 1)

    types = {one.name: one.metadata.get("kafka_type") for one in dataclasses.fields(schema)}
    return {slot.key: [value(slot)] if slot.array else value(slot) for slot in slots(schema)}


def innermost(body: dict) -> dict:
    """The part of a body that has its outermost error, as its one entry of lists."""
    while "errorCode" not in body:
        [body] = next(of for of in body.values() if isinstance(of, list))
    return body


@pytest.mark.parametrize("api", get_args(CoordinatorApi))
def test_an_error_in_place_of_an_answer_of_any_version(api):
    """Kafka's getErrorResponse: one error, and beside it only what the answer is about."""
    for version in known_versions(KEYS[api]):
        body = filled(schema_of(KEYS[api], version, response=True))
        got = body_of(
            erring(frame_of(api, version, body), KEYS[api], version, Error.ILLEGAL_GENERATION),
            api, version,
        )  # fmt: skip
        assert set(codes_in(got)) == {Error.ILLEGAL_GENERATION}, (api, version)
        assert innermost(got).keys() == innermost(body).keys()
        for key, said in innermost(got).items():
            if key in FILLED:
                assert key == "errorCode" or said == FILLED[key]
            else:
                assert said in SAYS_NOTHING, (api, version, key)


@pytest.mark.parametrize("error", [Error.MEMBER_ID_REQUIRED, Error.UNKNOWN_MEMBER_ID])
def test_a_member_id_is_given_only_to_join_with(error):
    """KIP-394; beside other errors Kafka's JoinGroupRequest.getErrorResponse has an empty one."""
    frame = frame_of("JOIN_GROUP", 5, filled(schema_of(KEYS["JOIN_GROUP"], 5, response=True)))
    got = body_of(erring(frame, KEYS["JOIN_GROUP"], 5, error), "JOIN_GROUP", 5)
    assert got["memberId"] == ("x" if error == Error.MEMBER_ID_REQUIRED else "")
