"""Requests that brokers logged and the tap saw, paired group by group."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reports.judgement.logged import REQUEST
from reports.judgement.witnesses import Connection, Doubt, Pairs, Tap, hidden_by_nat

HERE, NATTED = "127.0.0.1:9092-127.0.0.1:40000", "172.27.0.2:9092-172.27.0.1:40001"
CLIENT = "static-1"
OPEN = Tap(frozenset({Connection("1", HERE, CLIENT)}), ended_ms={"1": 9e9})
BEHIND_NAT = replace(OPEN, hidden=frozenset({"1"}))
Requests = Sequence[tuple[Any, ...]]


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


def judged(
    logged: Requests, seen: Requests, tap: Tap = OPEN, cut: int = 10**6
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Pair requests, so many at a time; return the counts and the breaches."""
    pairs = Pairs(tap)
    for first in range(0, max(len(logged), len(seen)), cut):
        pairs.add(logged[first : first + cut], seen[first : first + cut])
    rows = list(pairs.end())
    return dict(pairs.counts), rows


BEATS = [request(number, 1_000.0 * number) for number in range(1, 9)]


@pytest.mark.parametrize("cut", [1, 3, 100])
def test_what_both_say_alike_is_compared_and_no_finding(cut: int) -> None:
    assert judged(BEATS, BEATS, cut=cut) == ({"compared": 8}, [])


@pytest.mark.parametrize("cut", [1, 3, 100])
def test_one_answer_that_differs_is_the_only_finding(cut: int) -> None:
    other = request(4, 4_000.0, code=int(Error.UNKNOWN_MEMBER_ID), line=44)
    counts, (row,) = judged(BEATS, [*BEATS[:3], other, *BEATS[4:]], cut=cut)
    assert counts == {"compared": 8}
    assert row["proven"]
    assert row["expected"].endswith("response errorCode=0 in brokers/1/group.log:4")
    assert row["observed"] == "response errorCode=25 in tap/1/group.log:44"


def test_a_request_that_one_witness_alone_has() -> None:
    counts, (row,) = judged(BEATS, BEATS[:3] + BEATS[4:])
    assert counts == {"broker_alone": 1, "compared": 7}
    assert row["expected"] == f"HEARTBEAT of {CLIENT}, number 4: a line of the tap"
    counts, (row,) = judged(BEATS[:3] + BEATS[4:], BEATS)
    assert counts == {"compared": 7, "tap_alone": 1}
    assert row["expected"] == f"HEARTBEAT of {CLIENT}, number 4: a line of broker 1"


def test_connections_that_pass_the_tap_by_are_counted_alone() -> None:
    past = [request(1, 500.0, connection="127.0.0.1:9092-127.0.0.1:5555-3")]
    assert judged([*past, *BEATS], BEATS) == ({"not_through_tap": 1, "compared": 8}, [])


def test_what_is_not_readable_or_of_another_api_is_not_compared() -> None:
    others = [request(1, 1.0, readable=False), request(2, 2.0, api="FIND_COORDINATOR")]
    assert judged(others, []) == ({}, [])


@pytest.mark.parametrize("cut", [1, 100])
def test_requests_that_were_sent_twice_are_paired_in_the_order_of_their_answers(cut: int) -> None:
    codes = (0, int(Error.REBALANCE_IN_PROGRESS))
    both = [request(5, at_ms, code=code) for at_ms, code in zip((10.0, 20.0), codes, strict=True)]
    assert judged(both, both, cut=cut) == ({"compared": 2}, [])
    counts, rows = judged(both, list(reversed(both)))
    assert (counts, rows) == ({"compared": 2}, [])  # in whatever order they come


def test_behind_a_nat_the_client_and_the_number_pair() -> None:
    logged = [request(n, 1_000.0 * n, connection=f"{NATTED}-2") for n in range(1, 9)]
    assert judged(logged, BEATS, BEHIND_NAT) == ({"compared_by_number": 8}, [])
    counts, rows = judged(logged, BEATS)
    assert counts == {"not_through_tap": 8, "tap_alone": 8}
    assert len(rows) == 8  # where it is not known that there is a NAT


@pytest.mark.parametrize("cut", [1, 100])
def test_behind_a_nat_a_number_that_comes_again_proves_nothing(cut: int) -> None:
    logged = [request(5, at_ms, connection=f"{NATTED}-2") for at_ms in (10.0, 20.0)]
    other = request(5, 20.0, code=int(Error.UNKNOWN_MEMBER_ID))
    for seen in ([request(5, 10.0)], [request(5, 10.0), other]):
        (row,) = judged(logged, seen, BEHIND_NAT, cut)[1]
        assert not row["proven"]
        assert Doubt.NAT in row["expected"]


@pytest.mark.parametrize("cut", [1, 100])
def test_a_connection_that_both_had_before_is_remembered(cut: int) -> None:
    both = [request(5, 10.0, connection=f"{HERE}-3"), request(5, 20.0)]
    other = request(5, 20.0, code=int(Error.UNKNOWN_MEMBER_ID))
    (row,) = judged(both, [both[0], other], cut=cut)[1]
    assert not row["proven"]
    assert Doubt.AGAIN in row["expected"]


@pytest.mark.parametrize("cut", [1, 100])
def test_a_later_connection_with_the_same_addresses_proves_nothing(cut: int) -> None:
    """The tap saw a request of an earlier one without an answer: it is paired with no other."""
    lost = request(5, 10.0, code=None, connection=f"{HERE}-3")
    beat = request(5, 20.0)
    assert judged([beat], [lost, beat], cut=cut) == ({"compared": 1, "tap_alone": 1}, [])
    other = request(5, 20.0, code=int(Error.UNKNOWN_MEMBER_ID))
    (row,) = judged([beat], [lost, other], cut=cut)[1]
    assert not row["proven"]
    assert Doubt.AGAIN in row["expected"]


def test_a_broker_is_behind_a_nat_where_no_address_of_the_tap_stands_in_its_log() -> None:
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
def test_the_addresses_in_the_name_of_a_connection(name: str | None, addresses: str) -> None:
    assert Connection.of("1", name, None) == ("1", addresses, "")
