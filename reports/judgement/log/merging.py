"""Merges the summaries of splits: what they hold in; where each stands, processes and gaps out.

The lines of a broker's log hang together: numbers of lines and processes, clocks, times within a
millisecond, requests and serial numbers that stand twice.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from math import isnan
from operator import attrgetter

from reports.judgement.errors import EvidenceError
from reports.judgement.log.broker_log import COLUMNS, TABLES, Place, offset_ms, tables_of
from reports.judgement.log.log_places import LogPlaces, Split, in_order, log_file
from reports.judgement.log.parsing import Parser
from reports.judgement.log.reading import read
from reports.judgement.log.split_rows import (
    END_MISSING,
    GOES_ON,
    START_MISSING,
    STATUSES,
    WHOLE,
    Blob,
    How,
    Lost,
    ProcessSummary,
    Run,
    SplitSummary,
    Time,
    doubled,
    line_counts,
    missing,
)
from reports.judgement.rows import Json
from reports.judgement.run.disturbance import UNPLACED, of_broker
from reports.timing import CLOCK_AHEAD_MS, CLOCK_BEHIND_MS


@dataclass(frozen=True, slots=True)
class Merged:
    """What all splits of a run's logs tell together.

    `processes` has a row for each process (`broker`, `process`, `last_ms`, `partition`, numbers of
    lines by `STATUSES`). `lost` are rows of the table `lost`, but for those that single lines tell
    (`Place.tables`): a place that may have such lines is `doubtful`. `of_all_groups` are rows of
    `transitions`, `signs`, by broker, the times of lines within the spans asked for, in order.
    """

    starts: Mapping[Split, Place]
    places: LogPlaces
    processes: list[Json]
    lost: list[Lost] = field(default_factory=list)
    of_all_groups: list[Json] = field(default_factory=list)
    signs: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether no line is rejected, or may be missing, doubled or of a wrong time."""
        doubtful = any(place.doubtful for place in self.starts.values())
        return not (line_counts(self.processes)["rejected"] or self.lost or doubtful)


@dataclass(frozen=True, slots=True)
class ReadLogs:
    """What was read of some logs: packed rows by split, and what the splits tell together."""

    blobs: Mapping[Split, list[Blob]]
    merged: Merged

    def tables(self) -> dict[str, list[Json]]:
        """Return the rows of `TABLES`, in the order of their lines."""
        found: dict[str, list[Json]] = {name: [] for name in TABLES}
        for split, blobs in self.blobs.items():
            for name, rows in tables_of(blobs, self.merged.starts[split]).items():
                found[name] += rows
        lost = self.merged.lost
        found["lost"] += (dict(zip(COLUMNS["lost"], row, strict=True)) for row in lost)
        return found


def read_logs(lines: Mapping[Split, Iterable[bytes]], parser: Parser, how: How = WHOLE) -> ReadLogs:
    """Read the lines of the splits of some logs."""
    blobs: dict[Split, list[Blob]] = {}
    summaries: dict[Split, SplitSummary] = {}
    for split, texts in lines.items():
        blobs[split] = []
        for one in read(texts, log_file(split.file).broker, parser, how):
            if isinstance(one, Blob):
                blobs[split].append(one)
            else:
                summaries[split] = one
    return ReadLogs(blobs, merge(summaries, parser))


