"""Requests that brokers logged and the tap saw: paired group by group, and what both say."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.logged import REQUEST
from reports.judgement.witnesses import (
    Connection,
    Doubt,
    Pairs,
    Tap,
    compared_apis,
    differs,
    hidden_by_nat,
    judged,
)

HERE, NATTED = "127.0.0.1:9092-127.0.0.1:40000", "172.27.0.2:9092-172.27.0.1:40001"
CLIENT = "static-1"
OPEN = Tap(frozenset({Connection("1", HERE, CLIENT)}), ended_ms={"1": 9e9})
BEHIND_NAT = replace(OPEN, hidden=frozenset({"1"}))
UNKNOWN = int(Error.UNKNOWN_MEMBER_ID)
Json = dict[str, Any]
Requests = Sequence[tuple[Any, ...]]
CUT = pytest.mark.parametrize("cut", [1, 3, 100])


def request(number: int, at_ms: float, *, code: int | None = 0, **known: Any) -> tuple[Any, ...]:
    """Return a Heartbeat with the columns `REQUEST`; without a code it was not answered."""
    response = None if code is None else json.dumps({"throttleTimeMs": 0, "errorCode": code})
    row = {
        "at_ms": at_ms, "id": f"1:{number}", "broker": "1", "api": "HEARTBEAT",
        "client_id": CLIENT, "connection": f"{HERE}-7", "correlation_id": number,
        "answered_ms": None if code is None else at_ms + 1.0, "request": '{"groupId":"g"}',
        "response": response, "line": number, "readable": True, **known,
    }  # fmt: skip
    return tuple(row.get(name) for name in REQUEST)


def paired(
    logged: Requests, seen: Requests, tap: Tap = OPEN, cut: int = 10**6
) -> tuple[dict[str, int], list[Json]]:
    """Pair requests, so many at a time; return the counts and the breaches."""
    pairs = Pairs(tap)
    for first in range(0, max(len(logged), len(seen)), cut):
        pairs.add(logged[first : first + cut], seen[first : first + cut])
    rows = list(pairs.end())
    return dict(pairs.counts), rows


BEATS = [request(number, 1_000.0 * number) for number in range(1, 9)]
BUT_ONE = BEATS[:3] + BEATS[4:]
NATTED_BEATS = [request(n, 1_000.0 * n, connection=f"{NATTED}-2") for n in range(1, 9)]
PAST = request(1, 500.0, connection="127.0.0.1:9092-127.0.0.1:5555-3")
ALIEN = [request(1, 1.0, readable=False), request(2, 2.0, api="FIND_COORDINATOR")]
TWICE = [request(5, 10.0), request(5, 20.0, code=int(Error.REBALANCE_IN_PROGRESS))]
LOST = request(5, 10.0, code=None, connection=f"{HERE}-3")
OF_ANOTHER = request(5, 10.0, client_id="another", connection=f"{HERE}-3")


@CUT
@pytest.mark.parametrize(
    ("logged", "seen", "tap", "counts", "missing"),
    [
        (BEATS, BEATS, OPEN, {"compared": 8}, []),
        (BEATS, BUT_ONE, OPEN, {"compared": 7, "broker_alone": 1}, ["a line of the tap"]),
        (BUT_ONE, BEATS, OPEN, {"compared": 7, "tap_alone": 1}, ["a line of broker 1"]),
        ([PAST, *BEATS], BEATS, OPEN, {"compared": 8, "not_through_tap": 1}, []),
        (ALIEN, [], OPEN, {}, []),
        (TWICE, TWICE, OPEN, {"compared": 2}, []),
        # the tap saw a request of an earlier connection without an answer
        (TWICE[:1], [LOST, TWICE[0]], OPEN, {"compared": 1, "tap_alone": 1}, []),
        # two clients had the same addresses one after the other
        ([OF_ANOTHER], TWICE[:1], OPEN, {"broker_alone": 1, "tap_alone": 1},
         ["a line of the tap", "a line of broker 1"]),
        (NATTED_BEATS, BEATS, BEHIND_NAT, {"compared_by_number": 8}, []),
        # where it is not known that there is a NAT
        (NATTED_BEATS, BEATS, OPEN, {"not_through_tap": 8, "tap_alone": 8},
         ["a line of broker 1"] * 8),
    ],
    ids=["alike", "the broker's alone", "the tap's alone", "past the tap", "not compared",
         "sent twice", "an answer lost", "two clients", "behind a NAT", "an unknown NAT"],
)  # fmt: skip
def test_what_is_paired(logged, seen, tap, counts, missing, cut):
    found, rows = paired(logged, seen, tap, cut)
    assert found == counts
    assert [row["expected"].rpartition(": ")[2] for row in rows] == missing


def test_requests_that_were_sent_twice_may_come_in_any_order():
    assert paired(TWICE, TWICE[::-1]) == ({"compared": 2}, [])


@CUT
def test_one_answer_that_differs_is_the_only_finding(cut):
    other = request(4, 4_000.0, code=UNKNOWN, line=44)
    counts, (row,) = paired(BEATS, [*BEATS[:3], other, *BEATS[4:]], cut=cut)
    assert counts == {"compared": 8}
    assert row["proven"]
    assert row["observed"] == "response errorCode=25 in tap/1/group.log:44"


OTHER = request(5, 20.0, code=UNKNOWN)
NATTED_TWICE = [request(5, at_ms, connection=f"{NATTED}-2") for at_ms in (10.0, 20.0)]
EARLIER = request(5, 10.0, connection=f"{HERE}-3")


@pytest.mark.parametrize(
    ("logged", "seen", "tap", "doubt"),
    [
        (NATTED_TWICE, [request(5, 10.0)], BEHIND_NAT, Doubt.NAT),
        (NATTED_TWICE, [request(5, 10.0), OTHER], BEHIND_NAT, Doubt.NAT),
        ([EARLIER, request(5, 20.0)], [EARLIER, OTHER], OPEN, Doubt.AGAIN),
        ([request(5, 20.0)], [LOST, OTHER], OPEN, Doubt.AGAIN),
    ],
    ids=["one of two behind a NAT", "two behind a NAT", "both had it", "the tap had it"],
)
@CUT
def test_a_number_that_comes_again_proves_nothing(logged, seen, tap, doubt, cut):
    """Behind a NAT, or on a later connection with the same addresses."""
    (row,) = paired(logged, seen, tap, cut)[1]
    assert not row["proven"]
    assert doubt in row["expected"]


LOST_OF_ANOTHER = request(5, 10.0, code=None, client_id="another", connection=f"{HERE}-3")


@CUT
@pytest.mark.parametrize(
    ("logged", "seen"),
    [([OF_ANOTHER], OF_ANOTHER), ([], LOST_OF_ANOTHER)],
    ids=["both had it", "the tap had it"],
)
def test_a_number_of_an_earlier_client_with_the_same_addresses_is_no_doubt(logged, seen, cut):
    (row,) = paired([*logged, request(5, 20.0)], [seen, OTHER], cut=cut)[1]
    assert row["proven"]
    assert row["observed"].startswith("response errorCode=25 ")


def test_a_broker_is_behind_a_nat_where_no_address_of_the_tap_stands_in_its_log():
    logged = [
        Connection("1", NATTED, "a"),
        Connection("2", HERE, "a"), Connection("2", NATTED, "b"),
        Connection("3", NATTED, "a"),
    ]  # fmt: skip
    seen = [Connection("1", HERE, "a"), Connection("2", HERE, "a"), Connection("4", HERE, "a")]
    assert hidden_by_nat(logged, seen) == {"1"}


@pytest.mark.parametrize(
    ("name", "addresses"), [(f"{HERE}-12", HERE), ("[::1]:1-[::1]:2-0", "[::1]:1-[::1]:2"),
                            ("copy", ""), (None, "")]
)  # fmt: skip
def test_the_addresses_in_the_name_of_a_connection(name, addresses):
    assert Connection.of("1", name, None) == ("1", addresses, "")


# what both say of one request


ANSWERED_MS = 50_000.0
FINE = {"throttleTimeMs": 0, "errorCode": 0}
WRONG = {**FINE, "errorCode": UNKNOWN}


def side(line: int, response: Json | None, **request: Any) -> Json:
    return {
        "line": line, "api": "HEARTBEAT", "client_id": "c", "correlation_id": 7,
        "answered_ms": ANSWERED_MS,
        "request": json.dumps({"groupId": "g", "generationId": 1, **request}),
        "response": None if response is None else json.dumps(response),
    }  # fmt: skip


def found(broker: Json | None, tap: Json | None, **known: Any) -> list[Json]:
    doubt, ended_ms = known.pop("doubt", None), {"1": known.pop("ended_ms", 9e9)}
    places = (LogPlaces(), LogPlaces(folder="tap"))
    tap_of_run = Tap(frozenset(), places=places, ended_ms=ended_ms, **known)
    return list(judged("1", broker, tap, doubt, tap_of_run))


@pytest.mark.parametrize(
    ("response", "tells_bytes", "different"),
    [
        (FINE, True, False),
        ({"errorCode": 0, "throttleTimeMs": 9}, True, False),
        ({**FINE, "why": None}, True, False),
        ({**FINE, "why": "x"}, True, True),
        ({**FINE, "why": "x"}, False, False),
        (WRONG, True, True),
        (WRONG, False, True),
        (None, True, False),
    ],
)
def test_which_answers_differ(response, tells_bytes, different):
    """Of logs from before 2.8 the errors alone are compared; throttling is the broker's."""
    assert differs(side(1, FINE), side(2, response), tells_bytes=tells_bytes) == different


