"""Answers that the tap held back or dropped are expected of clients when they got them, if ever."""

import json
from dataclasses import replace

import pytest

from kafka_protocol import request_log, tap_lines
from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.client_rules.findings import ClientRules
from reports.judgement.clients.comparison import UNDELIVERED, Clients
from reports.judgement.run.deliveries import Deliveries, read
from reports.judgement.run.history import EVENTS, ClientEvent
from tests.reports.judgement.contexts import context

GROUP, MEMBER = "orders", "member-1"
CONNECTION = "127.0.0.1:9092-127.0.0.1:50000"
ANSWERED_MS = 1_795_000_000_000.0
HELD_MS = 3_000.0


def line(tap, *, connection=f"{CONNECTION}-0-17", serial=7, held_ms=HELD_MS, api="OFFSET_COMMIT"):
    """A line as the tap writes it, delivered or discarded `held_ms` after the answer came."""
    content = {
        "requestHeader": {"clientId": MEMBER, "correlationId": serial, "requestApiKeyName": api},
        "connection": connection,
        "responseQueueTimeMs": held_ms,
        **({"tap": tap} if tap else {}),
    }
    body = request_log.COMPLETED + request_log.as_json(content)
    return f"1 {int(ANSWERED_MS + held_ms)} 5 tap DEBUG {body} ({request_log.LOGGER})"


def commit(serial=7, answered_ms=ANSWERED_MS, connection=f"{CONNECTION}-1-3"):
    partitions = [{"partitionIndex": 0, "committedOffset": 5}]
    stored = [{"partitionIndex": 0, "errorCode": 0}]
    return ObservedRequest(
        f"1:{serial}", "1", "OFFSET_COMMIT", 9, MEMBER, connection, answered_ms - 3,
        answered_ms - 2, answered_ms - 1, answered_ms,
        {"groupId": GROUP, "topics": [{"name": "t", "partitions": partitions}]},
        {"topics": [{"name": "t", "partitions": stored}]}, serial,
    )  # fmt: skip


def saw(at_ms):
    return ClientEvent(at_ms, EVENTS.index("committed"), MEMBER, offsets=1)


def judged(deliveries, requests, events):
    clients = Clients(context(deliveries=deliveries))
    found = clients.add([(one, None, one.earliest_ms) for one in requests], events, float("inf"))
    return [*found, *clients.end()], clients.counts


HELD = read([line({"rules": ["r1"]})])
DROPPED = read([line({"delivered": False, "why": "dropped", "rules": ["r1"]})])
REFUSED = read([line({"rules": ["r1"], "errorCode": Error.UNKNOWN_MEMBER_ID})])
LATER, LAST = (commit(number, ANSWERED_MS + number * 1_000) for number in (8, 9))
DISAGREE = ["client_and_broker_disagree"]


@pytest.mark.parametrize(
    ("deliveries", "requests", "seen_ms", "found"),
    [
        (HELD, [commit()], HELD_MS + 5, []),
        (HELD, [commit()], 5, DISAGREE),
        (Deliveries(), [commit()], -HELD_MS, DISAGREE),
        (DROPPED, [commit(), LATER], 8_005, []),
        (DROPPED, [commit()], 5, DISAGREE),
        (DROPPED, [commit(), LATER, LAST], 9_005, DISAGREE),
        (REFUSED, [commit(), LATER], 8_005, []),
        (REFUSED, [commit()], HELD_MS + 5, DISAGREE),
    ],
    ids=["as it was delivered", "before the delivery", "without the tap", "a dropped one is not",
         "a report of a dropped one", "others of the connection are compared as ever",
         "a refused one is reported by nobody", "a report of a commit that it took for refused"],
)  # fmt: skip
def test_an_answer_is_expected_when_it_was_delivered(deliveries, requests, seen_ms, found):
    rows, counts = judged(deliveries, requests, [saw(ANSWERED_MS + seen_ms)])
    assert [row["kind"] for row in rows][:1] == found
    assert counts[UNDELIVERED] == (deliveries is DROPPED)


def test_a_request_that_was_sent_twice_is_reported_once():
    """The broker logs both, the client gets the first answer."""
    first = line({"rules": ["r1"]}, held_ms=0.0)
    copy = line({"delivered": False, "rules": ["r1"], "copy": True}, held_ms=2.0)
    twice = read([first, copy.replace('"responseQueueTimeMs":2.0', '"responseQueueTimeMs":0.0')])
    again = commit(answered_ms=ANSWERED_MS + 2)
    later = commit(8, ANSWERED_MS + 1_000)
    reports = [saw(ANSWERED_MS + 5), saw(ANSWERED_MS + 1_005)]
    assert judged(twice, [commit(), again, later], reports)[0] == []
    assert judged(Deliveries(), [commit(), again, later], reports)[0] != []


