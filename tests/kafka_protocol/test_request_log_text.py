"""Requests as text, the request log before 2.8: lines that brokers of 2.4.1 and 2.5.1 wrote."""

import re

import pytest

from kafka_protocol.request_log import COMPLETED
from kafka_protocol.request_log.text import content
from reports.judgement.log.parsing import parse_request

A = "a-14042f91-a43d-40a7-b604-9dbd612b2441"
B = "b-59d03249-49b9-4ccb-bdb0-3b9c42bb2f39"
DYNAMIC = "dynamic-dynamic-0-becd0523-b3fe-4c68-b79a-c9078c9afb52"
PLAIN = "securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT"
TOOK = (
    " from connection 127.0.0.1:25763-127.0.0.1:39002-9;totalTime:921.59,requestQueueTime:0.16,"
    "localTime:0.585,remoteTime:879.131,throttleTime:0.196,responseQueueTime:7.905,sendTime:33.61,"
    + PLAIN
)


def bytes_of(size: int) -> str:
    return f"java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]"


def line(header: str, request: str, response: str, took: str = TOOK) -> str:
    return f"RequestHeader({header}) -- {request},response:{response}{took}"


JOIN = line(
    "apiKey=JOIN_GROUP, apiVersion=5, clientId=dynamic-dynamic-0, correlationId=3",
    "{group_id=dynamic,session_timeout_ms=10000,rebalance_timeout_ms=30000,member_id=,"
    "group_instance_id=null,protocol_type=consumer,"
    f"protocols=[{{name=range,metadata={bytes_of(28)}}}]}}",
    "{throttle_time_ms=0,error_code=79,generation_id=-1,protocol_name=,leader=,"
    f"member_id={DYNAMIC},members=[]}}",
)
"""The first JoinGroup of a dynamic member (KIP-394), as a real client sends it."""

LED = line(
    "apiKey=JOIN_GROUP, apiVersion=7, clientId=replaced-a, correlationId=3",
    f"{{group_id=replaced,session_timeout_ms=10000,rebalance_timeout_ms=3000,member_id={A},"
    "group_instance_id=a,protocol_type=consumer,"
    f"protocols=[{{name=range,metadata={bytes_of(18)},_tagged_fields={{}}}}],_tagged_fields={{}}}}",
    "{throttle_time_ms=0,error_code=0,generation_id=2,protocol_type=consumer,protocol_name=range,"
    f"leader={A},member_id={A},"
    f"members=[{{member_id={A},group_instance_id=a,metadata={bytes_of(18)},_tagged_fields={{}}}},"
    f"{{member_id={B},group_instance_id=b,metadata={bytes_of(18)},_tagged_fields={{}}}}],"
    "_tagged_fields={}}",
    f"{TOOK},clientInformation:ClientInformation(softwareName=unknown, softwareVersion=unknown)",
)
"""A leader's JoinGroup response. Version 7 and KIP-511's client information came with 2.5."""

GIVEN_NOTHING = line(
    "apiKey=SYNC_GROUP, apiVersion=4, clientId=replaced-b, correlationId=3",
    f"{{group_id=replaced,generation_id=1,member_id={B},group_instance_id=b,assignments=[],"
    "_tagged_fields={}}",
    f"{{throttle_time_ms=0,error_code=0,assignment={bytes_of(0)},_tagged_fields={{}}}}",
)
"""KAFKA-9801."""
BEAT = line(
    "apiKey=HEARTBEAT, apiVersion=3, clientId=dynamic-dynamic-0, correlationId=6",
    f"{{group_id=dynamic,generation_id=1,member_id={DYNAMIC},group_instance_id=null}}",
    "{throttle_time_ms=0,error_code=27}",
)
LEAVES = line(
    "apiKey=LEAVE_GROUP, apiVersion=1, clientId=dynamic-dynamic-0, correlationId=16",
    f"{{group_id=dynamic,member_id={DYNAMIC}}}",
    "{throttle_time_ms=0,error_code=0}",
)
REMOVED = line(
    "apiKey=LEAVE_GROUP, apiVersion=4, clientId=full-e, correlationId=4",
    f"{{group_id=full,members=[{{member_id={A},group_instance_id=a,_tagged_fields={{}}}}],"
    "_tagged_fields={}}",
    f"{{throttle_time_ms=0,error_code=0,members=[{{member_id={A},group_instance_id=a,error_code=0,"
    "_tagged_fields={}}],_tagged_fields={}}",
)


