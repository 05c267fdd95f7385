"""Lines of the tap: requests without an answer, and those that were sent twice."""

import json
import lzma
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka_protocol import tap_lines
from kafka_protocol.coordinator_lines import JAVA
from kafka_protocol.request_log import COMPLETED, LOGGER
from reports.judgement.log import reading
from reports.judgement.log.broker_log import Place, tables_of
from reports.judgement.log.log_places import Split
from reports.judgement.log.merging import read_logs
from reports.judgement.log.parsing import Parser
from reports.judgement.log.reading import COPIED
from reports.judgement.log.split_rows import Blob, ProcessSummary, SplitSummary
from reports.judgement.run.run_folder import RunFolder

CONTENT: dict[str, Any] = {
    "requestHeader": {
        "requestApiKey": 12, "requestApiVersion": 4, "correlationId": 7, "clientId": "c",
        "requestApiKeyName": "HEARTBEAT",
    },
    "request": {"groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": None},
    "connection": "127.0.0.1:9092-127.0.0.1:4711-0-3",
    "totalTimeMs": 300.0,
}  # fmt: skip


class Log(NamedTuple):
    """What was read of a log of the tap."""

    tables: dict[str, list[dict[str, Any]]]
    process: ProcessSummary


def read(*bodies: tuple[str, str]) -> Log:
    parser = Parser(JAVA, True, on_wire=True)
    texts = [
        f"{number} 1000 1000000000 tap DEBUG {body} ({logger})".encode()
        for number, (logger, body) in enumerate(bodies, 1)
    ]
    *blobs, summary = reading.read(texts, "1", parser)
    assert isinstance(summary, SplitSummary)
    place = Place("1", "tap/1/group.log", numbered=True, on_wire=True, offsets={0: 0.0})
    found = tables_of([blob for blob in blobs if isinstance(blob, Blob)], place)
    return Log(found, *summary.processes)


def rows(log: Log) -> list[dict[str, Any]]:
    return log.tables["requests"]


def status(log: Log) -> list[str]:
    unused = {row["line"]: row["status"] for row in log.tables["coverage"]}
    return [unused.get(line, "used") for line in range(1, log.process.count + 1)]


def unanswered(**tap: Any) -> tuple[str, str]:
    return tap_lines.LOGGER, tap_lines.UNANSWERED + json.dumps({**CONTENT, "tap": tap})


def altered(change: Callable[[dict[str, Any]], Any]) -> tuple[str, str]:
    content = deepcopy(CONTENT) | {"tap": {"forwarded": True, "requestHeldMs": 1.0}}
    change(content)
    return tap_lines.LOGGER, tap_lines.UNANSWERED + json.dumps(content)


def completed(**more: Any) -> tuple[str, str]:
    times = dict.fromkeys(
        ("requestQueueTimeMs", "localTimeMs", "responseQueueTimeMs", "sendTimeMs"), 0.0
    )
    content = {**CONTENT, **times, "remoteTimeMs": 300.0, "response": {"errorCode": 0}, **more}
    return LOGGER, COMPLETED + json.dumps(content, separators=(",", ":"))


def test_a_request_without_an_answer_came_when_it_was_forwarded():
    log = read(unanswered(forwarded=True, requestHeldMs=100.0))
    (row,) = rows(log)
    assert status(log) == ["used"]
    assert (row["group"], row["api"], row["response"], row["readable"]) == (
        "g", "HEARTBEAT", None, True,
    )  # fmt: skip
    assert (row["arrived_ms"], row["earliest_ms"], row["at_ms"]) == (700.0, 800.0, 800.0)


