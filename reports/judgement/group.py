"""Judges one group: all rows that the logs give of it in; what the oracle explains, as rows, out.

Groups do not depend on each other, so each is judged alone, by plain functions.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from functools import cache, partial
from itertools import chain
from typing import Any, cast

from reference_coordinator.classic.noted_rules import NotedRules
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROMISES
from reference_coordinator.replay import Evidence, GroupReplay
from reports.judgement import breaches, causes, checkers, members, witnesses
from reports.judgement.clients import assignments, comparison, ownership, records
from reports.judgement.clients.client_rules.findings import CLIENT_FINDINGS
from reports.judgement.coordinators import elections
from reports.judgement.coordinators.wire_epochs import epochs_of
from reports.judgement.digest import DIGESTS
from reports.judgement.group_evidence import GroupCheck, GroupEvidence, Named, Tables, is_explained
from reports.judgement.logged import Chunk, KeptChunks, LoggedRow
from reports.judgement.missing.gaps import UNLOGGED
from reports.judgement.rows import Json
from reports.judgement.run.history import ClientEvent
from reports.judgement.run_context import RunContext
from reports.judgement.timelines import compare, member_lines
from reports.judgement.timelines.timeline import OBSERVED

DIFFERENCES = ("comparison", "member_lines", "violations")
"""The tables whose rows show that something is wrong, but for matches."""
DUE = {"comparison": "expected_started_ms", "member_lines": "due_ms"}
"""When a line was due, by table. Where it is missing, the group's last line before is its place."""

EXPECTED = """
    group STRING, incarnation INT, old_generation INT, started_ms DOUBLE, earliest_ms DOUBLE,
    latest_ms DOUBLE, reason STRING, member_id STRING, joined_ms DOUBLE, generation INT,
    members INT, assigned_members INT, static_members INT, leader STRING, assigned_ms DOUBLE,
    ended_as STRING, duration_ms DOUBLE
"""
DEPARTURES = """
    group STRING, at_ms DOUBLE, until_ms DOUBLE, request STRING, rule STRING, expected STRING,
    observed STRING, searched BOOLEAN, broker STRING, file STRING, line LONG, api STRING,
    client_id STRING, arrived_ms DOUBLE
"""  # responses that the rules do not explain, each with its request
DESPITE_LATENESS = ", despite_lateness BOOLEAN"
"""Of a difference: whether it is one also if anything may be late, as it may be without a CPU."""
GROUPS = """
    group STRING, requests LONG, explained LONG, first_ms DOUBLE, last_ms DOUBLE,
    max_rebalance_timeout_ms DOUBLE, max_session_timeout_ms DOUBLE,
    brokers STRING, partitions LONG, kip_848 BOOLEAN, ran_ms DOUBLE,
    record_bytes LONG
"""
"""One row a group: the number of its readable requests and how many are explained; when the first
arrived and the last was answered; the longest rebalance and session timeouts; the brokers that
answered, comma-separated; how many partitions of `__consumer_offsets` its lines name; for how long
all its clients ran while nothing changed after topics grew (see `pace`); how large its record was
with the most members, in bytes (`kafka_protocol.group_record`)."""
BOUND = "group STRING, name STRING, count LONG"
BROKEN = "group STRING, promise STRING"
"""The promises of KIP-345 that are broken, by the names of `PROMISES`."""
TABLES = {
    "observed": OBSERVED,
    "expected": EXPECTED,
    "comparison": compare.COMPARISON + DESPITE_LATENESS,
    "member_lines": member_lines.MEMBER_LINES + DESPITE_LATENESS,
    "groups": GROUPS,
    "violations": DEPARTURES + DESPITE_LATENESS,
    "departures": DEPARTURES,
    "bound": BOUND,
    "broken": BROKEN,
    "assigned": assignments.ASSIGNED,
    "joins": members.JOINS,
    "heard": members.HEARD,
    "expulsions": members.EXPULSIONS,
    "breaches": breaches.BREACHES,
    "clients": comparison.CLIENTS,
    "unlogged": UNLOGGED,
    "client_findings": CLIENT_FINDINGS,
    **ownership.TABLES,
    "records": records.RECORDS,
    "witnesses": witnesses.WITNESSES,
    "causes": causes.CAUSES,
    "digests": DIGESTS,
}
OF_TIME = ("match", "early", "late", "early_line", "late_line")
"""The outcomes of rows that tell of a time, or of no difference."""
Difference = tuple[str, frozenset[tuple[str, Any]]]
"""A row of one of the tables DIFFERENCES, but for its times."""
Tries = Mapping[frozenset[str], frozenset[str] | None]
"""By the promises that a try took for broken: the rules that it read, None if it failed."""


