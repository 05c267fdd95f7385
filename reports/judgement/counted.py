"""A count that is not met: a fact, unless a disturbance could have changed it.

The oracle explains each rebalance that was observed, so each was due. It was due for what the plan
did to the group, or for what a disturbance did: a member that a starved machine kept away longer
than its session is removed, too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

from reports.judgement.disturbances import Disturbances
from reports.judgement.expectations import UNOWNED, Shortfall, had_time
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run.run_folder import RunFolder
from scenarios.members import members_of

Json = dict[str, Any]

HELD_UP = (Source.PRESSURE, Source.STANDSTILL, Source.ELECTION)
"""What may change how often a group rebalances."""
MISSING = (Source.LOG, Source.REQUESTS, Source.CLOCK)
"""Where it may not be known how often it did."""


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
        elif item.too_many and len(rows := self._rows(item)) == item.observed:
            by = [one for row in rows if (one := self._disturbed(item.group, row)) is not None]
            return by[0] if by and item.observed - len(by) <= item.most else None
        return next(self._held_up(item.group, from_ms, until_ms), None)

    def why(self, item: Shortfall) -> str:
        """Say why each of too many rebalances was due, as far as that is known; else ""."""
        rows = self._rows(item)
        if item.what == UNOWNED or not item.too_many or len(rows) != item.observed:
            return ""
        causes = Counter(self._cause(item.group, row) for row in rows)
        words = "; ".join(
            cause if len(causes) == 1 else f"{count} x {cause}"
            for cause, count in sorted(causes.items(), key=lambda one: (-one[1], one[0]))
        )
        noun = "rebalance" if len(rows) == 1 else "rebalances"
        return f"{len(rows)} {noun}, each due: {words}"

    def _span(self, item: Shortfall) -> tuple[float, float]:
        """Return from when until when a count was made."""
        began = [*self.run.phases, ("", inf)]
        teardown_ms = dict(self.run.phases).get("teardown", inf)
        if item.what == UNOWNED:
            grown_ms = self.run.grown_ms[0]
            first_ms = dict(self.run.phases).get("impact", -inf) if grown_ms == inf else grown_ms
            return first_ms, teardown_ms
        for (phase, from_ms), (_, until_ms) in pairwise(began):
            if phase == item.phase:
                return from_ms, until_ms
        return began[0][1], teardown_ms

    def _rows(self, item: Shortfall) -> list[Json]:
        """Return the rebalances that were counted, as far as they are known."""
        return [
            row
            for row in self.observed
            if row["group"] == item.group
            and row["started_ms"] is not None
            and item.phase in ("total", self.run.phase_at(row["started_ms"]))
            and item.reason in (None, row["reason"])
        ]

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

    def _absent(self, group: str, row: Json) -> tuple[str, float] | None:
        """Return the client that the plan had away so long that a rebalance was due, and how long.

        A static member that is back within its session costs none.
        """
        session_ms = self._session_ms(group)
        for one in self.run.absences:
            away_ms = one.until_ms - one.from_ms
            due = away_ms >= session_ms or one.client not in self._statics(group)
            until_ms = one.until_ms + session_ms
            if one.group == group and due and one.from_ms <= row["started_ms"] <= until_ms:
                return one.client, away_ms
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
        absent, session_ms = self._absent(group, row), self._session_ms(group)
        if absent is None:
            return str(row["reason"] or "without a reason")
        if absent[1] < session_ms:
            return f"a dynamic member was away ({row['reason']})"
        away_s, session_s = absent[1] / 1_000, session_ms / 1_000
        return f"a member was away {away_s:.0f} s with a session of {session_s:g} s"

    def _session_ms(self, group: str) -> float:
        row: Mapping[str, Any] = self.disturbances.groups[group]
        return row.get("max_session_timeout_ms") or 0.0

    def _statics(self, group: str) -> set[str]:
        groups = (one for one in self.run.experiment.workload.groups if one.name == group)
        return {one.name for of in groups for one in members_of(of) if one.kind == "static"}
