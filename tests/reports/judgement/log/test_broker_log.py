"""One broker's lines, read in their order: their times, and what became of each."""

import json
from collections import Counter
from statistics import median_low
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_protocol.coordinator_lines import JAVA, SCALA
from kafka_protocol.errors import Error
from kafka_protocol.request_log import COMPLETED
from reports.judgement.log.broker_log import offset_ms
from reports.judgement.log.log_places import Split
from reports.judgement.log.merging import read_logs
from reports.judgement.log.parsing import Parser, parse_request, times_of
from reports.judgement.log.split_rows import How
from reports.judgement.run.deliveries import NOTHING_HELD, Deliveries, Delivery
from reports.timing import CLOCK_AHEAD_MS, CLOCK_BEHIND_MS

ZERO_MS = 1_790_000_000_000
SERVICE = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
STARTING = f"INFO [GroupCoordinator id=1] Starting up. ({SERVICE})"
SHUT_DOWN = f"INFO [GroupCoordinator id=1] Shutdown complete. ({SERVICE})"
NOT_ITS_OWN = "the time it shows is not its broker's"
Tables = dict[str, list[dict[str, Any]]]


def read(
    lines: list[str], *, numbered: bool = True, deliveries: Deliveries = NOTHING_HELD
) -> Tables:
    """Read broker 1's log; return the rows of its tables."""
    parser = Parser(JAVA if numbered else SCALA, numbered)
    split = {Split("brokers/1/group.log", 0): [line.encode() for line in lines]}
    return read_logs(split, parser, How(deliveries=deliveries)).tables()


def printed(*late_ms: float) -> list[str]:
    """Write the 21 lines of one process, one each 10 ms; nano clocks of the first are late."""
    times = [(ZERO_MS + 10 * n, late_ms[n] if n < len(late_ms) else 0.5) for n in range(21)]
    words = [STARTING, *[STARTING.replace("Starting up", "Startup complete")] * 19, SHUT_DOWN]
    return [
        f"{n} {ms} {round((ms - ZERO_MS + late + 77) * 1e6)} main {text}"
        for n, ((ms, late), text) in enumerate(zip(times, words, strict=True), 1)
    ]


@pytest.mark.parametrize(
    ("late_ms", "shifts_ms", "is_doubtful"),
    [
        (2.0, 1.0, False),
        (CLOCK_AHEAD_MS + 30, 1.0, False),
        (CLOCK_BEHIND_MS - 10, 1.0, False),
        (10 - CLOCK_AHEAD_MS, 10 - CLOCK_AHEAD_MS, False),
        (-60.0, -60.0, True),
        (1_010.0, 1_010.0, True),
    ],
    ids=["read late", "read very late", "read just in time", "printed ahead", "too far ahead",
         "too far behind"],
)  # fmt: skip
def test_a_nano_clock_that_is_read_late_does_not_move_a_line(late_ms, shifts_ms, is_doubtful):
    """A time that its broker cannot have printed is reported."""
    found = read(printed(0.5, 0.5, late_ms))
    doubts = [(row["line"], row["what"]) for row in found["lost"]]
    assert doubts == [(3, NOT_ITS_OWN)] * is_doubtful
    times = [row["at_ms"] - ZERO_MS for row in found["transitions"][2:4]]
    assert times == pytest.approx([20 + shifts_ms, 30.5], abs=0.01)


@pytest.mark.parametrize("nanos", ["0", "77", "9" * 18])
def test_lines_whose_nano_clock_stands_still_keep_their_printed_times(nanos):
    """All of them at one time would have as many orders as they can be put in."""
    lines = [f"{n} {ZERO_MS + 400 * n} {nanos} main {STARTING}" for n in range(1, 22)]
    lines[1:] = [line.replace("Starting up", "Startup complete") for line in lines[1:]]
    found = read(lines)
    assert [row["at_ms"] for row in found["transitions"]] == [
        ZERO_MS + 400 * n for n in range(1, 22)
    ]
    assert {row["line"] for row in found["lost"] if row["what"] == NOT_ITS_OWN} == {*range(1, 22)}


def test_a_printed_time_a_little_ahead_of_the_nano_clock_is_none_of_note():
    found = read(printed(0.5, 0.5, 10 - CLOCK_AHEAD_MS))
    assert found["lost"] == []
    assert found["transitions"][2]["at_ms"] == pytest.approx(
        ZERO_MS + 20 + 10 - CLOCK_AHEAD_MS, abs=0.01
    )


def test_lines_without_serial_numbers_stand_within_a_millisecond_as_in_the_log():
    starting = STARTING.replace("GroupCoordinator id=1]", "GroupCoordinator 1]:").replace(
        SERVICE, "kafka.coordinator.group.GroupCoordinator"
    )
    assert starting != STARTING
    date = "2026-09-21 14:13:20"
    started = starting.replace("Starting up", "Startup complete")
    printed_times = zip(("000", "005", "005", "007"), (starting, *[started] * 3), strict=True)
    found = read([f"{date},{ms} main {text}" for ms, text in printed_times], numbered=False)
    rows = sorted([*found["transitions"], *found["coverage"]], key=lambda row: row["line"])
    assert [row["serial_number"] for row in rows] == [1, 2, 3, 4]
    times = [row["at_ms"] - ZERO_MS for row in rows]
    assert times == pytest.approx([0.501, 5.501, 5.502, 7.501], abs=0.0005)


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.integers(-25_000, 25_000) | st.integers(-3, 3), min_size=1, max_size=40),
    st.integers(0, 40),
)
def test_the_offset_of_a_clock_is_the_median_of_the_parts_of_a_log(zero_us, apart_us, cut):
    us = [zero_us + one for one in apart_us]
    parts = Counter(us[:cut]), Counter(us[cut:])
    assert offset_ms(parts[0] + parts[1]) == (median_low(us) + 0.5) / 1_000 + 0.5


