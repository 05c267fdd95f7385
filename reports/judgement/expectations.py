"""What the experiment expects: numbers of rebalances, owners in the end, and the verdict.

A number that is not met is a fact, unless a disturbance could have changed it. The oracle explains
each rebalance that was observed, so each was due: for what the plan did to the group, or for what a
disturbance did. A member that a starved machine kept away longer than its session is removed, too.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any

from reports.judgement.breaches import Breach, breach
from reports.judgement.digest import Digest
from reports.judgement.disturbances import Disturbances
from reports.judgement.log.log_places import Level
from reports.judgement.rows import Json
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run.run_folder import RunFolder
from reports.timing import PARTITIONS_NOTICED_MS
from scenarios import Experiment
from scenarios.model import ExpectedVerdict, Range
from scenarios.setup import DUPLICATE

SHOWN = 5  # how many members a finding names
UNOWNED = "partitions without owner"  # what is counted where an experiment expects owners
REBALANCES, MOVED = "rebalances", "partitions moved"
HELD_UP = (Source.PRESSURE, Source.STANDSTILL, Source.ELECTION)
"""What may change how often a group rebalances."""
MISSING = (Source.LOG, Source.REQUESTS, Source.CLOCK)
"""Where it may not be known how often it did."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An expectation that was not met; `too_many` if the observed number is above its maximum."""

    group: str
    phase: str
    what: str
    expected: str
    observed: int
    too_many: bool
    most: float = inf  # the most that was expected
    reason: str | None = None
    """The reason of the rebalances that are counted, if not all are."""
    proven: bool = True
    """Whether it is not met for certain: the reasons of some rebalances may be unknown."""

    @property
    def as_json(self) -> Json:
        """Its entry in `verdict.json`."""
        names = ("group", "phase", "what", "expected", "observed")
        return {name: getattr(self, name) for name in names}


def unmet(
    experiment: Experiment,
    digests: Mapping[str, Digest],
    unowned: Mapping[str, Sequence[str]],
    level: Level = Level.REQUESTS,
    *,
    by_hand: int = 0,
) -> list[Shortfall]:
    """Return the unmet expectations of an experiment's `expect`.

    After faults `by_hand`, what is expected of rebalances and moves does not hold any more.
    `unowned` are the partitions without owner, by group. At level `wire` a rebalance whose reason
    is not known may have any.
    """
    found: list[Shortfall] = []
    for wanted in () if by_hand else experiment.bounds:
        mine = Counter[str]()
        for (phase, reason), count in digests.get(wanted.group, Digest()).begun.items():
            mine[reason] += count if wanted.phase in (None, phase) else 0
        observed = mine[wanted.reason] if wanted.reason else mine.total()
        unknown = mine[""] if wanted.reason and level is Level.WIRE else 0
        about = (wanted.group, wanted.phase or "total", REBALANCES)
        missed = _missed(*about, observed, wanted.rebalances, wanted.reason)
        if unknown:
            most = _missed(*about, observed + unknown, wanted.rebalances, wanted.reason)
            proven = bool(missed and most) and missed[0].too_many == most[0].too_many
            missed = [replace(one, proven=proven) for one in (missed or most)]
        found += missed
    for moves in () if by_hand else experiment.moves:
        seen = digests.get(moves.group, Digest()).moved
        moved = sum(n for at, n in (seen or {}).items() if moves.phase in (None, at))
        about = (moves.group, moves.phase or "total", MOVED)
        if seen is None:  # no client tells
            found.append(Shortfall(*about, "known", 0, too_many=False, proven=False))
        else:
            found += _missed(*about, moved, moves.moved)
    for owners in experiment.owners:
        observed = len(unowned[owners.group])
        found += _missed(owners.group, "the end", UNOWNED, observed, owners.unowned)
    return found


def _missed(
    group: str, phase: str, what: str, observed: int, wanted: Range, reason: str | None = None
) -> list[Shortfall]:
    """Return an expectation if it was not met, else nothing."""
    low, high = wanted.min, wanted.max
    most = inf if high is None else high
    if low <= observed <= most:
        return []
    span = f"{low}" if low == high else f"{low}..{'' if high is None else high}"
    span += f" with reason {reason}" if reason else ""
    return [Shortfall(group, phase, what, span, observed, observed > most, most, reason)]


def had_time(item: Shortfall, ran_ms: float | None, experiment: Experiment) -> bool:
    """Tell whether an expectation was not met though its clients had the time for it.

    They ran for `ran_ms` while nothing changed, and did not notice new partitions (see `pace`).
    """
    if ran_ms is None or item.what != UNOWNED or not item.too_many:
        return False
    groups = (group for group in experiment.workload.groups if group.name == item.group)
    needs_ms = (5 * group.metadata_max_age_ms for group in groups)
    return ran_ms >= max((PARTITIONS_NOTICED_MS, *needs_ms))