def merge(summaries: Mapping[Split, SplitSummary], parser: Parser) -> Merged:
    """Merge the summaries of all splits.

    Raises EvidenceError where two files are the same part of a log.
    """
    starts: dict[Split, Place] = {}
    processes: list[Json] = []
    lost: list[Lost] = []
    ordered = sorted(summaries, key=in_order)
    for broker, of_log in groupby(ordered, key=lambda split: log_file(split.file).broker):
        places = dict(_places(broker, {split: summaries[split] for split in of_log}, parser))
        doubled_in: dict[int, Sequence[tuple[int, int]]] = {}
        repeated: dict[Split, set[int]] = defaultdict(set)
        off: set[Split] = set()
        for number, parts in _by_process(places, summaries):
            runs = sorted(chain.from_iterable(part.runs for part in parts), key=_BY_NUMBER)
            doubled_in[number] = doubled(runs)
            again = list(_repeated(parts))
            for split, line in again:
                repeated[split].add(line)
            off.update(part.split for part in parts if part.is_off)
            counts = sum((Counter(part.process.counts) for part in parts), Counter[str]())
            if not counts:
                continue  # a log that begins with a process's first line has nothing before it
            counts.update(used=-len(again), rejected=len(again))
            processes.append(_row(broker, number, parts, counts))
            lost += ((broker, number, *gap) for gap in _gaps(parts, runs, on_wire=parser.on_wire))
        for split, place in places.items():
            doubtful = bool(place.skews) or any(doubled_in.values()) or split in off
            lines = frozenset(repeated[split])
            starts[split] = place._replace(doubled=doubled_in, repeated=lines, doubtful=doubtful)
    names = COLUMNS["transitions"]
    of_all_groups = [
        dict(zip(names, row, strict=True))
        for split, place in starts.items()
        for row in place.placed(summaries[split].of_all_groups)
    ]
    files = LogPlaces(_files(starts), parser.folder)
    return Merged(starts, files, processes, lost, of_all_groups, _signs(summaries, starts))


@dataclass(frozen=True, slots=True)
class _Part:
    """What a split, which begins at a place, holds of one process, by its number in the log."""

    split: Split
    place: Place
    number: int
    process: ProcessSummary

    def at_ms(self, time: Time) -> float | None:
        """Return when a line was written that shows a time."""
        return self.place.at_ms(self.number - self.place.process, *time)

    @property
    def runs(self) -> Iterator[Run]:
        """The runs of serial numbers, as they stand in the log."""
        goes_on = self.number == self.place.process and not self.place.numbered
        more, before = self.place.lines if goes_on else 0, self.place.line
        for run in self.process.runs:
            yield Run(run.first + more, run.last + more, before + run.line, self.at_ms(run.at))

    @property
    def is_off(self) -> bool:
        """Whether the two clocks of a line disagree."""
        offset = self.place.offsets.get(self.number)
        if offset is None or isnan(offset):
            return offset is not None
        earliest_us = (offset - CLOCK_BEHIND_MS) * 1_000
        latest_us = (offset + CLOCK_AHEAD_MS) * 1_000
        return any(not earliest_us < us < latest_us - 1 for us in self.process.apart_us)


_BY_NUMBER = attrgetter("first", "line")


def _by_process(
    places: Mapping[Split, Place], summaries: Mapping[Split, SplitSummary]
) -> Iterator[tuple[int, list[_Part]]]:
    """Yield what splits of a broker's log hold of each process, in the log's order."""
    parts = [
        _Part(split, place, number, process)
        for split, place in places.items()
        for number, process in enumerate(summaries[split].processes, place.process)
    ]
    for number, of_process in groupby(parts, key=attrgetter("number")):
        yield number, list(of_process)


def _places(
    broker: str, splits: Mapping[Split, SplitSummary], parser: Parser
) -> Iterator[tuple[Split, Place]]:
    """Yield where each split of a broker's log begins; they are in the log's order."""
    apart_us: dict[int, Counter[int]] = defaultdict(Counter)
    number = 0
    for summary in splits.values():
        for place, process in enumerate(summary.processes):
            number += place > 0
            apart_us[number].update(process.apart_us)
    before = Place(
        broker,
        "",
        parser.numbered,
        parser.on_wire,
        of_broker(parser.skews, broker),
        offsets={process: offset_ms(counts) for process, counts in apart_us.items() if counts},
    )
    # the last time of the process, and how many lines in a row show it
    shown: tuple[int | None, int] = (None, 0)
    for split, summary in splits.items():
        goes_on = summary.processes[0].first_ms == shown[0]
        before = before._replace(file=log_file(split.file).name, ahead=shown[1] if goes_on else 0)
        yield split, before
        for place, process in enumerate(summary.processes):
            if place:
                before, shown = before._replace(process=before.process + 1, lines=0), (None, 0)
            line, lines = before.line + process.count, before.lines + process.count
            before = before._replace(line=line, lines=lines)
            ms, tick = process.last
            if tick is not None:
                ahead = shown[1] if ms == shown[0] else 0
                shown = ms, tick if tick > 0 else tick - GOES_ON + ahead
        if summary.last_ms is not None:
            before = before._replace(last_ms=summary.last_ms)


