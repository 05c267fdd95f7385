"""Histories that were cut: recorded ones, without some of their lines."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from reports.judgement import verdict
from reports.judgement.breaches import Breach
from reports.judgement.group import check_rows
from reports.judgement.recording import Recording
from reports.judgement.run.history import ClientEvent, in_order
from reports.judgement.run.run_folder import RunFolder
from tests.reports.judgement.clients.test_comparison import ALL, GROUP, events_of

Events = Sequence[ClientEvent]


def doubts(recording: Recording, events: Events) -> list[str]:
    """Judge a recorded group with such events; return what a doubt says."""
    rows = recording.rows_by_group[GROUP]
    found = [
        row
        for name, row in check_rows(recording.context, GROUP, rows, events)
        if name == "breaches"
    ]
    assert all(row["kind"] == Breach.DISAGREE and not row["proven"] for row in found)
    return [row["expected"] for row in found]


def part(share: float) -> Callable[[Events], Events]:
    def first(events: Events) -> Events:
        at_ms = events[0].at_ms + share * (events[-1].at_ms - events[0].at_ms)
        return [one for one in events if one.at_ms < at_ms]

    return first


def without(event: str | None) -> Callable[[Events], Events]:
    """Leave out one client's events of a kind, or all."""

    def left(events: Events) -> Events:
        gone = lambda one: one.client == "static-0" and event in (None, one.event)
        return [one for one in events if not gone(one)]

    return left


@ALL
@pytest.mark.parametrize(
    "cut",
    [part(0.0), part(0.5), part(0.9), without(None), without("created"), without("committed")],
    ids=["empty", "half", "tenth", "client", "created", "committed"],
)
def test_a_history_that_was_cut(recording, cut):
    events = sorted(events_of(recording), key=in_order)
    assert doubts(recording, events) == []
    assert doubts(recording, cut(events)) != []


@ALL
def test_a_client_that_never_says_how_it_ended(recording):
    events = sorted(events_of(recording), key=in_order)
    last = [one for one in events if one.client == "static-0" and one.event == "created"][-1]
    ends = ("closing", "closed", "killed", "fenced")
    mine = lambda one: one.client == "static-0" and one.at_ms > last.at_ms
    left = [one for one in events if not (mine(one) and one.event in ends)]
    assert doubts(recording, left) == ["static-0 says how its process ended"]


@ALL
@pytest.mark.parametrize("kind", ["java", None])
def test_members_of_java_and_clients_that_are_no_members_report_less(recording, kind):
    """Java's report no commits; others have no history at all."""
    every = sorted(events_of(recording), key=in_order)
    events = [one for one in every if kind and one.event != "committed"]
    assert doubts(recording, events) != []
    members = dict.fromkeys(recording.context.members, kind) if kind else {}
    judge = replace(recording.context, members=members)
    tables = check_rows(judge, GROUP, recording.rows_by_group[GROUP], events)
    assert [row for name, row in tables if name == "breaches"] == []


@pytest.mark.parametrize(
    ("said", "there", "expected"),
    [(True, False, "unknown"), (True, True, "pass"), (False, False, "pass"), (None, False, "pass")],
)
def test_a_history_that_is_gone(said, there, expected, made):
    """Runs from before the environment said whether they have one stay as they are."""
    made.environment |= {} if said is None else {"client_history": said}
    _, _, data, *_ = made.finish()
    if there:
        (made.folder / "history.jsonl").write_text("")
    judged = verdict.evaluate(RunFolder(made.folder), data, "4.3")
    assert judged["verdict"] == expected
    gone = ["the client history is gone: history.jsonl"]
    assert judged["unknown_because"] == (gone if expected == "unknown" else [])