@pytest.mark.parametrize(("generation", "different"), [(4, False), (5, True)])
def test_a_field_has_the_name_of_the_brokers_release(generation, different):
    """OffsetCommit's generationId was renamed in 3.6; a run of 2.8.1 with a tap was a `fail`."""
    tap = side(2, FINE, generationIdOrMemberEpoch=generation)
    body = json.loads(tap["request"])
    del body["generationId"]
    broker = side(1, FINE, generationId=4)
    assert differs(broker, {**tap, "request": json.dumps(body)}) == different


def test_another_answer_or_request_is_found_at_both_places():
    (row,) = found(side(1, FINE), side(2, WRONG))
    assert (row["kind"], row["proven"]) == ("broker_and_wire_disagree", True)
    assert (row["broker"], row["line"]) == ("1", 1)
    assert row["expected"] == (
        "HEARTBEAT of c, number 7: response errorCode=0 in brokers/1/group.log:1"
    )
    assert row["observed"] == "response errorCode=25 in tap/1/group.log:2"
    (row,) = found(side(1, FINE), side(2, FINE, generationId=2))
    assert "request generationId=1" in row["expected"]


def test_an_answer_that_no_broker_logged_is_found_unless_it_was_killed():
    (row,) = found(None, side(2, FINE))
    assert (row["proven"], row["line"]) == (True, 0)
    killed = lambda broker: [(broker, ANSWERED_MS + 900, ANSWERED_MS + 1e3)]
    assert found(None, side(2, FINE), kills=killed("1")) == []
    assert found(None, side(2, FINE), kills=killed("2"))
    assert found(None, side(2, None)) == [], "it never came"


@pytest.mark.parametrize(
    ("known", "proven"),
    [({}, True), ({"whole": False}, False), ({"ended_ms": ANSWERED_MS + 500}, False)],
)
def test_a_request_that_the_tap_did_not_see_is_found(known, proven):
    (row,) = found(side(1, FINE), None, **known)
    assert row["proven"] is proven


@pytest.mark.parametrize("doubt", Doubt)
def test_what_may_be_of_two_requests_is_not_proven(doubt):
    for broker, tap in ((FINE, WRONG), (None, FINE), (FINE, None)):
        (row,) = found(broker and side(1, broker), tap and side(2, tap), doubt=doubt)
        assert not row["proven"]
        assert doubt in row["expected"]


def test_what_logs_before_2_8_do_not_hold_is_not_compared():
    folder = resources.files("chaos.clusters") / "templates"
    passes = re.findall(r"apiKey=(\w+),", (folder / "log4j-text.properties").read_text())
    assert set(compared_apis(tells_bytes=False)) == set(passes)
    assert "OFFSET_FETCH" in compared_apis(tells_bytes=True)