def _repeated(parts: Iterable[_Part]) -> Iterator[tuple[Split, int]]:
    """Yield the lines of a process, by split, whose requests stand before."""
    of_connection: dict[str, list[tuple[Split, array[int]]]] = defaultdict(list)
    copies: Counter[tuple[str, int]] = Counter()
    for part in parts:
        for connection, data in part.process.requests.items():
            of_connection[connection].append((part.split, array("i", data)))
        copies |= Counter({(of, number): times for of, number, times in part.process.copies})
    for connection, found in of_connection.items():
        numbers = [*chain.from_iterable(requests[::2] for _, requests in found)]
        if len({*numbers}) == len(numbers):
            continue
        seen: Counter[int] = Counter()
        for split, requests in found:
            for number, line in zip(requests[::2], requests[1::2], strict=True):
                if seen[number] > copies[connection, number]:
                    yield split, line
                seen[number] += 1


def _row(broker: str, number: int, parts: Iterable[_Part], counts: Mapping[str, int]) -> Json:
    named = [part.process.partition for part in parts if part.process.partition is not None]
    return {
        "broker": broker,
        "process": number,
        "last_ms": max(_times_ms(parts), default=None),
        "partition": max(named, default=None),
        **{status: counts[status] for status in STATUSES},
    }


def _times_ms(parts: Iterable[_Part]) -> list[float]:
    """Return the least and the greatest times of lines."""
    times = (part.at_ms(time) for part in parts for time in part.process.times)
    return [at_ms for at_ms in times if at_ms is not None]


def _gaps(
    parts: Sequence[_Part], runs: Sequence[Run], *, on_wire: bool
) -> Iterator[tuple[float, int, str]]:
    """Find the gaps of a process: in its serial numbers, its times, its start and its end.

    What the tap saw is one process, without the line that begins that of a broker.
    """
    for run, count in missing(runs):
        yield run.at, run.line, f"{count} lines missing before serial number {run.first}"
    off = [(part.place.line, part.process.off) for part in parts if part.process.off]
    if off and parts[0].number not in parts[0].place.offsets:
        before, (line, ms) = off[0]
        yield float(ms), before + line, UNPLACED
    if not runs:
        return
    times_ms = _times_ms(parts)
    lines = [part.place.line + line for part in parts for line in part.process.lines or ()]
    if runs[0].first != 1 or (parts[0].number == 0 and not on_wire):
        yield min(times_ms), min(lines), START_MISSING
    if not any(part.process.ended for part in parts):
        yield max(times_ms), max(lines), END_MISSING


def _files(starts: Mapping[Split, Place]) -> Mapping[str, list[tuple[int, str]]]:
    """Return, by broker, where each file of its log begins.

    Raises EvidenceError where two are the same part of it: compressed, and as it was.
    """
    found: dict[str, dict[str, int]] = defaultdict(dict)
    named: dict[tuple[str, int], str] = {}
    for split, place in starts.items():
        found[place.broker].setdefault(place.file, place.line)
        part = place.broker, log_file(split.file).age
        if (other := named.setdefault(part, place.file)) != place.file:
            raise EvidenceError(f"{other} and {place.file}: the same part of a log; remove one")
    return {broker: [(line, file) for file, line in of.items()] for broker, of in found.items()}


def _signs(
    summaries: Mapping[Split, SplitSummary], starts: Mapping[Split, Place]
) -> Mapping[str, Sequence[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for split, place in starts.items():
        for process, ms, tick, since_ms in summaries[split].signs:
            if (at_ms := place.at_ms(process, ms, tick)) is not None:
                found[place.broker].append(at_ms - since_ms)
    return {broker: sorted(times) for broker, times in found.items()}