def evidence_of(context: RunContext, group: str, rows: Iterable[LoggedRow]) -> Evidence:
    """Return everything that the oracle may see of a group."""
    chunk = Chunk.of(rows)
    wire = None if context.wire is None else epochs_of([chunk], context.wire)
    evidence = GroupEvidence(context, group, wire)
    batch = evidence.add(chunk)
    return replace(evidence.beforehand, requests=tuple(batch.replayed), hints=tuple(batch.hints))


def check_rows(
    context: RunContext, group: str, rows: Iterable[LoggedRow], events: Sequence[ClientEvent] = ()
) -> Iterator[Named]:
    """Judge a group; yield the rows of `TABLES`, each with the name of its table.

    `events` are those of its clients.
    """
    return check_group(context, group, [replace(Chunk.of(rows), events=events)])


def check_group(context: RunContext, group: str, chunks: Iterable[Chunk]) -> Iterator[Named]:
    """Judge a group whose rows come in order of time, chunk by chunk; as `check_rows`.

    No more is in memory than a chunk, what is under way, and what its rows are made of.
    """
    with closing(KeptChunks()) as kept:
        chunks, wire = kept.passing(chunks), None
        if context.wire is not None:  # all of them tell the epochs, before they are judged
            chunks, wire = kept, epochs_of(chunks, context.wire)
        evidence = GroupEvidence(context, group, wire, kept)
        found, digester = _checked(evidence, chunks), context.digester
        yield from digester.digested(group, found, evidence.members.joiners) if digester else found


def _checked(evidence: GroupEvidence, chunks: Iterable[Chunk]) -> Iterator[Named]:
    context = evidence.context
    noted = NotedRules(context.profile, differing(context.profile, context.promised))
    judgement = GroupCheck(evidence, cast(Profile, noted), context.first_alone)
    beside = [checker(evidence, context) for checker in checkers.CHECKERS]
    why, about_clients = causes.Causes(evidence), list[Json]()
    for chunk in chunks:
        batch = evidence.add(chunk)
        yield from checkers.rows("joins", evidence.members.add(batch.requests))
        for checker in beside:
            yield from checker.add(batch) or ()
        judgement.add(batch)
        why.add(batch)
    found = judgement.compared()
    despite_lateness = _despite_lateness(evidence, found)
    ends = chain.from_iterable(checker.end() for checker in beside)
    for name, row in chain(_rows_of(found), _unexpected_loads(evidence), ends):
        if name in DIFFERENCES:
            row["despite_lateness"] = _but_for_times(name, row) in despite_lateness
        if name in DUE and row["line"] is None:
            row.update(evidence.last_line(row[DUE[name]]))
        evidence.is_wrong |= name in DIFFERENCES and row.get("outcome") != "match"
        if name == "client_findings":
            about_clients.append(row)
        yield name, row
    yield from why.rows(found["comparison"], about_clients)
    yield from evidence.final_rows(judgement.explained, judgement.record_bytes)
    if evidence.members.has_statics:
        yield from _promises(evidence, found, noted, judgement.replay)


def _despite_lateness(evidence: GroupEvidence, found: Tables) -> set[Difference]:
    """Return the differences that lateness for want of a CPU does not explain either.

    The group is replayed again, with as much more tolerance. A difference that tells of a time
    alone is left out. So is everything of a group with an answer that proves nothing on a late
    machine: there are too many orders to try, or it came even later, or a write failed, which also
    depends on how long replicas take.
    """
    context = evidence.context
    if not context.late_ms or evidence.wire is not None or is_explained(found):
        return set()
    tables = _compared(
        evidence, context.profile, first_alone=context.first_alone, late_ms=context.late_ms
    )
    failed_writes = {error.name for error in context.profile.failed_writes}
    for row in tables["violations"]:
        is_proof = row["searched"] and row["rule"] != "answered_late"
        if not is_proof or not failed_writes.isdisjoint(re.findall(r"\w+", row["observed"])):
            return set()
    return {
        _but_for_times(name, row)
        for name in DIFFERENCES
        for row in tables[name]
        if row.get("outcome") not in OF_TIME
    }


