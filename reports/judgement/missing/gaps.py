"""Gaps: where evidence is missing or unreadable, and which of them the run's faults explain.

Each is a disturbance of the broker whose log it is about, with the line there. It lasts for the
time of one line, unless the rest of the log is missing, or a group that was deleted. What is
missing of one group alone concerns that group.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

from reference_coordinator.replay import Parting
from reports.judgement.coordinators.coordinator_epochs import Load
from reports.judgement.log.log_places import Level, LogPlaces, log_of
from reports.judgement.log.split_rows import END_MISSING, START_MISSING
from reports.judgement.logged import LoggedRow
from reports.judgement.rows import Json, Row
from reports.judgement.run.disturbance import Disturbance, Kill, Source
from reports.judgement.timelines.member_lines import BEGUN, ENTERED, OF_LOADS
from reports.timing import CLOCK_OFF_MS, HANDLED_MS, KILL_NOTED_MS, WAITS_MS

if TYPE_CHECKING:  # executors have no experiments
    from reports.judgement.run.run_folder import RunFolder

UNLOGGED = """
    group STRING, broker STRING, line LONG, from_ms DOUBLE, at_ms DOUBLE, what STRING, sure BOOLEAN
"""
"""Requests that no log has, or may not have (not `sure`), by the line before or behind them. They
came from `from_ms` to `at_ms`."""
ENDS_OF_GROUPS = ("groups_deleted", "group_expired", "tombstones")
"""Templates of lines about groups that are deleted or expire. No request of the group tells the
oracle of it, and the next request finds no group."""
OFFSETS_REMOVED = "offsets_removed"
ENDS_OF_OFFSETS = ("offsets_expired", OFFSETS_REMOVED)
"""Templates of lines about committed offsets that are deleted, without their groups."""
REMOVED_NONE = "(Removed|Generated) 0 "
"""What such a line says if it deleted none, as a regular expression."""
_TOPIC = re.compile(r"name=([^],]+)")
_PARTITION = re.compile(r"([A-Za-z0-9._-]+)-[0-9]+(?=[],]|$)")
"""A deleted topic, or else one of its partitions, in such a line."""
NOT_UNDERSTOOD, NUL = "line not understood", "\0"


def gap(broker: str, line: int, at_ms: float | None, what: str) -> Disturbance:
    """Return a gap at a line; without a time it may have been at any."""
    if at_ms is None:
        return replace(whole_log(broker, what), line=line)
    until_ms = inf if what in (START_MISSING, END_MISSING) else at_ms
    return Disturbance(broker, at_ms, until_ms, what, Source.LOG, line=line)


def whole_log(broker: str, what: str, source: Source = Source.LOG) -> Disturbance:
    """Return a gap of a whole log."""
    return Disturbance(broker, -inf, inf, what, source, line=0)


def unreadable(row: Row) -> Disturbance:
    """Make a gap of a line that no template matches."""
    what = f"{NOT_UNDERSTOOD}: {row['text'].replace(NUL, '')[:120]}"
    return gap(row["broker"], row["line"], row["at_ms"], what)


def missing(row: Row) -> Disturbance:
    """Make a gap of a row of the table `lost`."""
    return gap(row["broker"], row["line"], row["at_ms"], row["what"])


def unlogged_row(
    broker: str, line: int, from_ms: float, until_ms: float, what: str, *, sure: bool = True
) -> dict[str, Any]:
    """Return a row of `UNLOGGED`, without the group."""
    return {
        "broker": broker,
        "line": line,
        "from_ms": from_ms,
        "at_ms": until_ms,
        "what": what,
        "sure": sure,
    }


def unlogged(row: Row) -> Disturbance:
    """Make a gap of a row of the table `unlogged`."""
    source = Source.REQUESTS if row["sure"] else Source.UNSEEN
    groups = frozenset({row["group"]})
    times = row["from_ms"], row["at_ms"]
    return Disturbance(row["broker"], *times, row["what"], source, groups, row["line"])


def possible_deletions(rows: Iterable[Row], topics: Collection[str]) -> Iterator[Disturbance]:
    """Make gaps of lines after which a group, or its offsets, may be deleted without a request.

    Their requests, DeleteGroups and OffsetDelete, are not logged. What is known to be deleted are
    the offsets of `topics`, with these.
    """
    for row in rows:
        text = row["message"].rstrip(".") if row["template"] == OFFSETS_REMOVED else ""
        named = set(_TOPIC.findall(text) or _PARTITION.findall(text))
        if not named or not named.issubset(topics):
            what = "a group or its offsets may have been deleted, which is not replayed"
            what += f": {row['message'][:300]}"
            times = row["at_ms"], inf
            yield Disturbance(row["broker"], *times, what, Source.LOG, line=row["line"])


def wrong_start_counts(in_logs: Mapping[str, int], run: "RunFolder") -> Iterator[Disturbance]:
    """Make gaps of logs with fewer starts of their brokers than the journal has, or more.

    `in_logs` counts the starts in each log that exists. A log that was cut exactly between two
    processes shows in no other way. Where the run itself died, nothing is compared: the end of its
    journal was written by `groupquake heal`.
    """
    if not run.completed:
        return
    started = run.starts
    unsure = {fault["broker"] for fault in run.faults if fault["open"]}
    for broker, count in in_logs.items():
        if count < started[broker] or (count > started[broker] and broker not in unsure):
            what = f"{count} starts of the broker are in the log, {started[broker]} in the journal"
            yield whole_log(broker, what)


def wrong_clocks(ended_ms: Mapping[str, float], run: "RunFolder") -> Iterator[Disturbance]:
    """Make gaps of brokers whose clock is not the journal's: they end outside of the teardown.

    `ended_ms` are the times of the last lines of brokers whose logs are whole. The journal notes
    the teardown before the brokers are stopped, and its end after it. Times of such a broker say
    nothing beside those of the journal or of other brokers, so nothing is proven.
    """
    if run.teardown is None:
        return
    first_ms, last_ms = run.teardown
    for broker, at_ms in sorted(ended_ms.items()):
        for off_ms, which in ((first_ms - at_ms, "behind"), (at_ms - last_ms, "ahead of")):
            if off_ms > CLOCK_OFF_MS:
                what = f"its clock is {off_ms:.0f} ms or more {which} that of the journal"
                yield whole_log(broker, what, Source.CLOCK)


def unexplained(gaps: Sequence[Disturbance], run: "RunFolder") -> list[Disturbance]:
    """Drop the gaps that the run's own faults explain.

    The log of a broker that ran before begins where the run began. All of its groups are new. No
    fault ends the tap: at level `wire` all gaps are left.
    """
    if run.level is Level.WIRE:
        return list(gaps)
    whole = without_cuts(without_kills(gaps, run.log_lines), run.cut_short)
    return [one for one in whole if run.outside is None or one.cause != START_MISSING]


def without_kills(
    gaps: Sequence[Disturbance], log_lines: Mapping[tuple[str, float], int]
) -> list[Disturbance]:
    """Drop the gaps that kills explain: a log that ends there, and a truncated last line.

    Each kill ends one process of one log. Everything that a broker wrote is on disk when it is
    killed: `log_lines` says, by broker and ms, how many lines that were. A log with fewer was cut.
    """
    left = list(gaps)
    for (broker, killed_ms), lines in sorted(log_lines.items()):
        by_ms = killed_ms + KILL_NOTED_MS
        ends = _missing_ends(left, broker)
        left = _without_last(left, [e for e in ends if e.from_ms <= by_ms and lines <= _line(e)])
    return left


def without_cuts(gaps: Sequence[Disturbance], cut_short: Collection[str]) -> list[Disturbance]:
    """Drop the missing ends of the logs of brokers (ids) that were killed as they did not stop.

    Their logs are known to be as long as when they were killed.
    """
    left = list(gaps)
    for broker in cut_short:
        left = _without_last(left, _missing_ends(left, broker))
    return left


def described(one: Disturbance, places: LogPlaces) -> str:
    """Tell the file, the line in it, and what is missing."""
    log = places.written(one.broker, one.line) if one.line else log_of(one.broker, places.folder)
    return f"{log}: {one.cause}"


def _line(one: Disturbance) -> int:
    return one.line or 0


def _missing_ends(gaps: Iterable[Disturbance], broker: str) -> list[Disturbance]:
    return [one for one in gaps if (one.broker, one.cause) == (broker, END_MISSING)]


def _without_last(gaps: list[Disturbance], ends: Sequence[Disturbance]) -> list[Disturbance]:
    """Drop the last of some missing ends of a log, and the truncated line that may follow it."""
    if not ends:
        return gaps
    end = max(ends, key=_line)
    behind = end.broker, _line(end) + 1
    return [
        one
        for one in gaps
        if one != end
        and not ((one.broker, one.line) == behind and one.cause.startswith(NOT_UNDERSTOOD))
    ]


ENDS = ("assignment", "empty")


def in_flight(kill: Kill, lines: Sequence[LoggedRow], longest_ms: float) -> Iterator[Json]:
    """Yield since when requests may have waited as a broker was killed; `lines` are the group's.

    A JoinGroup or SyncGroup waits since its rebalance began, if that was not long over, and for no
    longer than the group's longest rebalance timeout.
    """
    broker, _, killed_ms = kill
    mine = [one for one in lines if one["broker"] == broker and one["at_ms"] <= killed_ms]
    if not mine:
        return
    steps = [line for line in mine if line["template"] in ENTERED]
    began_ms = [line["at_ms"] for line in steps if line["template"] == BEGUN]
    ended = bool(steps) and steps[-1]["template"] in ENDS
    from_ms = killed_ms - WAITS_MS
    if began_ms and not (ended and steps[-1]["at_ms"] < from_ms):
        from_ms = min(from_ms, max(began_ms[-1], killed_ms - longest_ms))
    what = f"what broker {broker} had not answered when it was killed is in no log"
    line = mine[-1]["line"]
    yield unlogged_row(broker, line, from_ms - HANDLED_MS, killed_ms, what, sure=False)


def unreplicated(
    partings: Sequence[Parting], loads: Sequence[Load], lines: Sequence[LoggedRow], timers_ms: float
) -> Iterator[Json]:
    """Yield when a broker took over that may lack what the one before wrote as it was cut off.

    What it loaded shows until the group's timers, `timers_ms` at most, have run out.
    """
    for before, load in pairwise(loads):
        for parting in partings:
            lost = [
                line
                for line in lines
                if line["broker"] == parting.broker == before.broker != load.broker
                and parting.earliest_ms <= line["at_ms"] <= min(parting.from_ms, load.at_ms)
            ]
            if lost and load.at_ms <= parting.until_ms:
                what = (
                    f"what broker {parting.broker} wrote just before it was cut off from the others"
                    " may not have reached them"
                )
                until_ms = _begun_ms(load, lines) + timers_ms
                place = load.broker, load.line, lost[0]["at_ms"], until_ms
                yield unlogged_row(*place, what, sure=False)


def _begun_ms(load: Load, lines: Sequence[LoggedRow]) -> float:
    """Return when a broker began to load a group: its lines about that come before the last one."""
    times: list[float] = [
        line["at_ms"]
        for line in lines
        if line["broker"] == load.broker
        and line["template"] in OF_LOADS
        and load.at_ms - HANDLED_MS <= line["at_ms"] <= load.at_ms
    ]
    return min([*times, load.scheduled_ms])
