"""The report: one self-contained HTML file that shows the verdict first.

The same input gives the same bytes: no clock, no random ids. All text goes through the template's
escaping, and the figures' data through a JSON form that cannot end a script.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from reports.judgement import expectations
from reports.judgement.clients import client_verdict
from reports.judgement.costs import TopicGrowth, topic_growths
from reports.judgement.explained import explain
from reports.judgement.explained.pages import departures
from reports.judgement.explained.sentences import api_name
from reports.judgement.results import Results
from reports.judgement.run import forecast
from reports.judgement.run.journal import PHASES
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.timelines.compare import began_ms
from reports.judgement.verdict import in_kib, members_in_words
from reports.page import cost_charts, explained, faults, wording
from reports.page.charts import timeline
from reports.page.costs import Costs
from reports.page.drawing import Span
from reports.page.drawn_groups import BARS, GROUPS_DRAWN, DrawnGroup, memberships, periods
from reports.page.environment import environment_of, page_of
from reports.page.group_rows import ROWS, group_rows

Json = dict[str, Any]
Rows = Mapping[str, Sequence[Json]]


SIDES = ("observed", "expected")
CELLS = ("started", "reason", "generation", "members", "leader", "took")
TIMES = ("started", "took")
"""Cells that may differ by some milliseconds without being a difference."""
ROWS_SHOWN = 400
"""How many rows of the comparison are shown, differences first; `tables/comparison` has all."""


def render(
    run: RunFolder,
    verdict: Json,
    data: Results,
    drawn: Sequence[str],
    rows: Rows,
    files: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Write the page; the verdict includes the costs.

    `drawn` are the groups to draw beside those of the experiment, `rows` by table those of the
    groups that the page shows, `files` the texts of the counterexample.
    """
    page = _Page(run, verdict, data, drawn, rows)
    zero_ms = page.span.zero_ms
    environment = environment_of("reports.page")
    environment.filters["offset"] = lambda at_ms: wording.offset(at_ms, zero_ms)
    environment.filters |= {"api_name": api_name, "markdown": explained.html_of}
    environment.tests["hits_broker"] = faults.hits_broker
    clients = page.costs.clients
    return page_of(
        environment,
        "report.html.j2",
        run=run,
        verdict=verdict,
        data=data,
        page=page,
        phases=(*PHASES, "total"),
        groups={group: verdict["groups"][group] for group in page.groups},
        clients=clients,
        rows=page.costs,
        groups_rows=group_rows(verdict, page.costs, page.groups),
        GROUP_ROWS=ROWS,
        experiment=run.experiment.dump(),
        cells=CELLS,
        comparison=comparison_rows(data.comparison, page.groups, clients, zero_ms),
        compared=sum(digest.rows["comparison"] for digest in data.digests.values()),
        cost_charts=cost_charts,
        wording=wording,
        beyond=forecast.outside(verdict),
        expectations=expectations,
        client_verdict=client_verdict,
        in_kib=in_kib,
        faults=faults,
        files=files,
        about=explained.pages_of(verdict),
        departures=departures(verdict),
        causes=explain.by_cause(verdict["findings"]),
    )


