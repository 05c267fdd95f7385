"""What happened to one group: the lines about it in the order of time in, rows of tables out."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from reports.judgement.incident.rebalances import Rebalance, Rebalances, client_of
from reports.judgement.incident.static_estimate import SESSION_MS, absences, estimate, spared
from reports.judgement.incident.stock_lines import Line
from reports.judgement.incident.storms import Storm, storms

TABLES = {
    "rebalances": (
        "group STRING, at_ms DOUBLE, broker STRING, reason STRING, clients STRING,"
        " client_reason STRING, generation LONG, stabilized_ms DOUBLE, ended_ms DOUBLE,"
        " took_ms DOUBLE, ending STRING, members INT, came INT, went INT, spared BOOLEAN,"
        " line STRING"
    ),
    "members": (
        "group STRING, client STRING, static BOOLEAN, rebalances INT, came INT, went INT,"
        " expired INT, replaced INT"
    ),
    "groups": "group STRING, incident BINARY",
}
"""The tables that are made of a group's lines; `incident` is a `GroupIncident` as msgpack."""

_SESSION = re.compile(r"\bsessionTimeoutMs=(\d{1,9})\b")


class GroupIncident(msgspec.Struct):
    """What is counted of a group. `moves` are the brokers that coordinated it, in their order."""

    first_ms: float
    last_ms: float
    lines: dict[str, int]
    reasons: dict[str, int]
    endings: dict[str, int]
    moves: list[str]
    storms: list[Storm]
    estimate: dict[str, Any]


@dataclass
class _Member:
    """What is counted of one client of a group."""

    static: bool = False
    rebalances: int = 0
    came: int = 0
    went: int = 0
    expired: int = 0
    replaced: int = 0


def rows_of_group(
    group: str, lines: Iterable[Line], session_ms: float | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of `TABLES` about a group; `session_ms` is the session asked for, if any."""
    found, counts, moves = Rebalances(), Counter[str](), list[str]()
    replaced: Counter[str] = Counter()
    sessions: Counter[float] = Counter()
    first_ms = last_ms = None
    for line in lines:
        first_ms, last_ms = line.at_ms if first_ms is None else first_ms, line.at_ms
        counts[line.template] += 1
        if line.broker and (not moves or moves[-1] != line.broker):
            moves.append(line.broker)
        if line.template == "static_replaced":
            replaced[line.fields.get("instance", "")] += 1
        sessions.update(float(text) for text in _SESSION.findall(line.text))
        found.take(line)
    if first_ms is None or last_ms is None:
        return
    seen_ms = sessions.most_common(1)[0][0] if sessions else None
    asked_ms = session_ms or seen_ms or SESSION_MS
    pairs = absences(found.changes, seen_ms or SESSION_MS, asked_ms)
    free = {id(each) for each in spared(found.found, pairs)}
    for rebalance in found.found:
        yield "rebalances", _row(group, rebalance, free=id(rebalance) in free)
    for client, member in _members(found, replaced).items():
        yield "members", {"group": group, "client": client, **asdict(member)}
    one = GroupIncident(
        first_ms,
        last_ms,
        dict(counts),
        dict(Counter(each.reason for each in found.found)),
        dict(Counter(each.ending.value for each in found.found)),
        moves,
        storms([each.at_ms for each in found.found]),
        estimate(found.found, found.changes, asked_ms, seen_ms),
    )
    yield "groups", {"group": group, "incident": msgspec.msgpack.encode(one)}


def _row(group: str, rebalance: Rebalance, *, free: bool) -> dict[str, Any]:
    came = sum(change.how == "came" for change in rebalance.changes)
    return {
        "group": group,
        "at_ms": rebalance.at_ms,
        "broker": rebalance.broker,
        "reason": rebalance.reason,
        "clients": ", ".join(rebalance.clients),
        "client_reason": rebalance.client_reason,
        "generation": rebalance.generation,
        "stabilized_ms": rebalance.stabilized_ms,
        "ended_ms": rebalance.ended_ms,
        "took_ms": rebalance.took_ms,
        "ending": rebalance.ending.value,
        "members": rebalance.size,
        "came": came,
        "went": len(rebalance.changes) - came,
        "spared": free,
        "line": rebalance.text,
    }


def _members(found: Rebalances, replaced: Counter[str]) -> dict[str, _Member]:
    members: dict[str, _Member] = defaultdict(_Member)
    for rebalance in found.found:
        for client in rebalance.clients:
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
    for member_id in found.statics:
        if (client := client_of(member_id)) in members:
            members[client].static = True
    return members
