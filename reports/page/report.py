"""The report: one self-contained HTML file that shows the verdict first.

The same input gives the same bytes: no clock, no random ids. All text goes through the template's
escaping, and the figures' data through a JSON form that cannot end a script.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jinja2 import Environment
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from reports.judgement import expectations, record_size
from reports.judgement.costs import Costs, impact
from reports.judgement.growth import TopicGrowth, topic_growths
from reports.judgement.run.journal import PHASES
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.verdict import Results, members_in_words
from reports.page import cost_charts, faults, wording
from reports.page.charts import Block, lane, timeline
from reports.page.cost_charts import Owned
from reports.page.cost_rows import ROWS_SHOWN, CostRows
from reports.page.drawing import Span
from reports.page.drawn_groups import GROUPS_DRAWN, DrawnGroups, identity, memberships, periods
from reports.page.environment import environment_of, page_of
from reports.page.rows import comparison_table

Json = dict[str, Any]
LANES_DRAWN = 40
"""How many members of a group get a lane."""
FINDINGS_SHOWN = 100
"""How many root findings the page shows; `verdict.json` has all."""


def render(run: RunFolder, verdict: Json, data: Results, drawn: DrawnGroups, costs: Costs) -> str:
    """Write the page; the verdict includes the costs."""
    page = _Page(run, verdict, data, drawn, costs)
    span, groups = page.span, page.groups
    roots = [finding for finding in verdict["findings"] if finding["root"]]
    return page_of(
        _environment(span),
        "report.html.j2",
        verdict=verdict,
        experiment=run.experiment,
        numbered_lines=run.numbered_lines,
        has_history=run.has_history,
        tells_bytes=data.tells_bytes,
        phases=(*PHASES, "total"),
        began_ms=span.zero_ms,
        cards=[page.card(group) for group in groups],
        groups={group: verdict["groups"][group] for group in groups},
        groups_left_out=len(verdict["groups"]) - len(groups),
        roots=roots[:FINDINGS_SHOWN],
        roots_left_out=max(0, len(roots) - FINDINGS_SHOWN),
        consequences=page.consequences,
        comparison=comparison_table(
            data.comparison,
            page.compared,
            groups,
            drawn.clients(),
            span.zero_ms,
            data.places,
        ),
        bound_kinds=page.bound_kinds,
        costs=page.cost_tables,
        owned=page.owned,
        rows_shown=ROWS_SHOWN,
        drawn_partitions=lambda one: cost_charts.drawn_partitions(one, page.bars_each),
        labels=cost_charts.labels,
        owner_colours=cost_charts.OWNER_COLOURS,
        colour_number=cost_charts.colour_number,
        figures=page.figures,
        brokers_hit=any(map(faults.hits_broker, verdict["faults"])),
        plotly=Markup(get_plotlyjs()),  # noqa: S704 (the library's own text)
        wording=wording,
        expectations=expectations,
        record_size=record_size,
        meaning=faults.meaning,
        one_shot=faults.one_shot,
    )


def _environment(span: Span) -> Environment:
    environment = environment_of("reports.page")
    environment.filters["offset"] = lambda at_ms: wording.offset(at_ms, span.zero_ms)
    environment.filters["seconds"] = wording.seconds
    environment.filters["utc"] = wording.utc
    environment.filters["counted"] = wording.counted
    return environment


def _drawn_lanes(names: Sequence[str], targets: Sequence[str]) -> tuple[str, ...]:
    """Return the lanes to draw, in their order; lanes with faults are preferred."""
    chosen = sorted(names, key=lambda name: name not in targets)[:LANES_DRAWN]
    return tuple(name for name in names if name in chosen)


@dataclass(frozen=True)
class _Page:
    """The content of the page, derived from a run and its verdict."""

    run: RunFolder
    verdict: Json
    data: Results
    drawn: DrawnGroups
    costs: Costs

    @cached_property
    def span(self) -> Span:
        """The time that the page covers: from the start of the formation to the end of the run."""
        phases = self.run.phases
        journal = [entry["at_ms"] for entry in self.run.journal]
        first = [span["first_ms"] for span in self.data.groups.values()]
        last = [span["last_ms"] for span in self.data.groups.values()]
        zero_ms = phases[0][1] if phases else min([*journal, *first], default=0.0)
        return Span(zero_ms, max([*journal, *last, zero_ms + 1000.0]), phases)

    @cached_property
    def groups(self) -> list[str]:
        """The groups shown: the experiment's in its order, then other groups with evidence."""
        planned = [group.name for group in self.run.experiment.workload.groups]
        order = dict.fromkeys([*planned, *self.drawn.groups])
        return [group for group in order if group in self.verdict["groups"]][:GROUPS_DRAWN]

    @property
    def compared(self) -> int:
        """How many rows the comparison of all groups has."""
        return sum(digest.rows["comparison"] for digest in self.data.digests.values())

    @cached_property
    def figures(self) -> dict[str, Json]:
        """The figures, by the id of their element on the page."""
        figures = {"timeline": timeline([self.block(group) for group in self.groups], self.span)}
        if self.owned:
            figures["stops"] = cost_charts.stops(
                {
                    one.group: (
                        self._members(one.group),
                        one.members,
                        impact(self.run, self.costs.of(one.group).stops),
                    )
                    for one in self.owned
                }
            )
        for number, one in enumerate(self.owned, 1):
            figures[f"owners-{number}"] = cost_charts.owners(one, self.span, self.bars_each)
        return figures

    @property
    def bars_each(self) -> int:
        """How many bars the owners of one group may have."""
        return cost_charts.BARS // max(1, len(self.owned))

    @cached_property
    def cost_tables(self) -> Json:
        """The tables of costs, by their names in the template."""
        rows = CostRows(self.run, self.verdict, self.data.observed, self.drawn, self.costs)
        zero_ms = self.span.zero_ms
        return {
            "beside": rows.beside(self.groups),
            "causes": rows.causes(self.groups),
            "members": rows.members(self.groups),
            "rebalances": rows.rebalances(self.groups, zero_ms),
            "growth": rows.growth(self.growth, zero_ms),
            "overlaps": rows.overlaps(self.groups, zero_ms),
            "evictions": rows.evictions(self.groups, zero_ms),
            "fences": rows.fences(self.groups, zero_ms),
        }

    @cached_property
    def owned(self) -> list[Owned]:
        """The owners to draw: of the groups that the client history has."""
        return [self._owned(group) for group in self.groups if self.costs.has_history(group)]

    def _owned(self, group: str) -> Owned:
        mine, workload = self.costs.of(group), self.run.experiment.workload
        topics = [topic for one in workload.groups if one.name == group for topic in one.topics]
        named = [member.name for member in self.run.experiment.members() if member.group == group]
        seen = [holding.member for holding in mine.holdings] + [stop.member for stop in mine.stops]
        return Owned(
            group=group,
            total=sum(count for name, count in self.run.partitions.items() if name in topics),
            members=list(dict.fromkeys([*named, *map(identity, seen)])),
            holdings=mine.holdings,
            observed=periods(self._compared(group), "observed", self.span.end_ms),
            faults=faults.concerning(group, self.verdict["faults"]),
        )

    def _compared(self, group: str) -> list[Json]:
        return [row for row in self.data.comparison if row["group"] == group]

    def block(self, group: str) -> Block:
        """Return what the timeline shows of a group."""
        rows = self._compared(group)
        hits = faults.concerning(group, self.verdict["faults"])
        present = memberships(self.drawn, group)
        members = [m.name for m in self.run.experiment.members() if m.group == group]
        targets = [lane(fault) for fault in hits]
        everyone = dict.fromkeys([*members, *(one.client for one in present), *targets])
        lanes = _drawn_lanes(list(everyone), targets)
        title = self._members(group)
        return Block(
            group=group,
            title=title if len(lanes) == len(everyone) else f"{title}, {len(lanes)} of them drawn",
            lanes=lanes,
            memberships=[one for one in present if one.client in lanes],
            observed=periods(rows, "observed", self.span.end_ms),
            expected=periods(rows, "expected", self.span.end_ms),
            remarks=self.remarks(group),
            faults=[fault for fault in hits if lane(fault) in lanes],
            findings=[f for f in self.verdict["findings"] if f["group"] == group],
            clients=self.drawn.clients(),
        )

    def remarks(self, group: str) -> dict[float, str]:
        """Return the clients' reasons and delays after a growth, by the time a rebalance began."""
        remarks = {
            row["started_ms"]: f"client: {row['client_reason']}"
            for row in self.data.observed
            if row["group"] == group and row["client_reason"] is not None
        }
        for one in self.growth:
            if one.group == group and one.rebalance is not None:
                started_ms = one.rebalance["started_ms"]
                delay = f"{wording.seconds(one.delay_ms, 3)} s after {one.topic} had grown"
                remarks[started_ms] = ", ".join(filter(None, (remarks.get(started_ms), delay)))
        return remarks

    @cached_property
    def growth(self) -> list[TopicGrowth]:
        """When groups rebalanced after their topics had grown."""
        workload = self.run.experiment.workload
        every = tuple(topic.name for topic in workload.topics)
        reads = {group.name: group.topics for group in workload.groups}
        topics = {group: reads.get(group, every) for group in self.groups}
        return topic_growths(self.verdict["faults"], self.data.observed, topics)

    def card(self, group: str) -> Json:
        """Return what a group's faults cost in the impact phase."""
        about = self.verdict["groups"][group]
        rebalances = about["rebalances_observed"]["impact"]
        hits = faults.counted(faults.concerning(group, self.verdict["faults"]))
        began = dict(self.run.phases)
        took_ms = [
            row["duration_ms"] or 0.0
            for row in self.data.observed
            if row["group"] == group and row["started_ms"] is not None
            if self.run.phase_at(row["started_ms"]) == "impact"
        ]
        return {
            "group": group,
            "kind": "dynamic" if about["members_dynamic"] else "static",
            "members": self._members(group),
            "faults": hits or {"fault": 0},
            "rebalances": rebalances,
            "each": f"{rebalances / hits.total():.1f}" if hits else None,
            "owed": about["rebalances_expected"]["impact"],
            "allowed": self._allowed(group),
            "rebalancing_ms": sum(took_ms),
            "impact_ms": began.get("recovery", self.span.end_ms) - began["impact"]
            if "impact" in began
            else None,
        }

    def _members(self, group: str) -> str:
        about = self.verdict["groups"][group]
        return members_in_words(about["members_static"], about["members_dynamic"])

    def _allowed(self, group: str) -> str | None:
        """Return how many rebalances the experiment allows a group in the impact phase."""
        for wanted in self.run.experiment.bounds:
            if (wanted.group, wanted.phase, wanted.reason) == (group, "impact", None):
                low, high = wanted.rebalances.min, wanted.rebalances.max
                if high is None:
                    return f"{low} or more"
                return f"{low}" if low == high else f"{low} to {high}"
        return None

    @cached_property
    def consequences(self) -> Mapping[int, list[Json]]:
        """The consequences of each root finding, by its number."""
        following: dict[int, list[Json]] = defaultdict(list)
        for finding in self.verdict["findings"]:
            if not finding["root"]:
                following[finding["follows_from"]].append(finding)
        return following

    @cached_property
    def bound_kinds(self) -> list[tuple[str, str, str]]:
        """The kinds of bound values that were counted: kind, name, explanation."""
        counts = Counter[str]()
        for group in self.groups:
            counts.update(self.verdict["groups"][group]["bound"])
        known = [kind for kind in wording.BOUND if counts[kind]]
        other = sorted(kind for kind in counts if kind not in wording.BOUND)
        return [(kind, *wording.BOUND.get(kind, (kind, ""))) for kind in [*known, *other]]