def _but_for_times(table: str, row: Json) -> Difference:
    return table, frozenset((name, row[name]) for name in row if not name.endswith("_ms"))


def _rows_of(tables: Tables) -> Iterator[Named]:
    return ((name, row) for name, rows in tables.items() for row in rows)


def _unexpected_loads(evidence: GroupEvidence) -> Iterator[Named]:
    if evidence.partition is not None:
        epochs, stalls = evidence.context.epochs, evidence.context.stalls
        loads = elections.unexpected_loads(epochs, evidence.partition, stalls)
        yield from checkers.rows("member_lines", loads)


def _promises(
    evidence: GroupEvidence, found: Tables, noted: NotedRules, first: GroupReplay
) -> Iterator[Named]:
    """Yield the departures from KIP-345, and the promises that are broken.

    `found` was judged by the profile as it was `noted`, in the replay `first`.
    """
    context, kept = evidence.context, found
    if noted.reads:
        kept = _compared(evidence, context.promised, first_alone=context.first_alone, first=first)
    yield from checkers.rows("departures", kept["violations"])
    if context.rules is not None and not is_explained(kept):
        known: dict[frozenset[str], frozenset[str] | None] = {frozenset(): None}
        if not differing(context.rules, context.profile) and not context.late_ms:
            own = noted.read if is_explained(found) else None
            known[differing(context.rules, context.promised)] = own
        tried = partial(_compared, evidence, first_alone=True, late_ms=context.late_ms)
        explained = lambda rules: is_explained(tried(rules))
        names = broken_promises(explained, context.rules, context.promised, known)
        yield from checkers.rows("broken", ({"promise": name} for name in names))


def _compared(
    evidence: GroupEvidence,
    profile: Profile,
    *,
    first_alone: bool,
    first: GroupReplay | None = None,
    late_ms: float = 0.0,
) -> Tables:
    """Check all evidence by some rules; `first` is its replay by others, see `GroupReplay`."""
    judgement = GroupCheck(evidence, profile, first_alone, first, late_ms)
    for batch in evidence.batches:
        judgement.add(batch)
        if first_alone and judgement.is_wrong:
            break
    return judgement.compared()


@cache
def differing(one: Profile, other: Profile) -> frozenset[str]:
    """Name the rules in which two profiles differ."""
    names = (field.name for field in fields(Profile) if field.name != "name")
    return frozenset(name for name in names if getattr(one, name) != getattr(other, name))


def broken_promises(
    explained: Callable[[Profile], bool], rules: Profile, promised: Profile, known: Tries
) -> tuple[str, ...]:
    """Name the promises of KIP-345 that a group's coordinator broke: as few as explain the group.

    A promise is a rule of `releases.PROMISES`. It is broken if the group is explained only by the
    release's own rule instead; this is tried out, promise by promise. A rule that the last
    successful try did not read needs no try: without it, that try would be the same. `rules` are
    the release's own, `promised` have all promises kept, and `known` are tries that were made
    before. The result is empty where nothing is wrong, and where the release's own rules do not
    explain the group either.
    """

    def tried(broken: list[str]) -> frozenset[str] | None:
        if frozenset(broken) in known:
            return known[frozenset(broken)]
        noted = NotedRules(replace(promised, **{name: getattr(rules, name) for name in broken}))
        return noted.read if explained(cast(Profile, noted)) else None

    off = differing(rules, promised)
    names = [name for name in PROMISES if name in off]
    if (read := tried(names)) is None:
        return ()
    names = [name for name in names if name in read]
    for name in tuple(names):
        fewer = [other for other in names if other != name]
        found = tried(fewer) if name in read else read
        if found is not None:
            names, read = fewer, found
    return tuple(names)
