"""Judges one group: all rows that the logs give of it in; what the oracle explains, as rows, out.

Groups do not depend on each other, so each is judged alone, by plain functions.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kafka_protocol.apis import GROUP_APIS, KIP_848_APIS
from kafka_protocol.coordinator_lines import Grammar
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROMISES
from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.replay import (
    Checked,
    Evidence,
    ObservedRequest,
    Outage,
    Replay,
    Stall,
    replay,
)
from reference_coordinator.replay.lateness import NEVER_LATE, Lateness
from reports.judgement import assignments, compare, member_lines, members, timeline
from reports.judgement.collector import collector_paused
from reports.judgement.coordinator_epochs import CoordinatorEpochs
from reports.judgement.digest import DIGESTS, Digester
from reports.judgement.machine_log import LOGGED_LATE_MS, Busy, is_busy
from reports.judgement.members import LoggedRow, Request
from reports.judgement.timeline import OBSERVED

Json = dict[str, Any]

EXPECTED = """
    group STRING, incarnation INT, old_generation INT, started_ms DOUBLE, earliest_ms DOUBLE,
    latest_ms DOUBLE, reason STRING, member_id STRING, joined_ms DOUBLE, generation INT,
    members INT, assigned_members INT, static_members INT, leader STRING, assigned_ms DOUBLE,
    ended_as STRING, duration_ms DOUBLE
