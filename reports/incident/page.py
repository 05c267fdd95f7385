"""The page of an incident: one self-contained HTML file, in the style of a run's report.

The same input gives the same bytes. All text goes through the template's escaping, and the figure's
data through a JSON form that cannot end a script.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from heapq import nlargest
from typing import Any

from reports.incident.rebalances import BEFORE, IN_GAP
from reports.incident.refusals import what_to_do
from reports.incident.timing import SHORTEST_DRAWN_MS
from reports.page import drawing, wording
from reports.page.drawing import Span, bar
from reports.page.environment import environment_of, page_of

Json = dict[str, Any]
GROUPS_SHOWN = 40
"""How many groups the page shows, those with most rebalances first; `incident.json` has all."""
ROWS_SHOWN = 25
"""How many rows each table shows, the worst first."""
STRIPS_SHOWN = 25
"""How many coordinators of a group the timeline shows, those for longest."""
HUES = (
    "new_member", "session_expired", "leave", BEFORE, "leader_rejoin", "pending_sync",
    "member_metadata", "protocol_change", "static_replaced", "", IN_GAP,
)  # fmt: skip
"""The reasons with a colour of their own, in the order of `hue-0` and so on in `figure.css`."""
SUMMED = ("spared", "idle_members", "idle_ms")


def render(incident: Json, rebalances: Sequence[Json]) -> str:
    """Write the page; `rebalances` are rows of the table, in the order of their times."""
    groups = incident["groups"].values()  # a clock may go back: the last line may not be the latest
    first_ms = min([incident["first_ms"] or 0.0, *(group["first_ms"] for group in groups)])
    last_ms = max([incident["last_ms"] or 0.0, *(group["last_ms"] for group in groups)])
    span = Span(first_ms, max(last_ms, first_ms + SHORTEST_DRAWN_MS))
    shown = {name: incident["groups"][name] for name in [*incident["groups"]][:GROUPS_SHOWN]}
    of_groups = chains(incident["groups"], rebalances)
    environment = environment_of("reports.incident", "reports.page")
    environment.filters |= {"moment": moment, "date": _date}
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return page_of(
        environment,
        "incident.html.j2",
        incident=incident,
        groups=shown,
        rows_shown=ROWS_SHOWN,
        strips_shown=STRIPS_SHOWN,
        drawn=len(rebalances),
        chains=of_groups,
        figures={"timeline": _timeline(shown, of_groups, span)} if shown else {},
        causes=causes,
        reason=reason,
        trade_offs=trade_offs(groups),
        what_to_do=what_to_do,
        wording=wording,
    )


def chains(groups: Mapping[str, Json], rebalances: Sequence[Json]) -> dict[str, list[Json]]:
    """Return the rebalances of each group, and `what` breaks the chain of its generations."""
    found = {
        name: [*({**gap, "at_ms": gap["after_ms"]} for gap in group["missing"]), *group["resets"]]
        for name, group in groups.items()
    }
    for one in rebalances:
        found[one["group"]].append(one)
    in_order = lambda one: (one["at_ms"], "what" in one)
    return {name: sorted(of, key=in_order) for name, of in found.items() if of}


def trade_offs(groups: Iterable[Json]) -> list[Json]:
    """Return what all groups together are spared, and what it costs, by session timeout."""
    rows = zip(*(group["would_be_static"]["by_session"] for group in groups), strict=True)
    return [{**row[0], **{name: sum(one[name] for one in row) for name in SUMMED}} for row in rows]


def moment(at_ms: float | None) -> str:
    """Write date and time of day, UTC."""
    return "-" if at_ms is None else f"{_date(at_ms)} UTC"


def causes(by_reason: Mapping[str, int]) -> list[tuple[str, str, int]]:
    """Return kinds of bars, what they mean, and how many rebalances are of them.

    Reasons without a colour of their own are one.
    """
    found = [(_hue(name), reason(name), count) for name, count in by_reason.items() if name in HUES]
    others = sum(count for name, count in by_reason.items() if name not in HUES)
    return [*found, *([(_hue("other"), "another cause", others)] if others else [])]


def reason(name: str) -> str:
    """Return the words of a reason; one of no class is in the broker's own words."""
    return wording.REASONS.get(name, name)


def _timeline(groups: Mapping[str, Json], of_groups: Mapping[str, list[Json]], span: Span) -> Json:
    """Draw rebalances and missing generations of each group, and below them its coordinators."""
    blocks = []
    for name, group in groups.items():
        gaps = [
            bar("missing", span.ends(gap["after_ms"], gap["before_ms"]), gap["what"])
            for gap in group["missing"]
        ]
        begun = [
            bar(
                _hue(one["reason"]),
                span.ends(one["at_ms"], max(one["at_ms"], one["ended_ms"] or 0)),
                reason(one["reason"]),
                one["clients"],
                one["ending"],
            )
            for one in of_groups.get(name, ())
            if "what" not in one
        ]
        lasted = lambda of: of["until_ms"] - of["from_ms"]
        coordinated = [
            bar("broker", span.ends(of["from_ms"], of["until_ms"]), f"broker {of['broker']}",
                text=of["broker"])
            for of in nlargest(STRIPS_SHOWN, group["coordinators"], key=lasted)
        ]  # fmt: skip
        rows = {"rebalances": gaps + begun, "coordinator": coordinated}
        blocks.append(drawing.block(name, [drawing.row(*each) for each in rows.items()]))
    return drawing.figure(span, blocks, dated=True)


def _hue(name: str) -> str:
    return f"cause hue-{HUES.index(name)}" if name in HUES else "cause"


def _date(at_ms: float) -> str:
    """Write a time as `2026-01-05 10:00:03.010`, UTC."""
    return f"{datetime.fromtimestamp(round(at_ms) / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
