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
    problem,
)
from kafka_protocol.errors import Error, codes_in
from kafka_protocol.kio_bodies import slots
from kafka_protocol.schemas import schema_of
from kafka_protocol.versions import FIRST_FLEXIBLE
from loadtest.wire.connection import known

LEFT_OUT = {"includeAuthorizedOperations", "authorizedOperations"}
KINDS = {
    "string": "text", "bytes": "bytes", "bool": "boolean", "int8": "number", "int16": "number",
    "int32": "number", "int64": "number", "error_code": "number", "uuid": "text",
    "timedelta_i32": "number", "timedelta_i64": "number",
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
        request = schema_of(ApiKey[api], version)
        response = schema_of(ApiKey[api], version, response=True)
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


def join_request(version: int) -> dict[str, Any]:
    values = {
        "groupId": "g", "sessionTimeoutMs": 1, "rebalanceTimeoutMs": 1, "memberId": "",
        "groupInstanceId": None, "protocolType": "consumer", "protocols": [],
    }  # fmt: skip
    return of_version(JOIN.request, values, version)


def problem_of(**changes: Any) -> str:
    return problem("JOIN_GROUP", 9, join_request(9), VALUES | changes)


def test_a_body_that_was_made_lacks_nothing() -> None:
    for version in range(10):
        made = of_version(JOIN.response, VALUES, version)
        assert problem("JOIN_GROUP", version, join_request(version), made) == ""


def test_a_field_that_is_read_must_be_given() -> None:
    with pytest.raises(KeyError, match="leader"):
        of_version(JOIN.response, _without("leader"), 9)
    assert "throttleTimeMs" not in of_version(JOIN.response, _without("throttleTimeMs"), 9)


def _without(name: str) -> dict[str, Any]:
    return {key: value for key, value in VALUES.items() if key != name}


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("generationId", True, "Expected `int`, got `bool` - at `$.generationId`"),
        ("generationId", 2**63, "Expected `int` <= 9223372036854775807 - at `$.generationId`"),
        ("leader", None, "Expected `str`, got `null` - at `$.leader`"),
        ("members", {}, "Expected `array`, got `object` - at `$.members`"),
        ("members", [1], "Expected `object`, got `int` - at `$.members[0]`"),
        ("members", [{"memberId": "a", "groupInstanceId": 1, "metadata": ""}],
         "Expected `str | null`, got `int` - at `$.members[0].groupInstanceId`"),
        *(
            ("members", [{"memberId": "a", "groupInstanceId": None, "metadata": data}],
             "Expected base64 - at `$.members[0].metadata`")
            for data in ("%", "AAA", "A===", "(0 bytes)", "(39 bytes)x")
        ),
        ("skipAssignment", 1, "Expected `bool`, got `int` - at `$.skipAssignment`"),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_a_problem(name: str, value: Any, problem: str) -> None:
    assert problem_of(**{name: value}).startswith(f"response of JOIN_GROUP: {problem}")


def test_bytes_of_which_only_the_length_is_known_are_bytes() -> None:
    for data in ("(39 bytes)", "", "AA==", "AAA=", "AAAA"):
        member = {"memberId": "a", "groupInstanceId": None, "metadata": data}
        assert problem_of(members=[member]) == ""


def test_a_commit_calls_its_generation_otherwise_from_3_6_on() -> None:
    for generation in (3, -1):
        for name in ("generationId", "generationIdOrMemberEpoch"):
            assert generation_in({name: generation}) == generation
    assert generation_in({}) is None
    body = {"groupId": "g", "memberId": "a", "groupInstanceId": None, "topics": []}
    assert problem("OFFSET_COMMIT", 8, {**body, "generationId": 1}) == ""
    assert problem("OFFSET_COMMIT", 8, {**body, "generationIdOrMemberEpoch": 1}) == ""
    assert "missing required field `generationId`" in problem("OFFSET_COMMIT", 8, body)


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


def test_errors_are_found_wherever_a_response_has_them() -> None:
    leave = {"errorCode": 0, "members": [{"memberId": "m", "errorCode": Error.UNKNOWN_MEMBER_ID}]}
    partition = {"partitionIndex": 0, "errorCode": Error.ILLEGAL_GENERATION}
    commit = {"topics": [{"partitions": [partition]}]}
    assert list(codes_in(leave)) == [Error.NONE, Error.UNKNOWN_MEMBER_ID]
    assert list(codes_in(commit)) == [Error.ILLEGAL_GENERATION]
    assert list(codes_in(None)) == []
