"""The table of body fields against kio's classes, which are generated from Kafka's own schemas."""

from collections.abc import Iterator
from dataclasses import fields as fields_of
from types import NoneType
from typing import Any, get_args

import pytest
from kio.schema.index import api_key_map

from kafka_protocol.apis import COORDINATOR_APIS, OFFSET_FETCH, ApiKey
from kafka_protocol.bodies import (
    BODIES,
    Bodies,
    Field,
    generation_in,
    of_version,
    partitions_in,
    problems,
)
from kafka_protocol.errors import Error, codes_in
from kafka_protocol.kio_bodies import slots
from kafka_protocol.versions import FIRST_FLEXIBLE
from loadtest.wire.schemas import known, request_schema, response_schema

LEFT_OUT = {"includeAuthorizedOperations", "authorizedOperations"}
KINDS = {
    "string": "text", "bytes": "bytes", "bool": "boolean", "int16": "number", "int32": "number",
    "int64": "number", "error_code": "number", "timedelta_i32": "number", "uuid": "text",
    "timedelta_i64": "number",
}  # fmt: skip

Row = tuple[str, Any, bool]


def ours(table: tuple[Field, ...], version: int) -> Iterator[Row]:
    for field in table:
        if field.in_version(version):
            nested = field.kind if isinstance(field.kind, tuple) else ()
            kind = tuple(ours(nested, version)) if nested else field.kind
            yield field.name, kind, field.null_since is not None and field.null_since <= version


def kios(schema: Any) -> Iterator[Row]:
    for slot, field in zip(slots(schema), fields_of(schema), strict=True):
        if slot.key not in LEFT_OUT and "tag" not in field.metadata:
            kind = tuple(kios(slot.nested)) if slot.nested else KINDS[field.metadata["kafka_type"]]
            # kio has None for the topic id that is all zero
            nullable = NoneType in get_args(field.type) and slot.key != "topicId"
            yield slot.key, kind, nullable


@pytest.mark.parametrize("api", [*COORDINATOR_APIS, OFFSET_FETCH])
def test_fields_and_their_order_are_those_of_kafkas_schemas(api: str) -> None:
    bodies: Bodies = BODIES[api]
    first, last = known(api)
    for version in range(first, last + 1):
        request, response = request_schema(api, version), response_schema(api, version)
        assert tuple(ours(bodies.request, version)) == tuple(kios(request))
        assert tuple(ours(bodies.response, version)) == tuple(kios(response))
        assert request.__flexible__ == (version >= FIRST_FLEXIBLE[api])


def test_api_keys_are_those_of_kafkas_schemas() -> None:
    assert {api.name: api.value for api in ApiKey}.items() <= {
        (name.upper(), key) for key, name in api_key_map.items()
    }


JOIN = BODIES["JOIN_GROUP"]
VALUES = {
    "errorCode": 0, "generationId": 3, "protocolType": "consumer", "protocolName": "range",
    "leader": "a", "skipAssignment": True, "memberId": "a", "throttleTimeMs": 0,
    "members": [{"memberId": "a", "groupInstanceId": "i", "metadata": "AAA="}],
}  # fmt: skip


def test_a_body_has_the_fields_of_its_version_in_their_order() -> None:
    old = of_version(JOIN.response, VALUES, 4)
    assert list(old) == [
        "throttleTimeMs", "errorCode", "generationId", "protocolName", "leader", "memberId",
        "members",
    ]  # fmt: skip
    assert old["members"] == [{"memberId": "a", "metadata": "AAA="}]
    new = of_version(JOIN.response, VALUES, 9)
    assert list(new)[3:7] == ["protocolType", "protocolName", "leader", "skipAssignment"]
    assert new["members"] == VALUES["members"]


def test_a_body_that_was_made_lacks_nothing() -> None:
    for version in range(10):
        made = of_version(JOIN.response, VALUES, version)
        assert not list(problems(JOIN.response, made, version))


def test_a_field_that_is_read_must_be_given() -> None:
    with pytest.raises(KeyError, match="leader"):
        of_version(JOIN.response, _without("leader"), 9)
    assert "throttleTimeMs" not in of_version(JOIN.response, _without("throttleTimeMs"), 9)


def _without(name: str) -> dict[str, Any]:
    return {key: value for key, value in VALUES.items() if key != name}


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("generationId", True, "generationId is not a whole number"),
        ("generationId", 2**63, "generationId is not a whole number"),
        ("leader", None, "leader is not a string"),
        ("members", {}, "members is not a list"),
        ("members", [1], "members[0] is not an object"),
        ("members", [{"memberId": "a", "groupInstanceId": 1, "metadata": ""}],
         "members[0].groupInstanceId is not a string"),
        ("members", [{"memberId": "a", "groupInstanceId": None, "metadata": "%"}],
         "members[0].metadata is not base64"),
        ("skipAssignment", 1, "skipAssignment is not true or false"),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_a_problem(name: str, value: Any, problem: str) -> None:
    assert list(problems(JOIN.response, {**VALUES, name: value}, 9)) == [problem]


def test_bytes_of_which_only_the_length_is_known_are_bytes() -> None:
    member = {"memberId": "a", "groupInstanceId": None, "metadata": "(39 bytes)"}
    assert not list(problems(JOIN.response, {**VALUES, "members": [member]}, 9))


def test_a_commit_may_use_either_name_of_its_generation() -> None:
    commit = BODIES["OFFSET_COMMIT"].request
    body = {"groupId": "g", "memberId": "a", "groupInstanceId": None, "topics": []}
    assert not list(problems(commit, {**body, "generationId": 1}, 8))
    assert not list(problems(commit, {**body, "generationIdOrMemberEpoch": 1}, 8))
    lacking = "generationIdOrMemberEpoch is missing, and version 8 has it"
    assert list(problems(commit, body, 8)) == [lacking]


def test_topics_have_names_or_ids_and_partitions_are_named_by_them() -> None:
    """OffsetCommit has ids from v10 on, and an older one may name a topic "" (it is refused)."""
    partitions = [{"partitionIndex": 0}, {"partitionIndex": 12}]
    topics = [
        {"name": "orders-1", "partitions": partitions},
        {"topicId": "q1f2", "partitions": partitions[:1]},
        {"name": "", "partitions": partitions[:1]},
    ]
    names = [name for name, _ in partitions_in(topics)]
    assert names == ["orders-1-0", "orders-1-12", "q1f2-0", "-0"]
    assert [one for _, one in partitions_in(topics[:1])] == partitions


def test_a_commit_calls_its_generation_otherwise_from_3_6_on() -> None:
    assert generation_in({"generationId": 3}) == 3
    assert generation_in({"generationIdOrMemberEpoch": 3}) == 3
    assert generation_in({"generationIdOrMemberEpoch": -1}) == -1
    assert generation_in({}) is None


def test_errors_are_found_wherever_a_response_has_them() -> None:
    leave = {"errorCode": 0, "members": [{"memberId": "m", "errorCode": Error.UNKNOWN_MEMBER_ID}]}
    partition = {"partitionIndex": 0, "errorCode": Error.ILLEGAL_GENERATION}
    commit = {"topics": [{"partitions": [partition]}]}
    assert list(codes_in(leave)) == [Error.NONE, Error.UNKNOWN_MEMBER_ID]
    assert list(codes_in(commit)) == [Error.ILLEGAL_GENERATION]
    assert list(codes_in(None)) == []