@pytest.mark.parametrize(
    ("bodies", "found"),
    [
        ([unanswered(forwarded=False)], ["irrelevant"]),
        ([(tap_lines.LOGGER, tap_lines.UNREADABLE + "{}")], ["rejected"]),
        ([unanswered()], ["rejected"]),
        ([completed()], ["used"]),
        ([completed(), (tap_lines.LOGGER, tap_lines.ENDED)], ["used", "irrelevant"]),
        ([completed(), completed(tap={"copy": True})], ["used", "used"]),
    ],
    ids=["sent to no broker", "not read by the tap", "altered", "whole", "the end", "a copy"],
)
def test_what_becomes_of_a_line(bodies, found):
    log = read(*bodies)
    assert status(log) == found
    assert log.process.ended == (len(found) == 2 and found[1] == "irrelevant")
    assert [row["readable"] for row in rows(log)].count(True) == found.count("used")


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        *(("requestHeader", {"correlationId": value}) for value in ("x", None)),
        ("requestHeader", {"requestApiKeyName": "NONSENSE"}),
        ("request", {"groupId": None}),
        ("request", {"memberId": "\ud800"}),
        ("request", {"generationId": "x"}),
        *((None, {"totalTimeMs": value}) for value in (float("nan"), float("inf"), "5", True)),
        *(("tap", {"requestHeldMs": value}) for value in (float("nan"), 300.1, -1.0)),
        *(("tap", {"forwarded": value}) for value in (0, 1)),
    ],
    ids=str,
)
def test_an_altered_request_without_an_answer_is_rejected(part, changed):
    change = lambda content: (content[part] if part else content).update(changed)
    assert status(read(altered(lambda _: None))) == ["used"]
    log = read(altered(change))
    assert status(log) == ["rejected"]
    assert [row["readable"] for row in rows(log)] == [False]


@pytest.mark.parametrize(("groups", "group"), [(["g"], "g"), (["g", "h"], None)])
def test_offsets_of_several_groups_may_stay_unanswered(groups, group):
    def batch(content: dict[str, Any]) -> None:
        content["requestHeader"].update(requestApiKeyName="OFFSET_FETCH", requestApiVersion=8)
        content["request"] = {
            "groups": [{"groupId": one, "topics": None} for one in groups], "requireStable": False,
        }  # fmt: skip

    log = read(altered(batch))
    assert status(log) == ["used"]
    assert [row["group"] for row in rows(log)] == [group]


def test_the_wire_gives_the_time_from_the_request_to_its_answer():
    (row,) = rows(read(completed(responseQueueTimeMs=50.0, totalTimeMs=350.0)))
    times = ("arrived_ms", "earliest_ms", "at_ms", "latest_ms", "answered_ms")
    assert [row[name] for name in times] == [650.0, 650.0, 650.0, 950.0, 950.0]


def test_the_second_of_a_request_that_was_sent_twice_is_no_repeated_line():
    first, second = rows(read(completed(), completed(tap={"rules": ["r1"], "copy": True})))
    assert second["connection"] == f"{first['connection']}-copy"
    assert completed(tap={"copy": True})[1].endswith(COPIED)


TAPPED = Path(__file__).parents[2] / "recorded/tapped/held-and-doubled-4.3.0"


def is_whole(lines: list[bytes]) -> bool:
    """Tell whether the tap's log of broker 1 counts as whole."""
    split = Split("/run/tap/1/group.log", 0)
    return read_logs({split: lines}, RunFolder(TAPPED).tap_parser).merged.is_whole


def test_a_damaged_log_of_the_tap_is_not_whole():
    """A whole log proves that what it lacks was not sent."""
    lines = lzma.decompress((TAPPED / "tap/1/group.log.xz").read_bytes()).splitlines()
    assert is_whole(lines)
    number, at, tick, body = lines[20].split(b" ", 3)
    other = re.sub(rb'"correlationId":\d+', b'"correlationId":99999', lines[20], count=1)
    shifted = b" ".join((number, at, str(int(tick) + 10**12).encode(), body))
    assert not is_whole([*lines[:22], other, *lines[22:]]), "a number stands twice"
    assert not is_whole([*lines[:20], shifted, *lines[21:]]), "a clock is off"
    assert not is_whole([*lines[:20], *lines[21:]]), "a line is missing"