def test_a_line_has_the_bodies_that_json_would_have() -> None:
    """By KAFKA-10525, but for the bytes; `test_request_log` has all other fields."""
    size = "(18 bytes)"
    a, b = ({"memberId": m, "groupInstanceId": m[0]} for m in (A, B))
    bodies = {
        LED: (
            {"groupId": "replaced", "sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 3_000, **a,
             "protocolType": "consumer", "protocols": [{"name": "range", "metadata": size}]},
            {"throttleTimeMs": 0, "errorCode": 0, "generationId": 2, "protocolType": "consumer",
             "protocolName": "range", "leader": A, "memberId": A,
             "members": [{**a, "metadata": size}, {**b, "metadata": size}]},
        ),
        GIVEN_NOTHING: (
            {"groupId": "replaced", "generationId": 1, **b, "assignments": []},
            {"throttleTimeMs": 0, "errorCode": 0, "assignment": ""},
        ),
    }  # fmt: skip
    for text, expected in bodies.items():
        request = content(text)
        assert (request["request"], request["response"]) == expected
        assert parse_request(COMPLETED + text).readable


def test_the_rest_of_a_line() -> None:
    for text, about, sender in (
        (JOIN, ("JOIN_GROUP", 5, "dynamic"), ("dynamic-dynamic-0", 3)),
        (LED, ("JOIN_GROUP", 7, "replaced"), ("replaced-a", 3)),
    ):
        request = parse_request(COMPLETED + text)
        assert (request.api, request.api_version, request.group) == about
        assert (request.client_id, request.correlation_id) == sender
        assert request.connection == "127.0.0.1:25763-127.0.0.1:39002-9"


NOT_CLEAR = {
    "a string with a comma": LEAVES.replace("group_id=dynamic", "group_id=dyna,mic"),
    "a string with a brace": JOIN.replace("name=range", "name=ra}nge"),
    "a string that goes on like the line": BEAT.replace(
        "clientId=dynamic-dynamic-0", "clientId=x, correlationId=1) -- {group_id=y}"
    ),
    "a second answer": BEAT.replace("{group_id=dynamic", "{group_id=g},response:{error_code=0}"),
    "nobody, or an instance called null": JOIN.replace(DYNAMIC, f"null-{DYNAMIC[-36:]}"),
    "a field that the version has not": BEAT.replace("{throttle", "{generation_id=1,throttle"),
    "a field that is missing": BEAT.replace(",group_instance_id=null", ""),
    "fields in another order": LEAVES.replace(
        "throttle_time_ms=0,error_code=0", "error_code=0,throttle_time_ms=0"
    ),
    "a tagged field": REMOVED.replace("_tagged_fields={}}]", "_tagged_fields={0=x}}]", 1),
    "a number that is none": BEAT.replace("error_code=27", "error_code=2 7"),
    "another API": BEAT.replace("HEARTBEAT", "FETCH"),
    "half a line": BEAT[:-200],
    "parts that are more than the whole": re.sub(
        r"requestQueueTime:[^,]+", "requestQueueTime:9e3", BEAT
    ),
    "bytes that were read in part": JOIN.replace("pos=0", "pos=3"),
}


@pytest.mark.parametrize("text", NOT_CLEAR.values(), ids=NOT_CLEAR)
def test_ambiguous_or_malformed_text_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        content(text)
    assert not parse_request(COMPLETED + text).readable


@pytest.mark.parametrize(
    ("times", "local", "remote"),
    [
        # 2.4.1: the thread came to note the end 8.569 ms after the answer was handed over
        ("60.713,21.139,33.442,0.0,0.202,14.514,0.186", 24.874, 0.0),
        # 2.5.1: the answer waited for others, and then for the quota
        ("100.0,10.0,20.0,50.0,15.0,4.0,1.0", 20.0, 65.0),
        # 2.6 on: there is no throttle time between
        ("85.0,10.0,20.0,50.0,15.0,4.0,1.0", 20.0, 50.0),
    ],
)
def test_a_requests_time_is_the_sum_of_its_parts(times: str, local: float, remote: float) -> None:
    names = ("total", "requestQueue", "local", "remote", "throttle", "responseQueue", "send")
    parts = ",".join(f"{n}Time:{t}" for n, t in zip(names, times.split(","), strict=True))
    before, _ = BEAT.split("totalTime:")
    request = parse_request(f"{COMPLETED}{before}{parts},{PLAIN}")
    assert request.readable
    assert request.times_ms is not None
    assert request.times_ms[2:4] == pytest.approx((local, remote))
    wrong = parts.replace(f"totalTime:{times.split(',', maxsplit=1)[0]}", "totalTime:300.0")
    assert not parse_request(f"{COMPLETED}{before}{wrong},{PLAIN}").readable