def test_copies_are_counted_for_the_requests_of_their_connection_alone():
    copy = {"delivered": False, "rules": ["r1"], "copy": True}
    twice = read([line({"rules": ["r1"]}), line(copy)])
    key = MEMBER, "OFFSET_COMMIT", 7
    assert twice.copies(key, f"{CONNECTION}-1-3", ANSWERED_MS) == 1
    assert twice.copies((MEMBER, "OFFSET_COMMIT", 8), f"{CONNECTION}-1-3", ANSWERED_MS) == 0
    assert twice.copies(key, "10.0.0.1:1-10.0.0.2:2-0-1", ANSWERED_MS + 60_000) == 0
    assert HELD.copies(key, f"{CONNECTION}-1-3", ANSWERED_MS) == 0


def test_a_copy_without_an_answer_was_sent_all_the_same():
    """The connection ended before; the broker may have logged it."""
    copy = line({"forwarded": True, "why": "the client closed it", "copy": True})
    unanswered = copy.replace(request_log.COMPLETED, tap_lines.UNANSWERED)
    unanswered = unanswered.replace(f'"responseQueueTimeMs":{HELD_MS},', "")
    twice = read([line({"rules": ["r1"]}), unanswered])
    assert twice.copies((MEMBER, "OFFSET_COMMIT", 7), f"{CONNECTION}-1-3", ANSWERED_MS) == 1
    first = twice.of(commit())
    assert first is not None
    assert first.at_ms == ANSWERED_MS + HELD_MS
    assert not read([unanswered.replace('"copy":true', '"copy":false')]).by_request


@pytest.mark.parametrize(
    "altered",
    [
        line(None),
        line({"rules": []})[:-30],
        line({"rules": []}).replace('"correlationId":7', '"correlationId":[7]'),
        line({"rules": []}).replace('"connection"', '"connexion"'),
        line({"rules": []}).replace(json.dumps(HELD_MS), '"long"'),
    ],
)
def test_lines_that_are_altered_or_without_the_key_excuse_nothing(altered):
    assert not read([altered]).by_request


def test_numbers_that_begin_anew_differ_by_connection_and_time():
    held = read([line({"rules": ["r1"]}, connection="10.0.0.1:1-10.0.0.2:2-0-1")])
    assert held.of(commit()) is not None  # addresses differ behind a NAT, times do not
    assert held.of(commit(answered_ms=ANSWERED_MS + 60_000)) is None
    assert held.of(replace(commit(), api="HEARTBEAT")) is None


def test_a_client_is_not_blamed_for_what_it_never_learned():
    """MEMBER_ID_REQUIRED gave it an id (KIP-394), and the answer was dropped."""
    tap = {"delivered": False, "why": "dropped", "rules": ["r1"]}
    dropped = read([line(tap, api="JOIN_GROUP", held_ms=0.0)])

    def join(serial, member_id, error, given, at_ms):
        request = {"groupId": GROUP, "memberId": member_id, "groupInstanceId": None,
                   "sessionTimeoutMs": 6_000, "rebalanceTimeoutMs": 6_000}  # fmt: skip
        response = {"errorCode": error, "memberId": given, "generationId": -1}
        return replace(commit(serial, at_ms), api="JOIN_GROUP", api_version=5, request=request,
                       response=response)  # fmt: skip

    joins = [
        join(7, "", 79, "given-1", ANSWERED_MS),
        join(8, "", 79, "given-2", ANSWERED_MS + 500),
        join(9, "given-2", 0, "given-2", ANSWERED_MS + 600),
    ]

    def broken(deliveries):
        rules = ClientRules(context(deliveries=deliveries))
        rules.add(joins, [79, 79, 0])
        return {row["rule"] for row in rules.rows()}

    assert "takes-its-id" in broken(Deliveries())
    assert "takes-its-id" not in broken(dropped)


def test_a_client_is_judged_by_the_error_that_it_got_and_not_by_its_brokers_answer():
    """Answered UNKNOWN_MEMBER_ID to a heartbeat, it has to join afresh (KIP-345)."""
    lied = read([line({"rules": ["r1"], "errorCode": Error.UNKNOWN_MEMBER_ID}, api="HEARTBEAT",
                      held_ms=0.0)])  # fmt: skip

    def asked(api, serial, at_ms, **more):
        request = {"groupId": GROUP, "memberId": "m", "groupInstanceId": None, "generationId": 3,
                   "sessionTimeoutMs": 6_000, "rebalanceTimeoutMs": 6_000}  # fmt: skip
        return replace(commit(serial, ANSWERED_MS + at_ms), api=api, api_version=4,
                       request=request | more, response={"errorCode": 0, "memberId": "m",
                                                         "generationId": 3})  # fmt: skip

    joins = [asked("JOIN_GROUP", 5, -2_000), asked("SYNC_GROUP", 6, -1_000)]

    def broken(deliveries, member_id):
        rules = ClientRules(context(deliveries=deliveries))
        again = asked("JOIN_GROUP", 8, 2_000, memberId=member_id)
        rules.add([*joins, asked("HEARTBEAT", 7, 0), again], [0] * 4)
        return {row["rule"] for row in rules.rows()}

    assert broken(lied, "m") == {"rejoins-afresh"}
    assert broken(lied, "") == broken(Deliveries(), "m") == set()
