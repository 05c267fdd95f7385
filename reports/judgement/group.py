"""One group: all that the logs tell of it in; what the oracle explains, and its tables, out.

Groups do not depend on each other, so each is judged for itself, by plain functions.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kafka_protocol.apis import GROUP_APIS, KIP_848_APIS
from kafka_protocol.coordinator_lines import Grammar
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay import (
    Checked,
    Evidence,
    ObservedRequest,
    Outage,
    Replay,
    Row,
    Stall,
    replay,
)
from reference_coordinator.replay.lateness import Lateness
from reports.judgement import assignments, compare, member_lines, members, timeline
from reports.judgement.collector import collector_paused
from reports.judgement.coordinator_epochs import Offices
from reports.judgement.members import Request, Told
from reports.judgement.promises import broken
from reports.judgement.timeline import OBSERVED

Json = dict[str, Any]

EXPECTED = """
    group STRING, incarnation INT, old_generation INT, started_ms DOUBLE, earliest_ms DOUBLE,
    latest_ms DOUBLE, reason STRING, member_id STRING, joined_ms DOUBLE, generation INT,
    members INT, assigned_members INT, static_members INT, leader STRING, assigned_ms DOUBLE,
    ended_as STRING, duration_ms DOUBLE
"""
REPLAY = "group STRING, kind STRING, payload STRING"
"""What the oracle says, as it says it: JSON of the kind `row`, `checked`, `violation`, …"""
VIOLATIONS = """
    group STRING, at_ms DOUBLE, until_ms DOUBLE, request STRING, rule STRING, expected STRING,
    observed STRING, searched BOOLEAN, broker STRING, file STRING, line LONG, api STRING,
    client_id STRING, arrived_ms DOUBLE
"""
"""Each with the request that it is about."""
GROUPS = """
    group STRING, requests LONG, explained LONG, first_ms DOUBLE, last_ms DOUBLE, wait_ms DOUBLE,
    brokers STRING, partitions LONG, kip_848 BOOLEAN
"""
"""One row a group: its readable requests, from the first one's arrival to the last one's answer;
the longest that one may have waited; the brokers that answered, with commas."""
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
}


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges groups by the rules of `profile`, and tells where KIP-345 has `promised` others.

    `stalls` are the times in which brokers stood still, or may have, `outages` those in which
    writes may have failed because one was down. `first_alone` replays to the first wrong answer.
    With the release's own `rules` it is told by name which promises are broken.
    """

    grammar: Grammar
    profile: Profile
    promised: Profile
    offices: Offices
    stalls: tuple[Stall, ...] = ()
    outages: tuple[Outage, ...] = ()
    first_alone: bool = False
    rules: Profile | None = None

    def evidence(self, group: str, told: Iterable[Told]) -> Evidence:
        """Put everything that the oracle may see of a group into its form."""
        return self._case(group, told).evidence

    def explains(self, group: str, told: Iterable[Told]) -> bool:
        """Tell whether the rules explain all of a group: answers, rebalances and lines."""
        case = self._case(group, told)
        if case.known is not None and self.offices.repeated.get(case.known):
            return False
        return case.compared(self.profile, self._observed(case)).explained

    def tables(self, group: str, told: Iterable[Told]) -> Iterator[tuple[str, Json]]:
        """Judge a group; yield the rows of `TABLES`."""
        case = self._case(group, told)
        observed = self._observed(case)
        found = case.compared(self.profile, observed, first_alone=self.first_alone)
        result = found.result
        yield from (("replay", row) for row in _replayed(result))
        yield from (("bound", {"name": n, "count": c}) for n, c in sorted(result.bound.items()))
        yield from (("observed", row) for row in observed)
        yield from (("expected", row) for row in found.expected)
        yield from (("comparison", row) for row in found.comparison)
        lines = [*found.lines]
        if case.known is not None:
            lines += self.offices.repeated.get(case.known, ())
        yield from (("member_lines", row) for row in lines)
        yield from case.about(result)
        if not case.has_statics:
            return
        if self.promised != self.profile:
            found = case.compared(self.promised, observed)
        yield from (("departures", row) for row in case.violations(found.result))
        if self.rules is not None and not found.explained:
            explained = lambda rules: case.compared(rules, observed, first_alone=True).explained
            names = broken(explained, self.rules, self.promised)
            yield from (("broken", {"promise": name}) for name in names)

    def _observed(self, case: "_Case") -> list[Json]:
        incarnation = lambda *at: self.offices.incarnation(case.known, *at)
        return timeline.observed(case.evidence.group, case.lines, self.grammar, incarnation)

    def _case(self, group: str, told: Iterable[Told]) -> "_Case":
        rows = list(told)
        requests = sorted((r for r in rows if r["template"] is None), key=_by_id)
        lines = sorted((r for r in rows if r["template"] is not None), key=_by_line)
        named = {line["partition"] for line in lines if line["partition"] is not None}
        known = min(named, default=None)
        partition = self.offices.place(group) if known is None and requests else known
        asked = [Request(r) for r in requests if r["readable"] and r["api"] in GROUP_APIS]
        servings = sorted(
            self.offices.serving(partition), key=lambda s: (s.at_ms, s.broker, s.kind)
        )
        hints = timeline.hints(lines, self.grammar)
        evidence = Evidence(
            group,
            tuple(self._as_observed(asked)),
            tuple(sorted(hints, key=lambda h: (h.at_ms, h.kind, h.subject, h.broker))),
            tuple(servings),
            self.stalls,
            self.outages,
        )
        return _Case(self.grammar, requests, lines, known, len(named), asked, evidence)

    def _as_observed(self, asked: Iterable[Request]) -> Iterator[ObservedRequest]:
        """Yield requests as the oracle sees them, their windows as wide as stalls make them."""
        if not self.stalls:
            yield from (one.observed for one in asked)
            return
        brokers = {stall.broker for stall in self.stalls}
        lateness = {
            broker: Lateness.of(stall for stall in self.stalls if stall.broker == broker)
            for broker in brokers
        }
        for one in asked:
            held_up = lateness.get(one.told["broker"])
            yield one.observed if held_up is None else one.held_up(held_up)


