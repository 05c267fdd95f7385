"""Fenced lines of recorded groups, and such as no answer bears out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafka_protocol.apis import HELD_APIS
from reference_coordinator.replay import EpochEvent, ExpectedLine, ObservedRequest, Stall
from reference_coordinator.timing import SEEMS_AFTER_LINE_MS
from reports.judgement.group import check_rows
from reports.judgement.logged import Chunk, HeldUp, LoggedRow, Requests
from reports.judgement.recording import Recording
from reports.judgement.timelines.fenced_lines import (
    MOST,
    FencedLines,
    Fencings,
    fenced_lines,
    fencings,
    fits,
)
from reports.judgement.timelines.member_lines import FENCED
from reports.timing import FENCED_LATE_MS as LATE
from reports.timing import UNLOGGED_MS
from tests.recorded.logs import HISTORIES, RECORDINGS

EVERY = pytest.mark.parametrize(
    "recording", [*RECORDINGS.values(), *HISTORIES.values()], ids=[*RECORDINGS, *HISTORIES]
)
Json = dict[str, Any]
MISSING, UNEXPECTED, DOUBTFUL = "missing_line", "unexpected_line", "doubtful_line"


def lines_of(recording: Recording) -> list[Json]:
    assert recording.context.fenced is not None
    return [line for lines in recording.context.fenced.values() for line in lines]


def indexed(lines: Sequence[Json]) -> dict[str, list[Json]]:
    """Index lines by whom they are about."""
    whom = {line["member"] or line["instance"] for line in lines}
    return {
        one: [line for line in lines if (line["member"] or line["instance"]) == one] for one in whom
    }


def fenced_in(recording: Recording, group: str) -> list[tuple[ObservedRequest, ExpectedLine]]:
    """Return the lines that are due in a group, each with its request."""
    chunk = Chunk.of(recording.rows_by_group[group])
    ids = {number for *_, number in chunk.fenced}
    observed = Requests.of(chunk).observed
    return [(seen, due) for seen in observed if seen.id in ids for due in fencings(seen)]


def found(
    recording: Recording,
    group: str,
    lines: Sequence[Json],
    replaced: Sequence[LoggedRow] | None = (),
    ends: Sequence[EpochEvent] = (),
    stalls: Sequence[Stall] = (),
) -> list[str]:
    """Return the outcomes of a group."""
    chunk = Chunk.of(recording.rows_by_group[group])
    fenced = Fencings(indexed(lines))
    fenced.add(HeldUp(stalls).widened(Requests.of(chunk).observed), chunk.fenced)
    return [row["outcome"] for row in fenced.rows(replaced, ends)]


def outcomes_with(recording: Recording, group: str, lines: FencedLines | None) -> list[str]:
    """Judge a group as a whole, with other fenced lines than those of the run."""
    context = replace(recording.context, fenced=lines)
    tables = check_rows(context, group, recording.rows_by_group[group])
    return [row["outcome"] for name, row in tables if name == "member_lines"]


def of_heartbeat(recording: Recording) -> tuple[str, ObservedRequest, Json]:
    """Find a group, a heartbeat that is fenced there, and its line."""
    group, seen, due = next(
        (group, seen, due)
        for group in recording.groups
        for seen, due in fenced_in(recording, group)
        if seen.api == "HEARTBEAT"
    )
    (line,) = [line for line in lines_of(recording) if fits(due, line)]
    return group, seen, line


def altered(recording: Recording, line: Json, **fields: Any) -> list[Json]:
    return [one | fields if one == line else one for one in lines_of(recording)]


@EVERY
def test_each_recorded_line_is_that_of_one_answer(recording):
    for group, rows in recording.rows_by_group.items():
        tables = check_rows(recording.context, group, rows)
        assert not [row for name, row in tables if name == "member_lines"]
    fenced = [one for group in recording.groups for one in fenced_in(recording, group)]
    lines = lines_of(recording)
    assert len(lines) >= 7 * (recording in RECORDINGS.values())
    for line in lines:
        assert len([due for _, due in fenced if fits(due, line)]) == 1
    for seen, due in fenced:
        waited = seen.api in HELD_APIS
        assert waited or len([line for line in lines if fits(due, line)]) == 1


def live(line: Json) -> Json:
    """A line about the member that holds the instance, and is not fenced."""
    return line | {"member": line["holder"], "line": line["line"] + 1}


LIES = {
    "as it is": (lambda line, seen: [line], []),
    "missing": (lambda line, seen: [], [MISSING]),
    # one about a member that nobody knows belongs to no group
    "another member": (lambda line, seen: [line | {"member": "another"}], [MISSING]),
    "another instance": (lambda line, seen: [line | {"instance": "x"}], [MISSING, UNEXPECTED]),
    "another operation": (lambda line, seen: [line | {"operation": "x"}], [MISSING, UNEXPECTED]),
    "of one that is not fenced, too": (lambda line, seen: [line, live(line)], [UNEXPECTED]),
    "twice": (lambda line, seen: [line, line], [UNEXPECTED]),
    # the holder is an id that the instance had; before 3.0 no line says it
    "another holder": (lambda line, seen: [line | {"holder": "another"}], [DOUBTFUL]),
    "no holder": (lambda line, seen: [line | {"holder": ""}], []),
    "held by itself": (
        lambda line, seen: [line | {"holder": seen.request["memberId"]}], [DOUBTFUL]
    ),
    "just in time": (lambda line, seen: [line | {"at_ms": seen.answered_ms + LATE - 0.5}], []),
    "too late": (
        lambda line, seen: [line | {"at_ms": seen.answered_ms + LATE + 0.5}], [MISSING, UNEXPECTED]
    ),
    "just not too early": (
        lambda line, seen: [line | {"at_ms": seen.earliest_ms - SEEMS_AFTER_LINE_MS + 0.5}], []
    ),
    "too early": (
        lambda line, seen: [line | {"at_ms": seen.earliest_ms - SEEMS_AFTER_LINE_MS - 0.5}],
        [MISSING, UNEXPECTED],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lie", "expected"), LIES.values(), ids=LIES)
def test_a_lie_about_one_line(recording, lie, expected):
    group, seen, line = of_heartbeat(recording)
    rest = [one for one in lines_of(recording) if one != line]
    assert found(recording, group, [*rest, *lie(line, seen)]) == expected


def test_a_line_about_a_member_of_another_group(recording):
    group, _, line = of_heartbeat(recording)
    (other, due), *_ = [
        (name, due)
        for name in recording.groups
        if name != group
        for _, due in fenced_in(recording, name)
    ]
    instance = dict(due.says)["instance"]
    lines = altered(recording, line, member=due.subject, instance=instance)
    assert MISSING in found(recording, group, lines)
    assert UNEXPECTED in found(recording, other, lines)


class OfOthersToo(dict[str, list[Json]]):
    """The lines of a run with very many groups: who goes through all of them fails."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("each group would go through the lines of all")

    items = values = keys = __iter__  # type: ignore[assignment]