@pytest.mark.parametrize("nanos", [77_000_000, 77_000_001, 77_000_999])
def test_the_offset_of_a_clock_is_right_to_half_a_microsecond(nanos):
    line = f"1 {ZERO_MS} {nanos} main {STARTING}".encode()
    read_one = read_logs({Split("brokers/1/group.log", 0): [line]}, Parser(JAVA, numbered=True))
    [start] = read_one.merged.starts.values()
    exact_ms = ZERO_MS + 0.5 - nanos / 1e6
    assert start.offsets[1] == pytest.approx(exact_ms, abs=0.00075)  # a double: 0.00025


BODY: dict[str, Any] = {
    "requestHeader": {"requestApiKeyName": "HEARTBEAT", "requestApiVersion": 4, "clientId": "é",
                      "correlationId": 7},
    "request": {"groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": None},
    "response": {"errorCode": Error.REBALANCE_IN_PROGRESS},
    "connection": "c", "totalTimeMs": 3, "requestQueueTimeMs": 0.5, "localTimeMs": 1.0,
    "remoteTimeMs": 1.0, "responseQueueTimeMs": 0.25, "sendTimeMs": 0.25,
}  # fmt: skip


def request_body(**changed: Any) -> str:
    return COMPLETED + json.dumps(BODY | changed)


def test_a_whole_request_is_readable_and_has_its_times():
    request = parse_request(request_body())
    assert request.readable
    assert (request.group, request.client_id, request.error_code) == (
        "g",
        "é",
        Error.REBALANCE_IN_PROGRESS,
    )
    assert json.loads(request.request or "") == BODY["request"]
    arrived_ms, _, at_ms, _, answered_ms = times_of(request.times_ms, 1_000.0)
    assert (arrived_ms, at_ms, answered_ms) == (997.0, 998.0, 999.5)


def test_an_answer_may_be_ready_before_the_thread_that_handled_it_is_through():
    """Then the local time goes on after it, and the parts are more than the whole (Kafka 4.3.0)."""
    parts = {
        "totalTimeMs": 9.974, "requestQueueTimeMs": 2.082, "localTimeMs": 6.268,
        "remoteTimeMs": 0.0, "responseQueueTimeMs": 2.716, "sendTimeMs": 0.297,
    }  # fmt: skip
    request = parse_request(request_body(**parts))
    assert request.readable
    *_, latest_ms, answered_ms = times_of(request.times_ms, 1_000.0)
    assert answered_ms == latest_ms == pytest.approx(1_000.0 - 2.716 - 0.297)
    assert not parse_request(request_body(**parts | {"remoteTimeMs": 0.001})).readable
    assert not parse_request(request_body(**parts | {"sendTimeMs": 0.297 + 6.268})).readable


@pytest.mark.parametrize(
    "body",
    [
        request_body()[:-1],
        request_body(totalTimeMs=9),
        request_body(totalTimeMs="3"),
        request_body(request=BODY["request"] | {"groupId": None}),
        request_body(request={k: v for k, v in BODY["request"].items() if k != "generationId"}),
        request_body(request=BODY["request"] | {"memberId": 7}),
        request_body(response={}),
        request_body(connection="\ud800"),
        request_body(requestHeader={**BODY["requestHeader"], "requestApiKeyName": "FETCH"}),
        request_body(requestHeader=None),
        "Completed request:[]",
        COMPLETED + "[" * 100_000,
    ],
)
def test_a_request_that_is_not_whole_is_not_readable(body):
    assert not parse_request(body).readable


def with_request(*places: int) -> list[str]:
    """Write one and the same request at some places of a log."""
    lines = printed()
    for place in places:
        head, _, _ = lines[place].partition(" main ")
        lines[place] = f"{head} main DEBUG {request_body()} (kafka.request.logger)"
    return lines


@pytest.mark.parametrize("copied", [False, True])
def test_the_same_request_twice_is_one_too_many(copied):
    """The tap may have sent it twice, and no more."""
    header = BODY["requestHeader"]
    key = header["clientId"], header["requestApiKeyName"], header["correlationId"]
    answers = [Delivery(BODY["connection"], ZERO_MS + 10.0, None, is_copy) for is_copy in (0, 1)]
    deliveries = Deliveries({key: tuple(answers)}) if copied else NOTHING_HELD
    found = read(with_request(1, 2, 3), deliveries=deliveries)
    readable = [True, copied, False]
    assert [row["readable"] for row in found["requests"]] == readable
    rejected = [(row["line"], row["status"]) for row in found["coverage"]]
    assert rejected == [(line, "rejected") for line in (2, 3, 4) if not readable[line - 2]]
