"""What a follower counts is what the report counts of the same lines."""

import gzip
from collections.abc import Mapping
from itertools import cycle, islice
from math import inf
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupquake.watch.counting import Counting, State
from groupquake.watch.group_counts import CLIENTS, KEPT, OTHERS, GroupCounts, Storm
from reports.incident.group_incident import STORM_REBALANCES, storms
from reports.incident.lines.reader import Line
from reports.incident.rebalances import Began
from tests.groupquake.watch.outputs_here import preparing
from tests.reports.incident.incident_here import RECORDED, incident_of, recorded

UTC = ZoneInfo("UTC")
NAMES = sorted(path.name for path in RECORDED.iterdir())
LOGS = {name: recorded(name) for name in NAMES}
REPORTS = {name: incident_of(files) for name, files in LOGS.items()}


def lines_of(name: str) -> list[str]:
    parts = (
        gzip.decompress(content) if file.endswith(".gz") else content
        for file, content in LOGS[name].items()
    )
    return b"".join(sorted(parts)).decode().splitlines()  # each part begins with a time


def again(counting: Counting) -> Counting:
    """Stop, and start from what is written down."""
    return Counting(msgspec.json.decode(msgspec.json.encode(counting.state), type=State), UTC)


def assert_counts(counting: Counting, report: Mapping[str, Any], begun: list[Storm]) -> None:
    groups = {one.name: one for one in counting.view().groups}
    assert groups.keys() == report["groups"].keys()
    for name, of in report["groups"].items():
        assert groups[name].causes == of["by_reason"]
        assert groups[name].storms == len(of["storms"])
        assert groups[name].storms == sum(one.group == name for one in begun)
    by_client = {
        (one["group"], one["client"]): one["rebalances"] for one in report["worst_members"]
    }
    counted = {(one.name, name): n for one in groups.values() for name, n in one.clients.items()}
    assert counted == {key: count for key, count in by_client.items() if count}


@pytest.mark.parametrize("name", NAMES)
@given(pieces=st.lists(st.integers(1, 200), min_size=1), stops=st.integers(2, 9))
@settings(max_examples=5)
def test_it_counts_what_the_report_counts_however_often_it_is_stopped(
    name: str, pieces: list[int], stops: int
) -> None:
    texts, counting, begun = iter(lines_of(name)), Counting(State(), UTC), list[Storm]()
    for number, size in enumerate(cycle(pieces)):
        if not (piece := [*islice(texts, size)]):
            break
        if number % stops == 0:
            counting = again(counting)
        counting.take("server.log", piece, number / 10)
        begun += counting.settle(number / 10)
    begun += counting.settle(inf)
    assert_counts(counting, REPORTS[name], begun)


def test_a_command_that_repeats_its_lines_doubles_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupquake.watch.counting.RECENT", 100)  # it repeats more than that
    texts, begun = lines_of(NAMES[0]), list[Storm]()
    counting = Counting(State(), UTC)
    for upto in (len(texts) // 2, len(texts)):
        counting = again(counting)
        counting.begins("kubectl logs")
        counting.take("kubectl logs", texts[:upto], 0)
        begun += counting.settle(inf)
    assert_counts(counting, REPORTS[NAMES[0]], begun)
    assert counting.view().lines["folded"] > 100


def test_lines_of_two_appenders_count_once() -> None:
    counting = Counting(State(), UTC)
    counting.take("a", [text for text in lines_of(NAMES[0]) for _ in range(2)], 0)
    assert_counts(counting, REPORTS[NAMES[0]], counting.settle(inf))
    lines = counting.view().lines
    assert lines["folded"] == lines["used"]


def test_a_process_whose_clock_is_late_does_not_hold_up_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("groupquake.watch.counting.RECENT", 5)
    counting = Counting(State(), UTC)
    for number in range(10):
        counting.take("late", [preparing(number, generation=number)], 0.0)
        counting.take("b", [preparing(30 + number, generation=number)], 0.0)
    counting.settle(0.1)
    assert len(counting.state.pending) == 5


def test_lines_of_two_processes_are_counted_in_the_order_of_their_times() -> None:
    counting = Counting(State(), UTC)
    counting.take("a", [preparing(10, generation=1), preparing(30, generation=3)], 0.0)
    assert counting.settle(0.5) == [], "b may still write"
    counting.take("b", [preparing(20, generation=2)], 0.5)
    counting.settle(2.0)
    (group,) = counting.state.groups.values()
    assert [one.generation for one in group.recent.found] == [1, 2, 3]


def test_a_storm_is_an_event_once() -> None:
    counting, found = Counting(State(), UTC), list[Storm]()
    for number in range(STORM_REBALANCES + 3):
        counting = again(counting)
        counting.take("a", [preparing(2 * number, generation=number)], number)
        found += counting.settle(inf)
    (storm,) = found
    assert (storm.rebalances, storm.until_ms - storm.from_ms) == (STORM_REBALANCES, 8_000)


@given(st.lists(st.integers(0, 150_000), max_size=40))
def test_storms_are_those_of_the_report(pauses_ms: list[int]) -> None:
    group, at_ms, began = GroupCounts(), 0.0, list[float]()
    for pause_ms in pauses_ms:
        at_ms += pause_ms
        began.append(at_ms)
        [*group.take(Line(at_ms, "1", None, "preparing", "g", {"reason": "leave"}, ""))]
    assert group.storms == len(storms([Began(at_ms, at_ms) for at_ms in began]))


def test_memory_is_bounded_and_nothing_is_forgotten_of_the_counts() -> None:
    group = GroupCounts()
    for number in range(3 * KEPT):
        member = f"app{number}-{number:08x}-0000-0000-0000-000000000000"
        fields = {"reason": "leave", "member": member, "generation": str(number)}
        [*group.take(Line(1e6 * number, "1", None, "preparing", "g", fields, ""))]
    view = group.view("g")
    assert len(group.recent.found) < 2 * KEPT
    assert view.causes == {"leave": 3 * KEPT}
    assert len(view.clients) == CLIENTS + 1
    assert view.clients[OTHERS] == 3 * KEPT - CLIENTS
    assert view.generation == 3 * KEPT - 1