@dataclass(frozen=True)
class Counted:
    """What a run tells of its counts; `observed` are rows of that table, of some groups."""

    run: RunFolder
    disturbances: Disturbances
    observed: Sequence[Json]

    def changed_by(self, item: Shortfall) -> Disturbance | None:
        """Return a disturbance that could have changed a count that is not met; None if none."""
        from_ms, until_ms = self._span(item)
        unseen = self.disturbances.within(item.group, from_ms, until_ms, MISSING)
        if (first := next(unseen, None)) is not None:
            return first
        if item.what == UNOWNED:
            row = self.disturbances.groups[item.group]
            if had_time(item, row["ran_ms"], self.run.experiment):
                return None
        elif rows := self._all_rows(item):
            by = [one for row in rows if (one := self._disturbed(item.group, row)) is not None]
            return by[0] if by and item.observed - len(by) <= item.most else None
        return next(self._held_up(item.group, from_ms, until_ms), None)

    def counted_ms(self, item: Shortfall) -> float:
        """Return when all that is counted was over, in ms."""
        last_ms = max((entry["at_ms"] for entry in self.run.journal), default=0.0)
        return min(last_ms, self._span(item)[1])

    def why(self, item: Shortfall) -> str:
        """Say why each of too many rebalances was due, as far as that is known; else ""."""
        causes = Counter(self._cause(item.group, row) for row in self._all_rows(item))
        words = "; ".join(
            cause if len(causes) == 1 else f"{count} x {cause}"
            for cause, count in sorted(causes.items(), key=lambda one: (-one[1], one[0]))
        )
        return f"{in_words(causes.total(), 'rebalance')}, each due: {words}" if words else ""

    def _span(self, item: Shortfall) -> tuple[float, float]:
        """Return from when until when a count was made."""
        phases = dict(self.run.phases)
        teardown_ms = phases.get("teardown", inf)
        if item.what == UNOWNED:
            grown_ms = self.run.grown_ms[0]
            return phases.get("impact", -inf) if grown_ms == inf else grown_ms, teardown_ms
        began = [*self.run.phases, ("", inf)]
        spans = {phase: (from_ms, until_ms) for (phase, from_ms), (_, until_ms) in pairwise(began)}
        return spans.get(item.phase, (began[0][1], teardown_ms))

    def _all_rows(self, item: Shortfall) -> list[Json]:
        """Return the rebalances of which there are too many; none if not all are known."""
        rows = [
            row
            for row in self.observed
            if row["group"] == item.group
            and row["started_ms"] is not None
            and item.phase in ("total", self.run.phase_at(row["started_ms"]))
            and item.reason in (None, row["reason"])
        ]
        known = item.what == REBALANCES and item.too_many and len(rows) == item.observed
        return rows if known else []

    def _disturbed(self, group: str, row: Json) -> Disturbance | None:
        """Return what may be why a rebalance was due, if no fault on the group's members is."""
        if self._absent(group, row) is not None or self._is_meant(group, row):
            return None
        started_ms = row["started_ms"]
        return next(self._held_up(group, started_ms - self._session_ms(group), started_ms), None)

    def _held_up(self, group: str, from_ms: float, until_ms: float) -> Iterator[Disturbance]:
        serving = self.disturbances.groups[group]["brokers"]
        for one in self.disturbances.within(group, from_ms, until_ms, HELD_UP):
            if one.broker in ("", *serving):
                yield one

    def _absent(self, group: str, row: Json) -> float | None:
        """Return how long the plan had a client away for which a rebalance was due, in ms.

        A static member that is back within its session costs none.
        """
        session_ms = self._session_ms(group)
        members = self.run.experiment.members_by_group.get(group, ())
        statics = {one.name for one in members if one.kind == "static"}
        for one in self.run.absences:
            away_ms = one.until_ms - one.from_ms
            due = away_ms >= session_ms or one.client not in statics
            until_ms = one.until_ms + session_ms
            if one.group == group and due and one.from_ms <= row["started_ms"] <= until_ms:
                return away_ms
        return None

    def _is_meant(self, group: str, row: Json) -> bool:
        """Whether another fault on the group was under way, or within a session of its end."""
        down = {one.client for one in self.run.absences if one.group == group}
        return any(
            fault["group"] == group
            and fault["target"] not in down
            and fault["meant_at_ms"]
            <= row["started_ms"]
            <= (fault["healed_at_ms"] or inf) + self._session_ms(group)
            for fault in self.run.faults
        )

    def _cause(self, group: str, row: Json) -> str:
        away_ms, session_ms = self._absent(group, row), self._session_ms(group)
        if away_ms is None:
            return str(row["reason"] or "without a reason")
        if away_ms < session_ms:
            return f"a dynamic member was away ({row['reason']})"
        away_s, session_s = away_ms / 1_000, session_ms / 1_000
        return f"a member was away {away_s:.0f} s with a session of {session_s:g} s"

    def _session_ms(self, group: str) -> float:
        return self.disturbances.groups[group].get("max_session_timeout_ms") or 0.0