def test_a_group_looks_at_its_own_lines_alone(recording):
    group, _, line = of_heartbeat(recording)
    lines = OfOthersToo(indexed([*lines_of(recording), live(line)]))
    chunk = Chunk.of(recording.rows_by_group[group])
    fenced = Fencings(lines)
    fenced.add(Requests.of(chunk).observed, chunk.fenced)
    assert [row["outcome"] for row in fenced.rows((), ())] == [UNEXPECTED]


def test_a_request_that_is_logged_late_seems_to_come_after_its_line(recording):
    """Its broker stood still for 2 s before it wrote that line."""
    group, seen, line = of_heartbeat(recording)
    stood_still = Stall(line["broker"], seen.answered_ms - 2_000, seen.answered_ms)

    def fits(early_ms: float, *stalls: Stall) -> bool:
        lines = altered(recording, line, at_ms=seen.earliest_ms - early_ms)
        return found(recording, group, lines, stalls=stalls) == []

    assert fits(1_990 + SEEMS_AFTER_LINE_MS, stood_still)
    assert not fits(2_010 + SEEMS_AFTER_LINE_MS, stood_still)
    assert not fits(1_990 + SEEMS_AFTER_LINE_MS)


@pytest.mark.parametrize("by_ms", [-1.0, 1.0])
def test_a_broker_that_ends_may_not_have_logged_the_request(recording, by_ms):
    group, _, line = of_heartbeat(recording)
    wrong = live(line)
    end = EpochEvent(wrong["at_ms"] + UNLOGGED_MS + by_ms, line["broker"], "ended")
    expected = [UNEXPECTED] if by_ms > 0 else []
    assert found(recording, group, [*lines_of(recording), wrong], ends=[end]) == expected


def test_a_request_that_waits_is_fenced_without_a_line(recording):
    """Its instance got a new member id meanwhile; before 2.8 that line names no group."""
    rows = recording.rows_by_group["returning"]
    replaced = [row for row in rows if row["template"] == "static_replaced"]
    lines = lines_of(recording)
    assert found(recording, "returning", lines, replaced) == []
    assert found(recording, "returning", lines, None) == []
    assert found(recording, "returning", lines, []) == [MISSING] * 2
    moved = [{**row, "at_ms": row["at_ms"] + 60_000} for row in replaced]
    assert found(recording, "returning", lines, moved) == [MISSING] * 2


def test_where_lines_are_not_known_or_too_many_none_is_compared(recording):
    group, _, line = of_heartbeat(recording)
    assert {*outcomes_with(recording, group, {})} == {MISSING}
    assert outcomes_with(recording, group, None) == []
    row = next(one.row for one in recording.lines if one.template == FENCED)
    assert fenced_lines([row] * MOST, recording.run.grammar) is not None
    assert fenced_lines([row] * (MOST + 1), recording.run.grammar) is None
    only = fenced_lines([row], recording.run.grammar)
    assert only is not None
    assert line in only.get(line["member"], ()) or row["line"] != line["line"]
