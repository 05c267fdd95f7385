"""What the brokers' logs and the tap say of one request."""

import json
import re
from importlib import resources
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.witnesses import Doubt, Tap, compared_apis, differs, judged

PLACES = (LogPlaces(), LogPlaces(folder="tap"))
ANSWERED_MS = 50_000.0


def side(line: int, response: dict[str, Any] | None, **request: Any) -> dict[str, Any]:
    return {
        "line": line, "api": "HEARTBEAT", "client_id": "c", "correlation_id": 7,
        "answered_ms": ANSWERED_MS,
        "request": json.dumps({"groupId": "g", "generationId": 1, **request}),
        "response": None if response is None else json.dumps(response),
    }  # fmt: skip


FINE = {"throttleTimeMs": 0, "errorCode": 0}


def found(
    broker: dict[str, Any] | None, tap: dict[str, Any] | None, **known: Any
) -> list[dict[str, Any]]:
    doubt, ended_ms = known.pop("doubt", None), {"1": known.pop("ended_ms", 9e9)}
    tap_of_run = Tap(frozenset(), places=PLACES, ended_ms=ended_ms, **known)
    return list(judged("1", broker, tap, doubt, tap_of_run))


@pytest.mark.parametrize(
    "tap",
    [side(2, FINE), side(2, {"errorCode": 0, "throttleTimeMs": 9}), side(2, {**FINE, "why": None})],
)
def test_what_says_the_same_is_no_finding(tap: dict[str, Any]) -> None:
    assert not differs(side(1, FINE), tap)


@pytest.mark.parametrize(("generation", "different"), [(4, False), (5, True)])
def test_a_field_has_the_name_of_the_brokers_release(generation: int, *, different: bool) -> None:
    """OffsetCommit's generationId was renamed in 3.6; a run of 2.8.1 with a tap was a `fail`."""
    broker = side(1, FINE, generationId=4)
    tap = side(2, FINE, generationIdOrMemberEpoch=generation)
    body = json.loads(tap["request"])
    del body["generationId"]
    assert differs(broker, {**tap, "request": json.dumps(body)}) == different


def test_another_answer_is_found_at_both_places() -> None:
    broker, tap = side(1, FINE), side(2, {**FINE, "errorCode": Error.UNKNOWN_MEMBER_ID})
    assert differs(broker, tap)
    (row,) = found(broker, tap)
    assert row["kind"] == "broker_and_wire_disagree"
    assert row["proven"]
    assert (row["broker"], row["line"]) == ("1", 1)
    assert row["expected"] == (
        "HEARTBEAT of c, number 7: response errorCode=0 in brokers/1/group.log:1"
    )
    assert row["observed"] == "response errorCode=25 in tap/1/group.log:2"


def test_another_request_is_found() -> None:
    (row,) = found(side(1, FINE), side(2, FINE, generationId=2))
    assert "request generationId=1" in row["expected"]


def test_of_old_logs_the_errors_alone_are_compared() -> None:
    tap = side(2, {**FINE, "assignment": "AA=="}, memberId="m")
    assert not differs(side(1, {**FINE, "assignment": "(1 bytes)"}), tap, tells_bytes=False)
    assert differs(
        side(1, {**FINE, "errorCode": Error.REBALANCE_IN_PROGRESS}), tap, tells_bytes=False
    )


def test_an_answer_that_never_came_is_compared_with_nothing() -> None:
    assert not differs(side(1, FINE), side(2, None))
    assert found(None, side(2, None)) == []


def test_an_answer_that_no_broker_logged_is_found_unless_it_was_killed() -> None:
    (row,) = found(None, side(2, FINE))
    assert row["proven"]
    assert row["line"] == 0
    assert found(None, side(2, FINE), kills=[("1", ANSWERED_MS + 900, ANSWERED_MS + 1e3)]) == []
    assert found(None, side(2, FINE), kills=[("2", ANSWERED_MS + 900, ANSWERED_MS + 1e3)])


@pytest.mark.parametrize(
    ("known", "proven"),
    [({}, True), ({"whole": False}, False), ({"ended_ms": ANSWERED_MS + 500}, False)],
)
def test_a_request_that_the_tap_did_not_see_is_found(known: dict[str, Any], proven: bool) -> None:
    (row,) = found(side(1, FINE), None, **known)
    assert row["proven"] is proven


@pytest.mark.parametrize(
    ("broker", "tap"),
    [
        (side(1, FINE), side(2, {**FINE, "errorCode": Error.UNKNOWN_MEMBER_ID})),
        (None, side(2, FINE)),
        (side(1, FINE), None),
    ],
)
@pytest.mark.parametrize("doubt", Doubt)
def test_what_may_be_of_two_requests_is_not_proven(
    broker: dict[str, Any] | None, tap: dict[str, Any] | None, doubt: Doubt
) -> None:
    (row,) = found(broker, tap, doubt=doubt)
    assert not row["proven"]
    assert doubt in row["expected"]


def test_what_logs_before_2_8_do_not_hold_is_not_compared() -> None:
    folder = resources.files("chaos.clusters") / "templates"
    passes = re.findall(r"apiKey=(\w+),", (folder / "log4j-text.properties").read_text())
    assert set(compared_apis(tells_bytes=False)) == set(passes)
    assert "OFFSET_FETCH" in compared_apis(tells_bytes=True)