@dataclass(frozen=True)
class _Page:
    """What templates ask about a run and its verdict, and the figures."""

    run: RunFolder
    verdict: Json
    data: Results
    drawn: Sequence[str]
    rows: Rows

    @cached_property
    def costs(self) -> Costs:
        """The costs of the groups that are shown."""
        return Costs(self.run, self.verdict, self.data.observed, self.rows)

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
        order = dict.fromkeys([*planned, *self.drawn])
        shown = {*[*dict.fromkeys([*self.drawn, *planned])][:GROUPS_DRAWN]}
        return [group for group in order if group in shown and group in self.verdict["groups"]]

    @cached_property
    def figures(self) -> dict[str, Json]:
        """The figures, by the id of their element on the page."""
        figures = {"timeline": timeline([self._drawn[group] for group in self.groups], self.span)}
        if self.owned:
            figures["stops"] = cost_charts.stops(self.owned)
        for number, one in enumerate(self.owned, 1):
            figures[f"owners-{number}"] = cost_charts.owners(one, self.span, self.bars_each)
        return figures

    @property
    def bars_each(self) -> int:
        """How many bars the owners of one group may have."""
        return cost_charts.BARS // max(1, len(self.owned))

    @cached_property
    def owned(self) -> list[DrawnGroup]:
        """The groups whose owners are drawn: those that the client history has."""
        return [self._drawn[group] for group in self.groups if self.costs.has_history(group)]

    @property
    def has_records(self) -> bool:
        """Whether the timeline marks records."""
        return any(self._drawn[group].records for group in self.groups)

    @cached_property
    def _drawn(self) -> dict[str, DrawnGroup]:
        return {group: self._drawn_group(group) for group in self.groups}

    def _drawn_group(self, group: str) -> DrawnGroup:
        workload, costs = self.run.experiment.workload, self.costs
        topics = [topic for one in workload.groups if one.name == group for topic in one.topics]
        compared = [row for row in self.data.comparison if row["group"] == group]
        return DrawnGroup(
            group=group,
            title=self.members(group),
            planned=[one.name for one in self.run.experiment.members() if one.group == group],
            memberships=memberships(costs.of("joins", group), self.rows.get("heard", ())),
            timelines={side: periods(compared, side, self.span.end_ms) for side in SIDES},
            faults=faults.concerning(group, self.verdict["faults"]),
            findings=[one for one in self.verdict["findings"] if one["group"] == group],
            clients=costs.clients,
            remarks=self._remarks(group),
            records=[
                row
                for row in self.rows.get("records", ())
                if row["group"] == group and row["what"] in wording.RECORDS
            ],
            requests=[row for row in self.rows.get("requests", ()) if row["group"] == group],
            coordinators=self.data.coordinators.get(group, ()),
            total=sum(count for name, count in self.run.partitions.items() if name in topics),
            bars=BARS // len(self.groups),
            ownership=costs.of("ownership", group),
            stops=costs.of("stops", group, "impact"),
        )

    @cached_property
    def causes(self) -> Mapping[tuple[str, float], str]:
        """Who caused each rebalance, by group and when it began."""
        return {
            (row["group"], row["started_ms"]): f"{wording.BY[row['by']]}: {row['what']}"
            for row in self.rows.get("causes", ())
        }

    def _remarks(self, group: str) -> dict[float, str]:
        """Return who caused rebalances, clients' reasons and delays after a growth, by begin."""
        remarks: dict[float, list[str]] = defaultdict(list)
        for (of, at_ms), why in self.causes.items():
            if of == group:
                remarks[at_ms].append(f"caused by {why}")
        for row in self.data.observed:
            if row["group"] == group and row["client_reason"] is not None:
                remarks[row["started_ms"]].append(f"client: {row['client_reason']}")
        for one in self.growth:
            if one.group == group and one.rebalance is not None:
                delay = f"{wording.seconds(one.delay_ms, 3)} s after {one.topic} had grown"
                remarks[one.rebalance["started_ms"]].append(delay)
        return {at_ms: ", ".join(texts) for at_ms, texts in remarks.items()}

    @cached_property
    def growth(self) -> list[TopicGrowth]:
        """When groups rebalanced after their topics had grown."""
        workload = self.run.experiment.workload
        every = tuple(topic.name for topic in workload.topics)
        reads = {group.name: group.topics for group in workload.groups}
        topics = {group: reads.get(group, every) for group in self.groups}
        return topic_growths(self.verdict["faults"], self.data.observed, topics)

    def members(self, group: str) -> str:
        """Write how many members of a group the experiment lists."""
        about = self.verdict["groups"][group]
        return members_in_words(about["members_static"], about["members_dynamic"])


def comparison_rows(
    comparison: Iterable[Json], groups: Sequence[str], clients: Mapping[str, str], zero_ms: float
) -> dict[str, list[Json]]:
    """Return the rows to show of each of `groups`, with the cells of both sides.

    `sides` are the cells of the observed and of the expected rebalance, None where there is none.
    """
    mine = sorted((row for row in comparison if row["group"] in groups), key=began_ms)
    kept = sorted(range(len(mine)), key=lambda at: mine[at]["outcome"] == "match")[:ROWS_SHOWN]
    rows: dict[str, list[Json]] = {group: [] for group in groups}
    for row in (mine[at] for at in sorted(kept)):
        sides = [_side(row, side, clients, zero_ms) for side in SIDES]
        shown = {"sides": sides, "differing": _differing(row, *sides)}
        rows[row["group"]].append({**row, **shown})
    return rows


def _differing(row: Json, observed: Json | None, expected: Json | None) -> set[str]:
    differing = {"started"} if row["off_by_ms"] else set()
    if observed and expected:
        differing |= {n for n in CELLS if n not in TIMES and observed[n] != expected[n]}
        if row["outcome"] == "match":  # before 3.0 no line names the leader, before 2.8 the members
            differing -= {n for n in ("members", "leader") if row[f"observed_{n}"] is None}
            if row["observed_started_ms"] is None:  # no answer tells when a rebalance began, or why
                differing -= {"reason", "generation"}
    return differing


def _side(row: Json, side: str, clients: Mapping[str, str], zero_ms: float) -> Json | None:
    """Return the cells of one side; None where that side has no such rebalance."""
    of = lambda name: row[f"{side}_{name}"]
    started_ms, joined_ms, ended_as = of("started_ms"), of("joined_ms"), of("ended_as")
    if started_ms is None and joined_ms is None:
        return None
    ended_ms = of("assigned_ms") or (joined_ms if ended_as == "empty" else None)
    static = of("static_members")
    return {
        "started": wording.offset(started_ms, zero_ms),
        "reason": of("reason") or "-",
        "generation": f"{_or_dash(of('old_generation'))} → {_or_dash(of('generation'))}"
        + ("" if ended_as == "assigned" else f", {ended_as}"),
        "members": _or_dash(of("members")) + (f", {static} static" if static else ""),
        "leader": clients.get(of("leader"), of("leader")) or "-",
        "took": wording.seconds(ended_ms - started_ms if ended_ms and started_ms else None, 3),
    }


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
