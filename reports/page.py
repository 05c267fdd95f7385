"""The report: one HTML file that needs nothing else, and says first what happened.

Same input, same bytes: no clock, no random ids. All text goes through the template's escaping,
and the figure's data through a JSON form that cannot end a script.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from reports import wording
from reports.charts import Block, Span, timeline
from reports.rows import comparison_table
from reports.run_folder import PHASES, RunFolder
from reports.scenes import GROUPS_DRAWN, Scenes, collect, periods, stretches
from reports.verdict import Collected

__all__ = ["collect", "render"]

Json = dict[str, Any]
LANES_DRAWN = 40
"""How many members of a group get a lane."""
FINDINGS_SHOWN = 100
"""How many root findings are written out; `verdict.json` has all."""


def render(run: RunFolder, verdict: Json, data: Collected, scenes: Scenes) -> str:
    """Write the page."""
    page = _Page(run, verdict, data, scenes)
    span, groups = page.span, page.groups
    roots = [finding for finding in verdict["findings"] if finding["root"]]
    template = _environment(span).get_template("report.html.j2")
    return template.render(
        verdict=verdict,
        experiment=run.experiment,
        phases=(*PHASES, "total"),
        began_ms=span.zero_ms,
        cards=[page.card(group) for group in groups],
        groups={group: verdict["groups"][group] for group in groups},
        groups_left_out=len(verdict["groups"]) - len(groups),
        roots=roots[:FINDINGS_SHOWN],
        roots_left_out=max(0, len(roots) - FINDINGS_SHOWN),
        consequences=page.consequences,
        comparison=comparison_table(data.comparison, groups, scenes.clients(), span.zero_ms),
        bound_kinds=page.bound_kinds,
        figure=timeline([page.block(group) for group in groups], span),
        plotly=Markup(get_plotlyjs()),  # noqa: S704 (the library's own text)
        wording=wording,
    )


def _environment(span: Span) -> Environment:
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["offset"] = lambda at_ms: wording.offset(at_ms, span.zero_ms)
    environment.filters["seconds"] = wording.seconds
    environment.filters["utc"] = wording.utc
    environment.filters["counted"] = wording.counted
    return environment


def _most_telling(names: Sequence[str], targets: Sequence[str]) -> tuple[str, ...]:
    """Choose the lanes to draw, those with faults first; they keep their order."""
    chosen = sorted(names, key=lambda name: name not in targets)[:LANES_DRAWN]
    return tuple(name for name in names if name in chosen)


@dataclass(frozen=True)
class _Page:
    """What the page shows, read out of a run and its verdict."""

    run: RunFolder
    verdict: Json
    data: Collected
    scenes: Scenes

    @cached_property
    def span(self) -> Span:
        """The time that the page covers: from the formation's start to the run's end."""
        phases = self.run.phases
        journal = [entry["at_ms"] for entry in self.run.journal]
        first = [span["first_ms"] for span in self.data.spans.values()]
        last = [span["last_ms"] for span in self.data.spans.values()]
        zero_ms = phases[0][1] if phases else min([*journal, *first], default=0.0)
        return Span(zero_ms, max([*journal, *last, zero_ms + 1000.0]), phases)

    @cached_property
    def groups(self) -> list[str]:
        """The groups shown: the experiment's as it names them, then others with evidence."""
        planned = [group.name for group in self.run.experiment.workload.groups]
        order = dict.fromkeys([*planned, *self.scenes.groups])
        return [group for group in order if group in self.verdict["groups"]][:GROUPS_DRAWN]

    def block(self, group: str) -> Block:
        """Gather what the timeline shows of a group."""
        rows = [row for row in self.data.comparison if row["group"] == group]
        faults = [f for f in self.verdict["faults"] if f["group"] in (group, None)]
        present = stretches(self.scenes, group)
        members = [m.name for m in self.run.experiment.members() if m.group == group]
        targets = [fault["target"] for fault in faults]
        everyone = dict.fromkeys([*members, *targets, *(stretch.client for stretch in present)])
        lanes = _most_telling(list(everyone), targets)
        title = self._members(group)
        return Block(
            group=group,
            title=title if len(lanes) == len(everyone) else f"{title}, {len(lanes)} of them drawn",
            lanes=lanes,
            stretches=[stretch for stretch in present if stretch.client in lanes],
            observed=periods(rows, "observed", self.span.end_ms),
            expected=periods(rows, "expected", self.span.end_ms),
            faults=[fault for fault in faults if fault["target"] in lanes],
            findings=[f for f in self.verdict["findings"] if f["group"] == group],
            clients=self.scenes.clients(),
        )

    def card(self, group: str) -> Json:
        """Measure KIP-345's promise for a group: what restarts cost it in the impact phase."""
        about = self.verdict["groups"][group]
        rebalances = about["rebalances_observed"]["impact"]
        restarts = self.verdict["groups"][group]["restarts"]
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
            "restarts": restarts,
            "rebalances": rebalances,
            "each": f"{rebalances / restarts:.1f}" if restarts else None,
            "owed": about["rebalances_expected"]["impact"],
            "allowed": self._allowed(group),
            "rebalancing_ms": sum(took_ms),
            "impact_ms": began.get("recovery", self.span.end_ms) - began["impact"]
            if "impact" in began
            else None,
        }

    def _members(self, group: str) -> str:
        about = self.verdict["groups"][group]
        return wording.members(about["members_static"], about["members_dynamic"])

    def _allowed(self, group: str) -> str | None:
        """Say how many rebalances the experiment itself allows a group in the impact phase."""
        for wanted in self.run.experiment.expect:
            if (wanted.group, wanted.phase, wanted.reason) == (group, "impact", None):
                low, high = wanted.rebalances.min, wanted.rebalances.max
                if high is None:
                    return f"{low} or more"
                return f"{low}" if low == high else f"{low} to {high}"
        return None

    @cached_property
    def consequences(self) -> Mapping[int, list[Json]]:
        """What follows from a root finding, by its number."""
        following: dict[int, list[Json]] = defaultdict(list)
        for finding in self.verdict["findings"]:
            if not finding["root"]:
                following[finding["follows_from"]].append(finding)
        return following

    @cached_property
    def bound_kinds(self) -> list[tuple[str, str, str]]:
        """The kinds of bindings that were counted: kind, name, explanation."""
        counts = Counter[str]()
        for group in self.groups:
            counts.update(self.verdict["groups"][group]["bound"])
        known = [kind for kind in wording.BOUND if counts[kind]]
        other = sorted(kind for kind in counts if kind not in wording.BOUND)
        return [(kind, *wording.BOUND.get(kind, (kind, ""))) for kind in [*known, *other]]
