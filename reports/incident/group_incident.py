"""What happened to one group: the lines about it in the order of time in, rows of tables out."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from reports.incident.rebalances import Rebalance, Rebalances, client_of
from reports.incident.static_estimate import estimate
from reports.incident.stock_lines import Line
from reports.incident.storms import storms

Json = dict[str, Any]
_SESSION = re.compile(r"\bsessionTimeoutMs=(\d{1,9})\b")


@dataclass
class _Member:
    """What is counted of one client of a group."""

    static: bool = False
    rebalances: int = 0
    came: int = 0
    went: int = 0
    expired: int = 0
    replaced: int = 0


def row_about(group: str, lines: Iterable[Line], session_ms: float | None) -> Json:
    """Tell what the lines about a group say, at least one; `session_ms` is the session asked for.

    `incident` is the group's part of `incident.json`; `rebalances`, `members` are rows of tables.
    """
    found, counts, coordinators = Rebalances(), Counter[str](), list[str]()
    replaced, sessions, times = Counter[str](), Counter[str](), list[float]()
    for line in lines:
        times = [*times[:1], line.at_ms]
        counts[line.template] += 1
        if line.broker and coordinators[-1:] != [line.broker]:
            coordinators.append(line.broker)
        if line.template == "static_replaced":
            replaced[line.fields.get("instance", "")] += 1
        sessions.update(_SESSION.findall(line.text))
        found.take(line)
    seen_ms = float(sessions.most_common(1)[0][0]) if sessions else None
    would_be_static = estimate(found.found, found.changes, session_ms, seen_ms)
    incident = {
        "first_ms": times[0],
        "last_ms": times[-1],
        "rebalances": len(found.found),
        "by_reason": Counter(one.reason for one in found.found),
        "endings": Counter(one.ending.value for one in found.found),
        "coordinators": coordinators,
        "storms": [storm._asdict() for storm in storms([one.at_ms for one in found.found])],
        "would_be_static": would_be_static,
        "lines": counts,
    }
    members = _members(found, replaced)
    named = {"group": group}
    return {
        **named,
        "incident": incident,
        "rebalances": [named | _row(one) for one in found.found],
        "members": [named | {"client": who} | asdict(member) for who, member in members.items()],
    }


def _row(one: Rebalance) -> Json:
    came = sum(change.how == "came" for change in one.changes)
    return vars(one) | {
        "clients": ", ".join(one.clients),
        "took_ms": one.took_ms,
        "members": one.size,
        "came": came,
        "went": len(one.changes) - came,
        "line": one.text,
    }


def _members(found: Rebalances, replaced: Counter[str]) -> dict[str, _Member]:
    members: dict[str, _Member] = defaultdict(_Member)
    for client in (client for one in found.found for client in one.clients):
        members[client].rebalances += 1
    for change in found.changes:
        member = members[change.client]
        member.static |= change.static
        member.came += change.how == "came"
        member.went += change.how != "came"
        member.expired += change.how == "expired"
    for instance, count in replaced.items():
        members[instance].static = True
        members[instance].replaced = count
    for client in map(client_of, found.statics):
        if client in members:
            members[client].static = True
    return members
