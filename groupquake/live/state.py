"""The state that the page shows, made from the facts of a run and its experiment.

    at_ms       the time of this state
    figure      the timeline, by the drawing code of the report
    phases      name, begin, and planned end (null where nothing bounds it)
    groups      counters of each group, its coordinator and its owners
    rebalances  those of all groups in order, with who caused them as far as it can be said yet
    faults      those of the journal in order, `by_hand` if nobody planned them
    members     group, kind, whether it is in, or fenced

Times are UTC epoch milliseconds. A rebalance in the time of a fault on its member, its group or a
broker counts as caused by that, one of the formation, of the teardown or of a new member as caused
by the load; the rest is unknown until the verdict.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from groupquake.live.facts import Facts, GroupFacts, Rebalance
from loadtest.configs import configs_in
from reports.judgement.run.disturbance import Act
from reports.judgement.run.faults import act_of, faults_of
from reports.judgement.run.forecast import FILE as FORECAST
from reports.judgement.run.forecast import Foreseen, Interval
from reports.judgement.verdict import members_in_words
from reports.page import faults as page_faults
from reports.page.charts import timeline
from reports.page.drawing import Span
from reports.page.drawn_groups import GROUPS_DRAWN, DrawnGroup, periods
from reports.page.wording import BY
from reports.timing import LEARNED_MS
from scenarios import Experiment

Json = dict[str, Any]

NOT_VERIFIED_YET = {"verified": True, "witness": "not verified yet"}
"""What is drawn of a fault whose witness has not been asked: no doubt yet."""
_NO_CLIENT_REASON = re.compile(r"; client reason: not provided(?=\)?$)")
_NOTICED_MS = 5_000.0
"""How long members may take to notice that a topic has changed."""


class State:
    """Makes the state of a run; which experiment it is, and its forecast, it knows beforehand."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        """Read the forecast, if there is one."""
        self._experiment = experiment
        self._topics = {one.name: one.topics for one in experiment.workload.groups}
        self._producers = {one.name: one.topic for one in configs_in(experiment).producers}
        forecast = folder / FORECAST
        self._foreseen = Foreseen({})
        if forecast.exists():
            self._foreseen = msgspec.json.decode(forecast.read_bytes(), type=Foreseen)
        self._caused: list[str] = []
        """Who caused each of the rebalances so far."""

    def at(self, facts: Facts, now_ms: float) -> Json:
        """Return the state at a time, which is the last one drawn."""
        faults = faults_of(facts.journal)
        verified = {one["fault_id"] for one in facts.journal if one["event"] == "verified"}
        acts = [act_of(fault, _NOTICED_MS) for fault in faults]
        for begun in facts.rebalances[len(self._caused) :]:
            self._caused.append(_cause(begun, facts.phases, acts))
        groups = dict(islice(facts.groups.items(), GROUPS_DRAWN))
        zero_ms = facts.phases[0][1] if facts.phases else now_ms
        span = Span(zero_ms, max(now_ms, zero_ms + 1000.0), facts.phases)
        shown = [one if one["id"] in verified else one | NOT_VERIFIED_YET for one in faults]
        drawn = [_drawn(name, of, self._experiment, shown, now_ms) for name, of in groups.items()]
        return {
            "at_ms": now_ms,
            "figure": timeline(drawn, span),
            "phases": list(self._phases(facts)),
            "groups": {name: self._group(name, of, facts, now_ms) for name, of in groups.items()},
            "rebalances": list(map(_rebalance, facts.rebalances, self._caused)),
            "faults": [_fault(fault, known=fault["id"] in verified) for fault in faults],
            "members": {
                member.name: {
                    "group": member.group,
                    "kind": member.kind,
                    "in": member.name in facts.groups[member.group].open,
                    "fenced": member.name in facts.groups[member.group].fenced,
                }
                for member in self._experiment.members()
                if member.group in groups
            },
        }

    def _phases(self, facts: Facts) -> Iterator[Json]:
        planned = self._experiment.phases
        lasts_ms = {"impact": planned.impact_ms, "recovery": planned.recovery_ms}
        nexts = [*(at_ms for _, at_ms in facts.phases[1:]), None][: len(facts.phases)]
        for (name, began_ms), next_ms in zip(facts.phases, nexts, strict=True):
            ends_ms = began_ms + lasts_ms[name] if name in lasts_ms else None
            yield {"name": name, "began_ms": began_ms, "ends_ms": next_ms or ends_ms}

    def _group(self, name: str, of: GroupFacts, facts: Facts, now_ms: float) -> Json:
        caused = Counter(
            by for one, by in zip(facts.rebalances, self._caused, strict=True) if one.group == name
        )
        unowned_ms = of.unowned_ms
        if facts.phase == "impact":
            unowned_ms += sum(now_ms - at_ms for at_ms in of.unowned.values())
        return {
            "generation": of.generation,
            "members": of.members,
            "planned": len(self._experiment.members_by_group.get(name, ())),
            "coordinator": of.coordinator,
            "rebalances": {by: caused[by] for by in BY},
            "due": self._due(name, facts),
            "stopped_ms": round(of.stopped_ms),
            "unowned": len(of.unowned),
            "unowned_ms": round(unowned_ms),
            "lag": self._lag(name, of, facts),
            "commit_errors": of.commit_errors,
            "owners": {member: sorted(owned) for member, owned in of.owners.items() if owned},
        }

    def _due(self, name: str, facts: Facts) -> str | None:
        """Return how many rebalances the forecast has to the end of this phase; None without it."""
        if (foreseen := self._foreseen.groups.get(name)) is None:
            return None
        none = Interval(0, 0)
        due = [foreseen.rebalances.get(phase, {}).get("total", none) for phase, _ in facts.phases]
        most = None if any(one.most is None for one in due) else sum(one.most or 0 for one in due)
        return str(Interval(sum(one.least for one in due), most))

    def _lag(self, name: str, of: GroupFacts, facts: Facts) -> int | None:
        """Return how many records the group has to process; None if no member says where it is."""
        if not of.position:
            return None
        topics = self._topics.get(name, ())
        there = sum(n for one, n in facts.produced.items() if self._producers.get(one) in topics)
        return max(0, there - sum(of.position.values()))


def _rebalance(one: Rebalance, by: str) -> Json:
    return {
        "group": one.group,
        "at_ms": one.at_ms,
        "reason": _NO_CLIENT_REASON.sub("", one.reason),
        "by": by,
        "old_generation": one.old_generation,
        "generation": one.generation,
        "members": one.members,
        "took_ms": None if one.joined_ms is None else one.joined_ms - one.at_ms,
    }


def _fault(one: Json, *, known: bool) -> Json:
    """Return a fault of the journal; whether it is verified may not be known yet."""
    return {
        "id": one["id"],
        "fault": one["name"],
        "target": one["target"],
        "injected_ms": one["injected_at_ms"],
        "healed_ms": one["healed_at_ms"],
        "healed": one["healed"],
        "verified": one["verified"] if known else None,
        "witness": one["witness"],
        "by_hand": one["by_hand"],
    }


def _cause(begun: Rebalance, phases: Sequence[tuple[str, float]], acts: Sequence[Act]) -> str:
    """Say who caused a rebalance, in the order in which the verdict does."""
    begun_phases = (name for name, from_ms in reversed(phases) if from_ms <= begun.at_ms)
    if next(begun_phases, "formation") in ("formation", "teardown"):
        return "load"
    for act in acts:
        concerns = act.group in (None, begun.group)
        hits = not act.clients or begun.client in act.clients
        lasts = act.from_ms <= begun.at_ms and begun.since_ms <= act.until_ms + LEARNED_MS
        if concerns and hits and lasts:
            return "fault"
    return "load" if begun.is_first else "unknown"


def _drawn(
    name: str, of: GroupFacts, experiment: Experiment, faults: Sequence[Json], now_ms: float
) -> DrawnGroup:
    members = experiment.members_by_group.get(name, ())
    static = sum(member.kind == "static" for member in members)
    going_on = [one._replace(end_ms=now_ms) for one in of.open.values()]
    return DrawnGroup(
        group=name,
        title=members_in_words(static, len(members) - static),
        planned=[member.name for member in members],
        memberships=[*of.ended, *going_on],
        timelines={"observed": periods(map(_row, of.rebalances), "observed", now_ms)},
        faults=page_faults.concerning(name, faults),
        clients={one.member_id: one.client for one in (*of.ended, *going_on)},
        coordinators=of.coordinators,
    )


def _row(one: Rebalance) -> Mapping[str, Any]:
    """Return a rebalance as the report's comparison has it, of one side."""
    about = {
        "started_ms": one.at_ms, "joined_ms": one.joined_ms, "assigned_ms": one.ended_ms,
        "old_generation": one.old_generation, "generation": one.generation,
        "members": one.members, "reason": one.reason_class, "member_id": one.member_id,
        "ended_as": "empty" if one.members == 0 else "assigned",
    }  # fmt: skip
    not_expected = {"expected_started_ms": None, "outcome": "not judged yet"}
    return {f"observed_{key}": value for key, value in about.items()} | not_expected