"""
REPLAY = "group STRING, kind STRING, payload STRING"
"""The oracle's whole result: JSON of the kinds `row`, `checked`, `violation`, `said`, `bound`."""
VIOLATIONS = """
    group STRING, at_ms DOUBLE, until_ms DOUBLE, request STRING, rule STRING, expected STRING,
    observed STRING, searched BOOLEAN, broker STRING, file STRING, line LONG, api STRING,
    client_id STRING, arrived_ms DOUBLE
"""
"""Responses that the rules do not explain, each with its request."""
GROUPS = """
    group STRING, requests LONG, explained LONG, first_ms DOUBLE, last_ms DOUBLE,
    max_rebalance_timeout_ms DOUBLE,
    brokers STRING, partitions LONG, kip_848 BOOLEAN
"""
"""One row a group: the number of its readable requests and how many are explained; when the first
arrived and the last was answered; the longest rebalance timeout of a request; the brokers that
answered, comma-separated; how many partitions of `__consumer_offsets` its lines name."""
BOUND = "group STRING, name STRING, count LONG"
BROKEN = "group STRING, promise STRING"
"""The promises of KIP-345 that are broken, by the names of `PROMISES`."""
TABLES = {
    "replay": REPLAY,
    "observed": OBSERVED,
    "expected": EXPECTED,
    "comparison": compare.COMPARISON,
    "member_lines": member_lines.MEMBER_LINES,
    "groups": GROUPS,
    "violations": VIOLATIONS,
    "departures": VIOLATIONS,
    "bound": BOUND,
    "broken": BROKEN,
    "assigned": assignments.ASSIGNED,
    "joins": members.JOINS,
    "heard": members.HEARD,
    "expulsions": members.EXPULSIONS,
    "digests": DIGESTS,
}


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges groups by the rules of `profile`, and lists departures from the `promised` rules.

    `promised` are the release's rules with every promise of KIP-345 kept. `stalls` are the times in
    which brokers stood still, or may have, `outages` those in which writes may have failed because
    a broker was down. `first_alone` ends a replay at the first wrong response. With the release's
    own `rules` the broken promises are named.
    """

    grammar: Grammar
    profile: Profile
    promised: Profile
    epochs: CoordinatorEpochs
    stalls: tuple[Stall, ...] = ()
    outages: tuple[Outage, ...] = ()
    first_alone: bool = False
    rules: Profile | None = None
    busy: tuple[Busy, ...] = ()
    """When brokers may have written the lines of requests later than `parsing` takes for possible:
    only given where it is asked what lateness explains."""
    digester: Digester | None = None
    """Makes the digests of groups; without it there are none."""

    def evidence(self, group: str, rows: Iterable[LoggedRow]) -> Evidence:
        """Return everything that the oracle may see of a group."""
        return self._case(group, rows).evidence

    def explains(self, group: str, rows: Iterable[LoggedRow]) -> bool:
        """Tell whether the rules explain all of a group: responses, rebalances and lines."""
        return all(
            name == "comparison" and row["outcome"] == "match"
            for name, row in self.differences(group, rows)
        )

    def differences(self, group: str, rows: Iterable[LoggedRow]) -> Iterator[tuple[str, Json]]:
        """Yield the rows of `violations`, `comparison` and `member_lines` alone, as `tables`."""
        case = self._case(group, rows)
        found = case.compared(self.profile, self._observed(case), first_alone=self.first_alone)
        yield from self._differences(case, found)
        yield from (("violations", row) for row in case.violations(found.result))

    def _differences(self, case: "_Case", found: "_Compared") -> Iterator[tuple[str, Json]]:
        yield from (("comparison", row) for row in found.comparison)
        yield from (("member_lines", row) for row in found.lines)
        if case.partition is not None:
            loads = self.epochs.repeated_loads.get(case.partition, ())
            yield from (("member_lines", row) for row in loads)

    def tables(self, group: str, rows: Iterable[LoggedRow]) -> Iterator[tuple[str, Json]]:
        """Judge a group; yield the rows of `TABLES`, each with the name of its table."""
        found = self._tables(group, rows)
        return self.digester.digested(group, found) if self.digester else found

    def _tables(self, group: str, rows: Iterable[LoggedRow]) -> Iterator[tuple[str, Json]]:
        case = self._case(group, rows)
        observed = self._observed(case)
        found = case.compared(self.profile, observed, first_alone=self.first_alone)
        result = found.result
        yield from (("replay", row) for row in _replayed(result))
        yield from (("bound", {"name": n, "count": c}) for n, c in sorted(result.bound.items()))
        yield from (("observed", row) for row in observed)
        yield from (("expected", row) for row in found.expected)
        yield from self._differences(case, found)
        yield from case.about(result)
        if not case.has_statics:
            return
        if self.promised != self.profile:
            found = case.compared(self.promised, observed)
        yield from (("departures", row) for row in case.violations(found.result))
        if self.rules is not None and not found.explained:
            explained = lambda rules: case.compared(rules, observed, first_alone=True).explained
            names = broken_promises(explained, self.rules, self.promised)
            yield from (("broken", {"promise": name}) for name in names)

    def _observed(self, case: "_Case") -> list[Json]:
        incarnation = lambda *at: self.epochs.incarnation(case.partition, *at)
        return timeline.observed(case.evidence.group, case.lines, self.grammar, incarnation)

    def _case(self, group: str, logged: Iterable[LoggedRow]) -> "_Case":
        rows = list(logged)
        requests = sorted((r for r in rows if r["template"] is None), key=_by_id)
        lines = sorted((r for r in rows if r["template"] is not None), key=_by_line)
        named = {line["partition"] for line in lines if line["partition"] is not None}
        known = min(named, default=None)
        partition = self.epochs.partition_of(group) if known is None and requests else known
        readable = [Request(r) for r in requests if r["readable"] and r["api"] in GROUP_APIS]
        events = sorted(self.epochs.events_of(partition), key=lambda s: (s.at_ms, s.broker, s.kind))
        hints = timeline.hints(lines, self.grammar)
        evidence = Evidence(
            group,
            tuple(self._as_observed(readable)),
            tuple(sorted(hints, key=lambda h: (h.at_ms, h.kind, h.subject, h.broker))),
            tuple(events),
            self.stalls,
            self.outages,
        )
        return _Case(self.grammar, requests, lines, known, len(named), readable, evidence)

    def _as_observed(self, requests: Iterable[Request]) -> Iterator[ObservedRequest]:
        """Yield requests as the oracle sees them, their windows as wide as stalls make them."""
        if not (self.stalls or self.busy):
            yield from (one.observed for one in requests)
            return
        brokers = {stall.broker for stall in self.stalls}
        lateness = {
            broker: Lateness.of(stall for stall in self.stalls if stall.broker == broker)
            for broker in brokers
        }
        for one in requests:
            broker, at_ms = one.row["broker"], one.observed.answered_ms
            held_up = one.held_up(lateness.get(broker, NEVER_LATE))
            if is_busy(self.busy, broker, at_ms):
                earliest_ms = held_up.earliest_ms - LOGGED_LATE_MS
                taken_ms = held_up.started_ms
                held_up = replace(held_up, earliest_ms=earliest_ms, taken_ms=taken_ms)
            yield held_up


@dataclass(frozen=True, slots=True)
class _Compared:
    """A group's observed rebalances and lines, compared with those that some rules expect."""

    result: Replay
    expected: Sequence[Json]
    comparison: Sequence[Json]
    lines: Sequence[Json]

    @property
    def explained(self) -> bool:
        """Whether these rules explain every response, every rebalance and every line."""
        matches = all(row["outcome"] == "match" for row in self.comparison)
        return matches and not self.result.violations and not self.lines