@dataclass(frozen=True, slots=True)
class _Compared:
    """What a group does by some rules, beside what it did."""

    result: Replay
    expected: Sequence[Json]
    comparison: Sequence[Json]
    lines: Sequence[Json]

    @property
    def explained(self) -> bool:
        """Whether these rules explain every answer, every rebalance and every line."""
        matches = all(row["outcome"] == "match" for row in self.comparison)
        return matches and not self.result.violations and not self.lines


@dataclass(frozen=True, slots=True)
class _Case:
    """What the logs tell of a group; `known` is its partition, if a line of its own tells it."""

    grammar: Grammar
    requests: Sequence[Told]
    lines: Sequence[Told]
    known: int | None
    partitions: int
    asked: Sequence[Request]
    evidence: Evidence

    @property
    def has_statics(self) -> bool:
        """Whether any member is a static one."""
        return any(one.request.get("groupInstanceId") is not None for one in self.asked)

    def compared(
        self, profile: Profile, observed: Sequence[Json], *, first_alone: bool = False
    ) -> _Compared:
        """Replay the group by some rules, and compare its rebalances and lines with them."""
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
        """Yield the answers that are not explained, each with its request."""
        about = {one.told["id"]: one.told for one in self.asked} if result.violations else {}
        for found in result.violations:
            yield {**about[found.request], **_finite(asdict(found))}

    def about(self, result: Replay) -> Iterator[tuple[str, Json]]:
        """Yield what else is told of the group and its members."""
        yield "groups", self._summary(result)
        yield from (("violations", row) for row in self.violations(result))
        yield from (("assigned", row) for row in assignments.assigned(self.asked))
        yield from (("joins", row) for row in members.joins(self.asked))
        yield from (("heard", row) for row in members.heard(self.asked))
        yield from (("expulsions", row) for row in members.expulsions(self.requests, self.lines))

    def _summary(self, result: Replay) -> Json:
        waits = (one.request.get("rebalanceTimeoutMs") for one in self.asked)
        return {
            "requests": len(self.asked),
            "explained": sum(checked.explained for checked in result.checked),
            "first_ms": min((one.told["arrived_ms"] for one in self.asked), default=None),
            "last_ms": max((one.told["answered_ms"] for one in self.asked), default=None),
            "wait_ms": max((float(wait) for wait in waits if wait is not None), default=None),
            "brokers": ",".join(sorted({one.told["broker"] for one in self.asked})),
            "partitions": self.partitions,
            "kip_848": any(told["api"] in KIP_848_APIS for told in self.requests),
        }


def _by_id(told: Told) -> tuple[float, str]:
    at_ms = told["at_ms"]
    return (0.0 if at_ms is None else at_ms), told["id"]


def _by_line(line: Told) -> tuple[float, int]:
    return line["at_ms"], line["line"]


def _replayed(result: Replay) -> Iterator[Json]:
    for kind, items in (
        ("row", result.rows),
        ("checked", result.checked),
        ("violation", result.violations),
        ("said", result.expected_lines),
    ):
        for item in items:
            told = item._asdict() if isinstance(item, Checked) else asdict(item)
            yield {"kind": kind, "payload": json.dumps(_finite(told))}
    for name, count in result.bound.items():
        yield {"kind": "bound", "payload": json.dumps({"name": name, "count": count})}


def _expected(row: Row, reasons_instead: Mapping[str, str]) -> Json:
    """Give an expected row the observed timeline's form: None where a thing never came."""
    told = _finite(asdict(row))
    told["reason"] = reasons_instead.get(row.reason, row.reason)
    for name in ("joined_ms", "generation", "members", "assigned_members", "static_members",
                 "assigned_ms"):  # fmt: skip
        told[name] = told[name] if told[name] >= 0 else None
    told["leader"] = row.leader or None
    told["duration_ms"] = row.ended_ms - row.started_ms if row.ended_ms >= 0 else None
    return told


def _finite(item: Json) -> Json:
    """Write "until the end" as a time that JSON has a word for."""
    return {k: 1e15 if v == float("inf") else v for k, v in item.items()}
