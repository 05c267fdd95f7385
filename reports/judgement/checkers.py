"""The checkers: what is judged of a group, each from its rows alone, batch by batch.

A checker is made for one group of a run. It takes the group's batches in order of time, and gives
rows of tables, each with the name of its table. None depends on another. `CHECKERS` is the list of
all but the replay (`group_evidence.GroupCheck`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from reports.judgement import members
from reports.judgement.clients.assignments import Assignments
from reports.judgement.clients.client_rules.findings import ClientRules
from reports.judgement.clients.comparison import Clients
from reports.judgement.clients.records import Records
from reports.judgement.group_evidence import Batch, GroupEvidence, Named
from reports.judgement.members import Absent
from reports.judgement.missing import gaps
from reports.judgement.missing.correlation_ids import CorrelationIds
from reports.judgement.rows import Json
from reports.judgement.run_context import RunContext
from reports.judgement.timelines.fenced_lines import Fencings
from reports.judgement.witnesses import Pairs


class Checker(NamedTuple):
    """`add` takes the next batch of the group, `end` says that there is no more."""

    add: Callable[[Batch], Iterable[Named] | None]
    end: Callable[[], Iterable[Named]] = tuple


def rows(table: str, found: Iterable[Json]) -> Iterator[Named]:
    """Name the table of rows."""
    return ((table, row) for row in found)


def counted(table: str, counts: Mapping[str, int]) -> Iterator[Named]:
    """Return counts as rows of a table."""
    return rows(table, ({"name": name, "count": count} for name, count in sorted(counts.items())))


def assignments(_: GroupEvidence, context: RunContext) -> Checker:
    """What leaders assigned, and the coordinator accepted."""
    accepted = Assignments(context)
    return Checker(lambda batch: accepted.add(batch.requests), accepted.end)


def absences(evidence: GroupEvidence, context: RunContext) -> Checker:
    """Requests of members that faults had down."""
    mine = [one for one in context.absences if one.group == evidence.group]
    if not mine:
        return Checker(lambda _: None)
    absent = Absent(mine, evidence.held_up.lateness)

    def add(batch: Batch) -> Iterator[Named]:
        requests = zip(batch.seen, batch.requests.arrived_ms, strict=True)
        return rows("breaches", absent.add(requests))

    return Checker(add)


def clients(evidence: GroupEvidence, context: RunContext) -> Checker:
    """What clients say beside what brokers answered; what they owned, and owe to the protocol."""
    heard, owed = Clients(context), ClientRules(context, evidence.group)

    def add(batch: Batch) -> Iterator[Named]:
        errors, events, home = batch.requests.error_codes, batch.chunk.events, evidence.home
        requests = zip(batch.seen, errors, batch.requests.arrived_ms, strict=True)
        yield from rows("breaches", heard.add(requests, events, batch.known_ms, home))
        lost = batch.unanswered.observed
        owed.add(batch.seen, errors, events, lost)
        fetches = evidence.held_up.widened(batch.chunk.fetches.observed)
        yield from rows(
            "breaches", heard.offsets.compare_fetches(fetches, home, batch.known_ms, lost)
        )

    def end() -> Iterator[Named]:
        found = heard.end()
        if evidence.members.requests:
            yield from rows("breaches", found)
            yield from rows("client_findings", (*owed.rows(), *heard.about_clients))
            if evidence.group not in context.scripted:
                yield from rows("client_findings", heard.offsets.findings())
            yield from rows("breaches", heard.offsets.compare_fetches((), evidence.home))
            yield from counted("clients", heard.counts)
        yield from heard.owners.rows()

    return Checker(add, end)


def records(evidence: GroupEvidence, context: RunContext) -> Checker:
    """What the application saw: records lost, processed twice, out of order."""
    seen = Records(context, evidence.group)

    def add(batch: Batch) -> None:
        fetches = evidence.held_up.widened(batch.chunk.fetches.observed)
        answered = (
            *zip(batch.seen, batch.requests.error_codes, strict=True),
            *((one, None) for one in fetches),
        )
        seen.add(answered, batch.chunk.events, batch.known_ms)

    return Checker(add, lambda: seen.end() if evidence.members.requests else ())


def expulsions(_: GroupEvidence, __: RunContext) -> Checker:
    """Members that were evicted or fenced."""
    return Checker(lambda batch: rows("expulsions", members.expulsions(batch.chunk)))


def fenced(evidence: GroupEvidence, context: RunContext) -> Checker:
    """Answers that fence beside the lines about them."""
    if context.fenced is None or context.wire is not None:
        return Checker(lambda _: None)
    fencings = Fencings(context.fenced)
    return Checker(
        lambda batch: fencings.add(batch.seen, batch.chunk.fenced),
        lambda: rows("member_lines", fencings.rows(evidence.replaced, context.epochs.of_brokers)),
    )


def unlogged(evidence: GroupEvidence, context: RunContext) -> Checker:
    """Requests that no log has; those that a log may lack only where something is wrong."""
    kills = () if context.wire is not None else context.kills
    ids = CorrelationIds(evidence.group, context)

    def end() -> Iterator[Named]:
        yield from rows("unlogged", ids.rows())
        if evidence.is_wrong:
            loads = () if evidence.home is None else context.epochs.loads.get(evidence.home, ())
            longest_ms = evidence.members.max_rebalance_timeout_ms or 0.0
            for kill in kills:
                yield from rows("unlogged", gaps.in_flight(kill, evidence.lines, longest_ms))
            timers_ms = evidence.members.join_timer_ms
            lost = gaps.unreplicated(context.epochs.partings, loads, evidence.lines, timers_ms)
            yield from rows("unlogged", lost)

    return Checker(lambda batch: ids.add(batch.chunk.requests), end)


def witnesses(_: GroupEvidence, context: RunContext) -> Checker:
    """What brokers logged beside what the tap saw, where there are both."""
    if context.tap is None:
        return Checker(lambda _: None)
    pairs = Pairs(context.tap)

    def end() -> Iterator[Named]:
        yield from rows("breaches", pairs.end())
        yield from counted("witnesses", pairs.counts)

    return Checker(lambda batch: pairs.add(batch.chunk.requests, batch.chunk.tapped), end)


CHECKERS: tuple[Callable[[GroupEvidence, RunContext], Checker], ...] = (
    assignments, absences, clients, records, expulsions, fenced, unlogged, witnesses,
)  # fmt: skip
