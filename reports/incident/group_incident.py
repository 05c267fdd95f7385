"""What happened to one group: the lines about it in the order of time in, rows of tables out."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from reports.incident.lines.reader import Line
from reports.incident.rebalances import CAME, Rebalance, Rebalances, client_of
from reports.incident.static_estimate import estimate
from reports.incident.timing import STORM_MS

Json = dict[str, Any]
STORM_REBALANCES = 5
"""So many rebalances of a group that began within `STORM_MS` are a storm."""
_SESSION = re.compile(r"\bsessionTimeoutMs=(\d{1,9})\b")


class Storm(NamedTuple):
    """From the first to the last beginning, and how many rebalances began."""

    from_ms: float
    until_ms: float
    rebalances: int


def row_about(group: str, about: Iterable[Line], session_ms: float | None) -> Json:
    """Tell what the lines about a group say, at least one; `session_ms` is the session asked for.

    `incident` is the group's part of `incident.json`, encoded; `rebalances`, `members` are rows of
    tables.
    """
    found, lines = Rebalances(), [*about]
    for line in lines:
        found.take(line)
    sessions = Counter(text for line in lines for text in _SESSION.findall(line.text))
    seen_ms = float(sessions.most_common(1)[0][0]) if sessions else None
    would_be_static = estimate(found.found, found.changes, session_ms, seen_ms)
    incident = {
        "first_ms": lines[0].at_ms,
        "last_ms": lines[-1].at_ms,
        "rebalances": len(found.found),
        "by_reason": Counter(one.reason for one in found.found),
        "endings": Counter(one.ending for one in found.found),
        "coordinators": [name for name, _ in groupby(line.broker for line in lines if line.broker)],
        "storms": [storm._asdict() for storm in storms([one.at_ms for one in found.found])],
        "would_be_static": would_be_static,
        "lines": Counter(line.template for line in lines),
    }
    replaced = [
        line.fields.get("instance", "") for line in lines if line.template == "static_replaced"
    ]
    return {
        "group": group,
        "incident": msgspec.json.encode(incident),
        "rebalances": [{"group": group, **_row(one)} for one in found.found],
        "members": [{"group": group, **row} for row in _members(found, replaced)],
    }


def _row(one: Rebalance) -> Json:
    came = sum(change.how == CAME for change in one.changes)
    return vars(one) | {
        "clients": ", ".join(one.clients),
        "took_ms": one.took_ms,
        "members": one.size,
        "came": came,
        "went": len(one.changes) - came,
    }


def _members(found: Rebalances, replaced: Sequence[str]) -> list[Json]:
    """Return what is counted of each client of a group; an instance that is replaced is one."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for client in (client for one in found.found for client in one.clients):
        counts[client]["rebalances"] += 1
    for change in found.changes:
        counts[change.client]["came" if change.how == CAME else "went"] += 1
        counts[change.client]["expired"] += change.how == "expired"
    for instance in replaced:
        counts[instance]["replaced"] += 1
    static = {*map(client_of, found.statics), *replaced}
    names = ("rebalances", "came", "went", "expired", "replaced")
    return [
        {"client": client, "static": client in static, **{name: of[name] for name in names}}
        for client, of in counts.items()
    ]


def storms(began_ms: Sequence[float]) -> list[Storm]:
    """Return the storms among beginnings in their order; windows that overlap are one storm."""
    found: list[tuple[int, int]] = []
    for first in range(len(began_ms) - STORM_REBALANCES + 1):
        last = first + STORM_REBALANCES - 1
        if began_ms[last] - began_ms[first] > STORM_MS:
            continue
        if found and found[-1][1] >= first:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return [Storm(began_ms[a], began_ms[b], b - a + 1) for a, b in found]
