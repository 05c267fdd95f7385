"""The timeline: a figure with a block for each group and one time axis.

From the top, a block has its findings (if any), the observed and the expected generations, and a
lane for every member. Vertical bands are rebalances.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from kafka_protocol.errors import Error, name_of
from reports.page import drawing
from reports.page.drawing import Json, Span, bar
from reports.page.drawn_groups import DrawnGroup, Membership, Period, lane
from reports.page.faults import hits_broker
from reports.page.wording import REASONS, RECORDS, counted
from reports.timing import NOTED_MS

GENERATIONS = 5
"""How many colours generations have."""

NAMED = ("memberId", "generationId", "groupInstanceId", "reason")
"""The fields of a request that tell one from another."""

Lanes = Mapping[str, list[Json]]
"""The bars of each lane."""


def timeline(groups: Sequence[DrawnGroup], span: Span) -> Json:
    """Return the figure (`drawing`)."""
    faults = [fault for one in groups for fault in _in_lanes(one)]
    blocks = [_block(one, span) for one in groups]
    return drawing.figure(span, blocks, drawing.broker_bands(faults, span))


def _block(one: DrawnGroup, span: Span) -> Json:
    lanes: Lanes = {name: [] for name in one.lanes}
    for last, first in _joined(one, span):
        lanes[last.client].append(bar(
            _kind(last.generation) if first == last.generation else "many",
            span.ends(last.start_ms, last.end_ms),
            f"generation {first}" + ("" if first == last.generation else f" to {last.generation}"),
            f"member id {last.member_id}",
        ))  # fmt: skip
    for fault in _in_lanes(one):
        lanes[lane(fault)] += drawing.fault_bars([fault], span)
    _add_records(one, lanes, span)
    _add_requests(one, lanes, span)
    strips = {side: _strip(one, side, span) for side in one.timelines}
    findings = {"findings": _findings(one, span)} if one.findings else {}
    heads = {**findings, **strips, **_coordinators(one, span)}
    rows = [drawing.row(name, bars, head=True) for name, bars in heads.items()]
    rows += [drawing.row(name, bars) for name, bars in lanes.items()]
    title = one.title + drawing.part_drawn(one.lanes, one.everyone)
    return drawing.block(one.group, rows, title=title, bands=drawing.bands(one.periods, span))


def _in_lanes(one: DrawnGroup) -> list[Mapping[str, object]]:
    return [fault for fault in one.faults if lane(fault) in one.lanes]


def _joined(one: DrawnGroup, span: Span) -> Iterator[tuple[Membership, int]]:
    """Yield memberships with their first generation; short ones of a member are joined if many."""
    lanes = {*one.lanes}
    mine = [membership for membership in one.memberships if membership.client in lanes]
    many = len(mine) > one.bars
    least_ms = (span.end_ms - span.zero_ms) * len(lanes) / one.bars if many else 0.0
    begun: dict[str, tuple[Membership, int]] = {}
    for each in mine:
        last, first = begun.get(each.client, (each, each.generation))
        if last is each or last.end_ms - last.start_ms < least_ms:
            begun[each.client] = each._replace(start_ms=last.start_ms), first
        else:
            yield last, first
            begun[each.client] = each, each.generation
    yield from begun.values()


def _kind(generation: int | None) -> str:
    return f"gen-{((generation or 1) - 1) % GENERATIONS}"


def _add_records(one: DrawnGroup, lanes: Lanes, span: Span) -> None:
    """Mark in each member's lane when it noted records twice, out of order, or committed past."""
    noted: dict[tuple[str, float], dict[str, bool]] = defaultdict(dict)
    for row in one.records:  # what each range says, and whether it is allowed
        said = f"{row['partition']}: {counted(row['records'], 'record')} {RECORDS[row['what']]}"
        said = f"{said} ({row['first']:,} to {row['last']:,})"
        noted[row["member"], row["until_ms"]][said] = row["what"] == "twice"
    for (member, at_ms), found in noted.items():
        if member in lanes:
            kind = "records" if all(found.values()) else "records wrong"
            lanes[member].append(bar(kind, span.ends(at_ms - NOTED_MS, at_ms), *found))


def _add_requests(one: DrawnGroup, lanes: Lanes, span: Span) -> None:
    """Mark what scripted members asked; not the heartbeats that changed nothing."""
    for row in one.requests:
        code, api = row["error_code"], row["api"]
        if row["client_id"] in lanes and (api, code) != ("HEARTBEAT", Error.NONE):
            request = json.loads(row["request"] or "{}")
            named = [(name, of.get(name)) for of in (request, *request.get("members", ()))
                     for name in NAMED]  # fmt: skip
            said = ", ".join(f"{name} {value}" for name, value in named if value)
            answer = "without an answer" if code is None else f"answered {name_of(code)}"
            hover = (f"{api}, version {row['api_version']}", said, answer)
            lanes[row["client_id"]].append(bar("act", {"from": span.at(row["at_ms"])}, *hover))


def _coordinators(one: DrawnGroup, span: Span) -> Lanes:
    """Say who coordinated, if that changed, or a fault may have changed it."""
    times = [
        bar("broker", span.ends(max(since_ms, span.zero_ms), until_ms), name, text=name)
        for each in one.coordinators
        if (since_ms := each["since_ms"]) is not None
        and (until_ms := each["until_ms"] or inf) > span.zero_ms
        for name in [f"broker {each['broker']}"]
    ]
    changed = len(times) > 1 or any(map(hits_broker, one.faults))
    return {"coordinator": times} if changed else {}


def _strip(one: DrawnGroup, side: str, span: Span) -> list[Json]:
    """Draw a group's generations, each with its number, and its rebalances."""
    return [
        bar(
            "rebalance" if period.rebalancing else _kind(period.generation),
            span.ends(period.start_ms, period.end_ms),
            *_hover(one, side, period),
            text="" if period.rebalancing else f"{period.generation}",
        )
        for period in one.timelines[side]
    ]


def _hover(one: DrawnGroup, side: str, period: Period) -> list[str]:
    row = period.row
    if not period.rebalancing:
        who = counted(row[f"{side}_members"] or 0, "member")
        return [f"generation {period.generation}, {who}"]
    reason = str(row[f"{side}_reason"] or "no reason logged")
    member = str(row[f"{side}_member_id"] or "")
    cause = f" · {one.clients.get(member, member)}" if member else ""
    began = ("observed_started_ms", "expected_started_ms", "observed_joined_ms")
    began_ms = next(filter(None, map(row.get, began)), None)
    to = "none" if period.generation is None else period.generation
    return [
        f"rebalance from generation {row[f'{side}_old_generation']} to {to}",
        f"{reason}: {REASONS.get(reason, 'as the broker put it')}{cause}",
        one.remarks.get(began_ms, "") if side == "observed" and began_ms else "",
        str(row["outcome"]),
    ]


def _findings(one: DrawnGroup, span: Span) -> list[Json]:
    """Mark findings: roots with their number, their consequences as points."""
    return [
        bar(
            "finding" if found["root"] else "finding consequence",
            {"from": span.at(found["at_ms"])},
            f"finding {found['number']}: {found['kind'].replace('_', ' ')}",
            text=str(found["number"]) if found["root"] else "",
            opens=f"finding-{found['number']}",
        )
        for found in one.findings
    ]