def in_words(count: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def expected_verdict(
    expected: ExpectedVerdict | None,
    verdict: str,
    broken: Mapping[str, Sequence[str]],
    proven: Collection[str],
    unmet: Sequence[Shortfall],
    unanswered: Collection[str] = (),
    *,
    clients_broken: bool = False,
) -> Json | None:
    """Return the verdict that the experiment expects and whether it is met; None without one.

    `broken` are the broken promises by group, `proven` the groups with a proven finding, `unmet`
    the unmet expectations that prove something. An expected fail is met only if the promise it
    names is the only one broken in the group it names, and nothing else is wrong in any group. For
    the reason `unowned`, all that is wrong must be partitions without owner, in that group, or in
    any group if none is named. For `unanswered`, all that is wrong must be requests that were never
    answered: `unanswered` are the groups where nothing else is proven. A client's fail
    (`clients_broken`) is never the one that is expected.
    """
    if expected is None:
        return None
    because, group = expected.because, expected.group
    short = {item.group for item in unmet}
    wrong = {*proven, *short}
    met = verdict == expected.verdict and not clients_broken
    if expected.verdict == "fail" and because == "unowned":
        ownerless = {item.group for item in unmet if item.what == UNOWNED and item.too_many}
        where = ownerless if group is None else {group}
        met = met and not proven and short == ownerless == where
    elif expected.verdict == "fail" and because == "unanswered":
        met = met and {*unanswered} == wrong == {group}
    elif expected.verdict == "fail":
        met = met and broken.get(group or "", ()) == [because] and wrong == {group}
    return {
        "verdict": expected.verdict,
        "because": because,
        "group": group,
        "met": met,
        "came_true": met,
    }


def described(expected: Mapping[str, Any]) -> str:
    """Write an expected verdict (`expected_verdict` in `verdict.json`) in words."""
    because = f" because of {expected['because']}" if expected["because"] else ""
    where = f" in {expected['group']}" if expected["group"] else ""
    return f"{expected['verdict']}{because}{where}"


def missing_members(run: RunFolder, digests: Mapping[str, Digest]) -> Iterator[Json]:
    """Yield rows of `BREACHES` about members that ended by themselves, or never came.

    None is proven: their groups prove nothing without them.
    """
    for entry in (one for one in run.journal if one["event"] == "ended"):
        member, at_ms = entry["member"], max(0.0, min(entry["at_ms"], entry["seen_at_ms"]))
        if not _is_fenced(run, member, at_ms):
            texts = f"{member} runs on", f"{member}: {entry['error']}"
            place = f"history.jsonl: ended of {member} at {at_ms:.1f}"
            row = breach(Breach.ENDED, at_ms, *texts, history=place, proven=False)
            yield {"group": entry["group"], **row}
    for group, members in run.experiment.members_by_group.items():
        given = [member.name for member in members]
        joiners = digests.get(group, Digest()).joiners
        came = {*(given if joiners is None else joiners)}
        absent = [name for name in given if name not in came]
        if absent and run.steady:  # before that, some may not have come yet
            others = sorted(came.difference(given, (name + DUPLICATE for name in given)))[:SHOWN]
            names = ", ".join(absent[:SHOWN])
            due = f"there is a JoinGroup with the client.id that was given: {names}"
            foreign = ", ".join(others) or "none"
            observed = f"no JoinGroup has it; others, which nobody was given: {foreign}"
            at_ms = next((at_ms for _, at_ms in run.phases), 0.0)
            row = breach(Breach.ABSENT, at_ms, due, observed, proven=False)
            yield {"group": group, **row}


def _is_fenced(run: RunFolder, member: str, at_ms: float) -> bool:
    """Whether a fault lets another process have the instance id of a member, or it is that one."""
    return any(
        fault["meant_at_ms"] <= at_ms <= (fault["healed_at_ms"] or inf)
        for fault in run.faults
        if "duplicate" in fault["args"] and fault["target"] == member.removesuffix(DUPLICATE)
    )
