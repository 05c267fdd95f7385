"""What happened to one group: the lines about it in the order of time in, rows of tables out."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple

import msgspec

from reports.incident.chain import Missing, Reset
from reports.incident.lines.reader import Line
from reports.incident.rebalances import CAME, Began, Rebalance, Rebalances
from reports.incident.static_estimate import estimate
from reports.incident.timing import STORM_MS
from reports.page.wording import counted, lasting

Json = dict[str, Any]
STORM_REBALANCES = 5
"""So many rebalances of a group that began within `STORM_MS` are a storm."""
_SESSION = re.compile(r"\bsessionTimeoutMs=(\d{1,9})\b")


class Storm(NamedTuple):
    """From the first to the last beginning, and how many rebalances began.

    Where the first or the last is not in the logs, the time is that of the line before or behind.
    """

    from_ms: float
    until_ms: float
    rebalances: int


def row_about(group: str, about: Iterable[Line], session_ms: float | None) -> Json:
    """Tell what the lines about a group say, at least one; `session_ms` is the session asked for.

    `incident` is the group's part of `incident.json`, encoded; `rebalances`, `members` are rows of
    tables. In the part:

    - `rebalances` counts those of which a line is in the logs; `by_reason` has those also whose
      "Preparing" is not (`rebalances.BEFORE`, `IN_GAP`); `endings` counts how they end.
    - `missing` lists what is not in the logs: the generations from `from_generation` until
      `until_generation`, and `rebalances` that began between `after_ms` and `before_ms`; `what`
      says it in a sentence. `rebalances_missing` is the sum, and beside `rebalances`.
    - `resets` lists where the generation went back: `at_ms`, `broker`, `from_generation`,
      `to_generation`, `what`.
    - `coordinators` lists who coordinated when, in their order: `broker`, `from_ms`, `until_ms`.
    - `storms` count what is missing, too: `from_ms`, `until_ms`, `rebalances`.
    - `would_be_static`: for the session `session_ms`, static members would have `spared`
      rebalances, and the partitions of `idle_members` would have lain idle for `idle_ms` in all;
      `by_session` lists the same for other sessions. `spared_up_to` takes `unknown` clients, of
      which no line tells the kind, for dynamic ones.

    In rows of rebalances, `after_ms` is the time after which one began whose "Preparing" is not in
    the logs; `took_ms` is None unless they have beginning and end. In rows of members, `static` is
    None where no line tells it.
    """
    found, lines = Rebalances(), [*about]
    for line in lines:
        found.take(line)
    sessions = Counter(text for line in lines for text in _SESSION.findall(line.text))
    seen_ms = float(sessions.most_common(1)[0][0]) if sessions else None
    would_be_static = estimate(found, session_ms, seen_ms)
    stormy, chain = storms(found.beginnings()), found.chain
    incident = {
        "first_ms": lines[0].at_ms,
        "last_ms": lines[-1].at_ms,
        "rebalances": len(found.found),
        "rebalances_missing": sum(gap.rebalances for gap in chain.missing),
        "missing": [{**gap._asdict(), "what": sentence(gap, stormy)} for gap in chain.missing],
        "resets": [{**reset._asdict(), "what": went_back(reset)} for reset in chain.resets],
        "by_reason": Counter(one.reason for one in found.found),
        "endings": Counter(one.ending for one in found.found),
        "coordinators": [one._asdict() for one in chain.coordinators],
        "storms": [storm._asdict() for storm in stormy],
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


def went_back(reset: Reset) -> str:
    """Say that a generation went back, and why it may have."""
    return (
        f"generation {reset.from_generation} is followed by {reset.to_generation}: the group was"
        " deleted and created again, or its coordinator ended before it wrote the last ones"
    )


def sentence(gap: Missing, stormy: Sequence[Storm]) -> str:
    """Say what is missing, and how many rebalances there were in the storm around it, if any."""
    first, last = gap.from_generation, gap.until_generation
    named = f"generation {first} is" if first == last else f"generations {first} to {last} are"
    for storm in stormy:
        if storm.from_ms <= gap.after_ms and gap.before_ms <= storm.until_ms:
            within = lasting(storm.until_ms - storm.from_ms)
            count = f"{storm.rebalances} rebalances in {within}, a storm"
            return f"{named} not in the logs: {count}"
    count = counted(gap.rebalances, "more rebalance")
    return f"{named} not in the logs: {count} within {lasting(gap.before_ms - gap.after_ms)}"


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
    names = ("rebalances", "came", "went", "expired", "replaced")
    return [
        {"client": client, "static": found.static(client), **{name: of[name] for name in names}}
        for client, of in counts.items()
    ]


def storms(began: Sequence[Began]) -> list[Storm]:
    """Return the storms among beginnings in their order; windows that overlap are one storm.

    It is one where so many must have begun within `STORM_MS`, whenever exactly that was.
    """
    earliest = [-inf if one.after_ms is None else one.after_ms for one in began]
    before = [0, *accumulate(one.rebalances for one in began)]
    found: list[tuple[int, int]] = []
    end = 0
    for first, from_ms in enumerate(earliest):
        end = max(end, first)
        while end < len(began) and began[end].until_ms - from_ms <= STORM_MS:
            end += 1
        if before[end] - before[first] < STORM_REBALANCES:
            continue
        if found and found[-1][1] > first:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return [Storm(earliest[a], began[b - 1].until_ms, before[b] - before[a]) for a, b in found]