@dataclass(frozen=True, slots=True)
class _Case:
    """The logged rows of a group; `partition` is the one its own lines name, if they name one."""

    grammar: Grammar
    requests: Sequence[LoggedRow]
    lines: Sequence[LoggedRow]
    partition: int | None
    partitions: int
    readable: Sequence[Request]
    evidence: Evidence

    @property
    def has_statics(self) -> bool:
        """Whether the group has a static member."""
        return any(one.request.get("groupInstanceId") is not None for one in self.readable)

    def compared(
        self, profile: Profile, observed: Sequence[Json], *, first_alone: bool = False
    ) -> _Compared:
        """Replay the group by some rules; compare its rebalances and lines with the result."""
        with collector_paused():
            result = replay(self.evidence, profile, first_alone=first_alone)
        group, instead = self.evidence.group, self.grammar.reasons_instead
        expected = [{"group": group} | _expected(row, instead) for row in result.rows]
        return _Compared(
            result,
            expected,
            list(compare.compare(observed, expected)),
            list(member_lines.compare(self.lines, result.expected_lines, self.grammar)),
        )

    def violations(self, result: Replay) -> Iterator[Json]:
        """Yield the rows of `VIOLATIONS`."""
        about = {one.row["id"]: one.row for one in self.readable} if result.violations else {}
        for found in result.violations:
            yield {**about[found.request], **_finite(asdict(found))}

    def about(self, result: Replay) -> Iterator[tuple[str, Json]]:
        """Yield the other rows about the group and its members."""
        yield "groups", self._summary(result)
        yield from (("violations", row) for row in self.violations(result))
        yield from (("assigned", row) for row in assignments.assigned(self.readable))
        yield from (("joins", row) for row in members.joins(self.readable))
        yield from (("heard", row) for row in members.heard(self.readable))
        yield from (("expulsions", row) for row in members.expulsions(self.requests, self.lines))

    def _summary(self, result: Replay) -> Json:
        waits = (one.request.get("rebalanceTimeoutMs") for one in self.readable)
        return {
            "requests": len(self.readable),
            "explained": sum(checked.explained for checked in result.checked),
            "first_ms": min((one.row["arrived_ms"] for one in self.readable), default=None),
            "last_ms": max((one.row["answered_ms"] for one in self.readable), default=None),
            "max_rebalance_timeout_ms": max(
                (float(wait) for wait in waits if wait is not None), default=None
            ),
            "brokers": ",".join(sorted({one.row["broker"] for one in self.readable})),
            "partitions": self.partitions,
            "kip_848": any(row["api"] in KIP_848_APIS for row in self.requests),
        }


def broken_promises(
    explained: Callable[[Profile], bool], rules: Profile, promised: Profile
) -> tuple[str, ...]:
    """Name the promises of KIP-345 that a group's coordinator broke: as few as explain the group.

    A promise is a rule of `releases.PROMISES`. It is broken if the group is explained only by the
    release's own rule instead; this is tried out, promise by promise. `rules` are the release's
    own, `promised` have all promises kept. The result is empty where nothing is wrong, and where
    the release's own rules do not explain the group either.
    """
    names = [name for name in PROMISES if getattr(rules, name) != getattr(promised, name)]

    def without(broken: list[str]) -> Profile:
        return replace(promised, **{name: getattr(rules, name) for name in broken})

    if not explained(without(names)):
        return ()
    for name in tuple(names):
        fewer = [other for other in names if other != name]
        if explained(without(fewer)):
            names = fewer
    return tuple(names)


def _by_id(row: LoggedRow) -> tuple[float, str]:
    at_ms = row["at_ms"]
    return (0.0 if at_ms is None else at_ms), row["id"]


def _by_line(line: LoggedRow) -> tuple[float, int]:
    return line["at_ms"], line["line"]


def _replayed(result: Replay) -> Iterator[Json]:
    for kind, items in (
        ("row", result.rows),
        ("checked", result.checked),
        ("violation", result.violations),
        ("said", result.expected_lines),
    ):
        for item in items:
            content = item._asdict() if isinstance(item, Checked) else asdict(item)
            yield {"kind": kind, "payload": json.dumps(_finite(content))}
    for name, count in result.bound.items():
        yield {"kind": "bound", "payload": json.dumps({"name": name, "count": count})}


def _expected(row: ExpectedRebalance, reasons_instead: Mapping[str, str]) -> Json:
    """Return a row of `EXPECTED`, without its group: None stands for what never happened."""
    found = _finite(asdict(row))
    found["reason"] = reasons_instead.get(row.reason, row.reason)
    for name in ("joined_ms", "generation", "members", "assigned_members", "static_members",
                 "assigned_ms"):  # fmt: skip
        found[name] = found[name] if found[name] >= 0 else None
    found["leader"] = row.leader or None
    found["duration_ms"] = row.ended_ms - row.started_ms if row.ended_ms >= 0 else None
    return found


def _finite(item: Json) -> Json:
    """Replace infinity, which JSON lacks: an end that never comes is 1e15 ms."""
    return {k: 1e15 if v == float("inf") else v for k, v in item.items()}
