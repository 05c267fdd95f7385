"""Lines of a broker whose wall clock a fault had set off: the nano clock places them."""

from collections.abc import Sequence
from typing import Any

import pytest

from kafka_protocol.coordinator_lines import JAVA, SCALA
from reports.judgement.log.log_places import Split
from reports.judgement.log.merging import read_logs
from reports.judgement.log.parsing import Parser
from reports.judgement.run.disturbance import (
    UNPLACED,
    Disturbance,
    Skew,
    Source,
    on_right_clock,
    skews,
)
from reports.judgement.run.faults import faults_of, outage_of
from reports.timing import CLOCK_OFF_MS

ZERO_MS = 1_790_000_000_000
SERVICE = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
LINE = f"INFO [GroupCoordinator id=1] Startup complete. ({SERVICE})"
FIRST = LINE.replace("Startup complete", "Starting up")
NOT_ITS_OWN = "the time it shows is not its broker's"
BOOTED_MS = 77.0
"""Where the nano clock begins."""
OFF = (20_000, 80_000)
"""From when to when the clock is off, in ms after the first line: most of the 100 s of lines."""


def lines(by_ms: int, off: tuple[int, int] = OFF) -> list[str]:
    """Write one line each second; the wall clock is off by so much from then to then."""
    texts = []
    for n in range(101):
        at_ms = 1_000 * n
        shown_ms = ZERO_MS + at_ms + (by_ms if off[0] <= at_ms < off[1] else 0)
        nanos = round((at_ms + BOOTED_MS) * 1e6) + 500_000
        texts.append(f"{n + 1} {shown_ms} {nanos} main {LINE if n else FIRST}")
    return texts


def read(
    texts: list[str], known: Sequence[Skew], *, numbered: bool = True
) -> tuple[list[float], list[Any]]:
    """Return the times of the lines after the first one, and what is doubtful of which line."""
    parser = Parser(JAVA if numbered else SCALA, numbered, skews=known)
    logs = read_logs({Split("brokers/1/group.log", 0): [text.encode() for text in texts]}, parser)
    tables = logs.tables()
    doubts = [row for row in tables["lost"] if row["what"] in (NOT_ITS_OWN, UNPLACED)]
    return (
        [row["at_ms"] - ZERO_MS for row in tables["transitions"]],
        [(row["line"], row["what"]) for row in doubts],
    )


def skew(by_ms: int, off: tuple[int, int] = OFF, broker: str = "1") -> Skew:
    return Skew(broker, ZERO_MS + off[0] - 300, ZERO_MS + off[1] + 300, by_ms)


@pytest.mark.parametrize("by_ms", [3_000, -3_000, 600, -600, 3_600_000, -9_000])
def test_lines_of_that_time_are_placed_by_the_nano_clock_without_a_doubt(by_ms):
    at_ms, doubts = read(lines(by_ms), [skew(by_ms)])
    assert doubts == []
    assert at_ms == pytest.approx([1_000 * n + 0.5 for n in range(101)], abs=1.0)


@pytest.mark.parametrize("by_ms", [3_000, -3_000])
def test_a_clock_that_no_fault_set_off_is_a_doubt(by_ms):
    for known in ((), [skew(by_ms, broker="2")], [skew(-by_ms)], [skew(2 * by_ms)]):
        assert NOT_ITS_OWN in {what for _, what in read(lines(by_ms), known)[1]}


@pytest.mark.parametrize("by_ms", [3_000, -3_000])
def test_a_line_that_is_off_after_the_fault_is_a_doubt(by_ms):
    early = skew(by_ms, (20_000, 60_000))
    _, doubts = read(lines(by_ms), [early])
    after = 60_300 + CLOCK_OFF_MS
    assert [what for _, what in doubts] == [NOT_ITS_OWN] * len(doubts)
    assert [line for line, _ in doubts] == [n + 1 for n in range(101) if after < 1_000 * n < OFF[1]]


@pytest.mark.parametrize("by_ms", [3_000, -3_000])
def test_a_process_of_which_no_line_is_of_another_time_is_a_doubt(by_ms):
    whole = (-10_000, 200_000)
    assert read(lines(by_ms, whole), [skew(by_ms, whole)])[1] == [(1, UNPLACED)]


def test_lines_without_a_nano_clock_are_a_doubt_from_the_fault_on():
    date = "2026-09-21 14:13:20,"
    texts = [f"{date}{ms:03} main {LINE}" for ms in range(0, 900, 100)]
    assert read(texts, [], numbered=False)[1] == []
    elsewhere = skew(3_000, (20_000, 30_000))
    assert read(texts, [elsewhere], numbered=False)[1] == []
    assert read(texts, [skew(3_000, (500, 800))], numbered=False)[1] == [(1, UNPLACED)]


def entries(*, healed: bool) -> list[dict[str, Any]]:
    args = {"by_ms": -3_000, "lasts_ms": 5_000, "broker": 2}
    intent = {"event": "intent", "fault_id": "f1.1", "fault": "clock.skew", "kind": "recoverable",
              "target": "broker-2", "args": args, "at_ms": 5_000}  # fmt: skip
    end = {"event": "healed", "fault_id": "f1.1", "healed": True, "at_ms": 11_000}
    return [intent, {"event": "injected", "fault_id": "f1.1", "at_ms": 6_000}, *[end] * healed]


def test_the_journal_tells_when_a_clock_was_off():
    assert list(skews(faults_of(entries(healed=True)))) == [Skew("2", 5_000, 11_000, -3_000)]
    [unhealed] = skews(faults_of(entries(healed=False)))
    assert unhealed.to_ms == float("inf")


def test_a_clock_that_is_off_is_no_outage():
    assert [*map(outage_of, faults_of(entries(healed=True)))] == [None]


def test_a_standstill_in_the_log_of_a_jvm_counts_at_both_times():
    stood = Disturbance("2", 8_000, 9_000, "gc", Source.STANDSTILL)
    known = [Skew("2", 5_000, 11_000, 3_000)]
    both = {(one.from_ms, one.until_ms) for one in on_right_clock([stood], known)}
    assert both == {(8_000, 9_000), (5_000, 6_000)}
    late = Disturbance("2", 80_000, 90_000, "gc", Source.STANDSTILL)
    assert list(on_right_clock([late], known)) == [late]
