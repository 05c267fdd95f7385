"""Fenced lines: a request with another member id than that of its instance leaves one (KIP-345).

The line names no group. It names the member and the instance, which the refused request has, so an
answer FENCED_INSTANCE_ID and its line are paired by these. A JoinGroup or SyncGroup that waits when
its instance gets a new member id is fenced without a line: `static_replaced` says why. A line that
has no such answer belongs to the group in which its member id was used.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

from kafka_protocol.apis import HELD_APIS
from kafka_protocol.coordinator_lines import Grammar
from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.replay import EpochEvent, ExpectedLine, ObservedRequest
from reference_coordinator.timing import SEEMS_AFTER_LINE_MS
from reports.judgement.rows import Json, Row
from reports.judgement.timelines.member_lines import (
    ALIKE,
    DOUBTFUL_LINE,
    FENCED,
    FINE,
    PLACE,
    UNEXPECTED,
    About,
    Outcome,
    differences,
    differing,
)
from reports.timing import FENCED_LATE_MS, UNLOGGED_MS

MOST = 10_000
"""How many of these lines of a run are compared: each group is judged with all of them."""

FencedLines = Mapping[str, Sequence[Row]]
"""Those of all groups by the member id, or the instance if the request had no member id: place and
what they say; `holder` and `operation` are "" before 3.0 and 2.5."""


def fenced_lines(rows: Iterable[Row], grammar: Grammar) -> FencedLines | None:
    """Return the fenced lines among rows of the table `transitions`; None if they are too many."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["template"] == FENCED:
            said = {"holder": "", "operation": "", **grammar.said(FENCED, row["message"])}
            line = {name: row[name] for name in PLACE} | said
            found[line["member"] or line["instance"]].append(line)
    return dict(found) if sum(map(len, found.values())) <= MOST else None


def fencings(seen: ObservedRequest) -> Iterator[ExpectedLine]:
    """Yield the lines about the members that a request was fenced with.

    The request's own line may come late, so that the request seems to have come after that.
    """
    whom = [seen.request]
    if seen.api == "LEAVE_GROUP":
        answers = seen.response_fields.get("members", ())
        whom = [one for one in answers if one["errorCode"] == Error.FENCED_INSTANCE_ID]
    earliest_ms = seen.earliest_ms - SEEMS_AFTER_LINE_MS
    latest_ms = seen.answered_ms + FENCED_LATE_MS
    for one in whom:
        instance = one.get("groupInstanceId") or ""
        says = ("broker", seen.broker), ("operation", seen.api), ("instance", instance)
        yield ExpectedLine(FENCED, one["memberId"], seen.at_ms, earliest_ms, latest_ms, says)


def fits(due: ExpectedLine, line: Row) -> bool:
    """Tell whether a line may be the one that is due."""
    says = {"instance": line["instance"]}
    says |= {"operation": line["operation"]} if line["operation"] else {}
    return (
        line["member"] == due.subject
        and _is_within(due, line)
        and not differences(FENCED, due.says, says, names_batch=False)
    )


def _is_within(due: ExpectedLine, line: Row) -> bool:
    """Tell whether a broker may have been at the request when it printed a line."""
    is_same: bool = dict(due.says)["broker"] == line["broker"]
    return is_same and due.earliest_ms <= line["at_ms"] <= due.latest_ms


@dataclass(slots=True)
class Fencings:
    """The answers of one group that fence, beside the fenced lines of all groups."""

    lines: FencedLines
    _due: list[ExpectedLine] = field(default_factory=list)
    _named: set[str] = field(default_factory=set)
    """Whom of those in lines requests of the group name."""
    _held: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The member ids that instances had."""

    def add(self, requests: Sequence[ObservedRequest], fenced: Iterable[tuple[Any, ...]]) -> None:
        """Take requests as the oracle sees them: what stalls held up may be logged late.

        `fenced` are those answered FENCED_INSTANCE_ID, as `Chunk` has them.
        """
        fencing = {number for *_, number in fenced}
        if not (self.lines or fencing):
            return
        for seen in requests:
            if seen.id in fencing:
                self._due += fencings(seen)
            for member, instance, error in _named(seen):
                if (member or instance) in self.lines:
                    self._named.add(member or instance)
                if error == NO_ERROR and instance:
                    self._held[instance].add(member)

    def rows(self, replaced: Sequence[Row] | None, brokers: Sequence[EpochEvent]) -> Iterator[Json]:
        """Compare; yield rows of `MEMBER_LINES` without the group, once all requests are in.

        `replaced` are the group's lines `static_replaced`, None where these name no group;
        `brokers` tell when brokers ended.
        """
        observed: dict[About, list[Row]] = defaultdict(list)
        expected: dict[About, list[ExpectedLine]] = defaultdict(list)
        known = chain.from_iterable(self.lines[whom] for whom in self._named)
        for line in sorted(known, key=itemgetter("at_ms")):
            observed[FENCED, line["member"]].append(line)
        for due in sorted(self._due, key=attrgetter("latest_ms")):
            expected[FENCED, due.subject].append(due)

        def outcome(_: str, line: Row | None, due: ExpectedLine | None) -> Outcome:
            if line is None:
                return FINE if due and _was_replaced(due, replaced) else ("missing_line", "")
            if due is None:
                return FINE if _ended(line, brokers) else (UNEXPECTED, "")
            holders = {"", *self._held[line["instance"]] - {line["member"]}}
            is_known = line["holder"] in holders
            return FINE if is_known else (DOUBTFUL_LINE, f"holder '{line['holder']}'")

        yield from differing(observed, expected, outcome, fits)


def _named(seen: ObservedRequest) -> Iterator[tuple[str, str, int | None]]:
    """Yield the member ids that a request and its answer name: instance, and error if any."""
    request, response = seen.request, seen.response_fields
    if seen.api == "LEAVE_GROUP":
        for one in request.get("members", ()):
            yield one["memberId"], one["groupInstanceId"] or "", None
        return
    error, instance = response.get("errorCode"), request.get("groupInstanceId") or ""
    yield request.get("memberId") or "", instance, error
    if seen.api == "JOIN_GROUP":
        yield response.get("memberId") or "", instance, error
        for one in response.get("members", ()):
            yield one["memberId"], one.get("groupInstanceId") or "", NO_ERROR


def _was_replaced(due: ExpectedLine, replaced: Sequence[Row] | None) -> bool:
    """Tell whether a request may have waited when its instance got a new member id.

    A new process names no member id.
    """
    says = dict(due.says)
    if says["operation"] not in HELD_APIS or replaced is None:
        return says["operation"] in HELD_APIS
    is_about = lambda row: (
        row["member"] == due.subject
        if due.subject
        else ALIKE["instance"](says["instance"], row["instance"])
    )
    return any(_is_within(due, row) and is_about(row) for row in replaced)


def _ended(line: Row, brokers: Sequence[EpochEvent]) -> bool:
    """Tell whether the broker ended so soon that it may not have logged the request."""
    return any(
        (event.kind, event.broker) == ("ended", line["broker"])
        and line["at_ms"] <= event.at_ms <= line["at_ms"] + UNLOGGED_MS
        for event in brokers
    )
