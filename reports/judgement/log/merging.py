"""Merges the summaries of splits: what they hold in; where each stands, processes and gaps out.

The lines of a broker's log hang together: numbers of lines and processes, clocks, times within a
millisecond, requests that stand twice. Where summaries do not tell enough of these, the splits that
it is about are read once more (`look`), and only these.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from math import inf, isnan
from typing import Any, NamedTuple

import msgspec

from reports.judgement.errors import EvidenceError
from reports.judgement.log.broker_log import (
    CLOCK_MS,
    COLUMNS,
    PAUSE_MS,
    Clock,
    Place,
    Placing,
    Repeated,
    offset_ms,
)
from reports.judgement.log.log_places import LogPlaces, Split, in_order, log_file
from reports.judgement.log.parsing import Parser
from reports.judgement.log.processes import (
    STATUSES,
    Lost,
    Placed,
    ProcessPart,
    Run,
    entangled,
    runs,
    whole,
)
from reports.judgement.log.reading import TEXT_SHOWN, Reader
from reports.judgement.log.split_rows import How, ProcessSummary, SplitSummary

Json = dict[str, Any]


class TailTooShortError(Exception):
    """The lines of a split are earlier than the summary of the split before reaches."""


class Wanted(msgspec.Struct, frozen=True):
    """What a split is read again for: doubts about times, serial numbers, requests.

    The serial numbers are those of some processes, by number; the requests those of some
    connections.
    """

    place: Place
    doubts: bool = False
    processes: frozenset[int] = frozenset()
    connections: frozenset[tuple[int, str]] = frozenset()


class Request(NamedTuple):
    """The line of a request that was read again: its number in the split, and what it shows.

    `copies` is how often the tap sent the request once more.
    """

    process: int
    connection: str
    correlation_id: int
    line: int
    sn: int | None
    readable: bool
    copies: int
    text: str


class Look(msgspec.Struct, array_like=True):
    """What a split shows when it is read again.

    Lines are numbered through the broker's log, but for those of `requests`.
    """

    lost: list[Lost] = []
    placed: dict[int, list[Placed]] = {}
    requests: list[Request] = []


Looks = Callable[[Mapping[Split, Wanted]], Mapping[Split, Look]]
"""Reads splits again."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What all splits of a run's logs tell together.

    `processes` has a row for each process (`broker`, `process`, `last_ms`, `partition`, numbers of
    lines by `STATUSES`). `lost` are rows of that table, `of_all_groups` rows of `transitions`.
    `signs` are, by broker, the times of lines within the spans that were asked for, in order.
    """

    starts: Mapping[Split, Place]
    places: LogPlaces
    processes: list[Json]
    lost: list[Lost] = field(default_factory=list)
    of_all_groups: list[Json] = field(default_factory=list)
    signs: Mapping[str, Sequence[float]] = field(default_factory=dict)


def merge(summaries: Mapping[Split, SplitSummary], parser: Parser, looks: Looks) -> Merged:
    """Merge the summaries of all splits.

    Raises TailTooShortError where a summary has to reach further back, and EvidenceError where two
    files are the same part of a log.
    """
    ordered = sorted(summaries, key=in_order)
    starts: dict[Split, Place] = {}
    parts: dict[str, list[tuple[Split, ProcessPart]]] = {}
    wanted: dict[Split, Wanted] = {}
    for broker, of_broker in groupby(ordered, key=lambda split: log_file(split.file).broker):
        splits = list(of_broker)
        _refuse_copies(splits)
        of_splits = {split: summaries[split] for split in splits}
        starts |= _starts(broker, of_splits)
        parts[broker] = [
            (split, part)
            for split in splits
            for part in _parts(summaries[split], starts[split], parser)
        ]
        wanted |= _wanted(of_splits, starts, parts[broker], parser)
    seen = looks(wanted) if wanted else {}
    for split, again in _repeated(seen).items():
        texts = {one.line: Repeated(one.sn, one.text) for one in again}
        starts[split] = starts[split]._replace(repeated=texts)
        _reject(again, (part for of, part in parts[starts[split].broker] if of == split))
    processes, lost = _joined(parts, seen)
    first_lines: dict[str, dict[str, int]] = defaultdict(dict)
    for place in starts.values():
        first_lines[place.broker].setdefault(place.file, place.line)
    return Merged(
        starts,
        LogPlaces(
            {broker: [(n, name) for name, n in of.items()] for broker, of in first_lines.items()},
            parser.folder,
        ),
        processes,
        lost,
        [*_of_all_groups(summaries, starts, parser)],
        _signs(summaries, starts, parser),
    )


def _refuse_copies(splits: Iterable[Split]) -> None:
    """Raise EvidenceError where two files are the same part of a log: compressed, and as it was."""
    named: dict[int, str] = {}
    for file in map(log_file, dict.fromkeys(split.file for split in splits)):
        if (other := named.setdefault(file.age, file.name)) != file.name:
            raise EvidenceError(f"{other} and {file.name}: the same part of a log; remove one")


@dataclass(slots=True)
class _Before:
    """What the lines before a split are counted to."""

    line: int = 0
    process: int = 0
    lines: int = 0
    last_ms: int | None = None
    told_from_ms: float = -inf
    within_ms: Counter[int] = field(default_factory=Counter)


def _starts(broker: str, splits: Mapping[Split, SplitSummary]) -> Iterator[tuple[Split, Place]]:
    """Yield where each split of a broker's log begins; they are in the log's order."""
    apart_us: dict[int, Counter[int]] = defaultdict(Counter)
    number = 0
    for split in splits.values():
        for place, process in enumerate(split.processes):
            number += place > 0
            apart_us[number].update(process.apart_us)
    offsets = {process: offset_ms(counts) for process, counts in apart_us.items() if counts}
    before = _Before()
    for key, split in splits.items():
        lowest_ms = split.processes[0].lowest_ms
        if lowest_ms is not None and lowest_ms < before.told_from_ms:
            raise TailTooShortError
        last = before.process + len(split.processes)
        yield (
            key,
            Place(
                broker,
                log_file(key.file).name,
                before.line,
                before.process,
                before.lines,
                before.last_ms,
                {n: offsets[n] for n in range(before.process, last) if n in offsets},
                {ms: n for ms, n in before.within_ms.items() if ms >= (lowest_ms or 0)},
            ),
        )
        for place, process in enumerate(split.processes):
            if place:
                before.process += 1
                before.lines, before.told_from_ms, before.within_ms = 0, -inf, Counter()
            before.line += process.count
            before.lines += process.count
            before.told_from_ms = max(before.told_from_ms, process.told_from_ms)
            before.within_ms.update(process.within_ms)
        if split.last_ms is not None:
            before.last_ms = split.last_ms


def _parts(summary: SplitSummary, start: Place, parser: Parser) -> Iterator[ProcessPart]:
    """Yield what a split holds of each process, with the times and lines of its log."""
    clock = Clock(start, parser)
    for number, process in enumerate(summary.processes):
        at_ms = [
            at for ms, tick in process.times if (at := clock.at_ms(number, ms, tick)) is not None
        ]
        part = ProcessPart(
            start.process + number,
            process.counts,
            max(at_ms, default=None),
            process.partition,
            process.ended,
            on_wire=parser.on_wire,
        )
        if process.lines is not None:
            first, last = process.lines
            part.lines = start.line + first, start.line + last
            part.times_ms = min(at_ms), max(at_ms)
            more = start.lines if not parser.numbered and not number else 0
            part.runs = [
                Run(run.first + more, run.last + more, start.line + run.line,
                    clock.at_ms(number, *run.at))
                for run in process.runs
            ]  # fmt: skip
        yield part


def _wanted(
    splits: Mapping[Split, SplitSummary],
    starts: Mapping[Split, Place],
    parts: Sequence[tuple[Split, ProcessPart]],
    parser: Parser,
) -> Iterator[tuple[Split, Wanted]]:
    """Yield the splits of a broker's log that have to be read again, and what for."""
    tangled = frozenset(entangled([part for _, part in parts]))
    met = _met(splits, starts)
    for split, summary in splits.items():
        start = starts[split]
        numbers = range(start.process, start.process + len(summary.processes))
        one = Wanted(
            start,
            any(skew.broker == start.broker for skew in parser.skews)
            or any(
                _is_off(process, start.offsets.get(number))
                for number, process in zip(numbers, summary.processes, strict=True)
            ),
            tangled & {*numbers},
            frozenset(
                (number, connection)
                for number, process in zip(numbers, summary.processes, strict=True)
                for connection in process.connections
                if (number, connection) in met
            ),
        )
        if one.doubts or one.processes or one.connections:
            yield split, one


def _is_off(process: ProcessSummary, offset: float | None) -> bool:
    """Tell whether the two clocks of a line disagree."""
    if offset is None or isnan(offset):
        return offset is not None
    latest_us, earliest_us = (offset + CLOCK_MS) * 1_000, (offset - PAUSE_MS) * 1_000
    return any(not earliest_us < us < latest_us - 1 for us in process.apart_us)


def _met(
    splits: Mapping[Split, SplitSummary], starts: Mapping[Split, Place]
) -> set[tuple[int, str]]:
    """Return the connections, by process, whose numbers may stand in several splits."""
    spans: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for split, summary in splits.items():
        for number, process in enumerate(summary.processes, starts[split].process):
            for connection, span in process.connections.items():
                spans[number, connection].append(span)
    return {
        key
        for key, found in spans.items()
        if any(before[1] >= span[0] for before, span in pairwise(sorted(found)))
    }


def look(lines: Iterable[bytes], parser: Parser, how: How, wanted: Wanted) -> Look:
    """Read a split again."""
    start, found = wanted.place, Look([], {}, [])
    reader, clock = Reader(start.broker, parser, how), Clock(wanted.place, parser)
    for number, text in enumerate(lines, 1):
        reader.add(text)
        process, sn, line = start.process + reader.process_number, reader.sn, start.line + number
        time = (reader.process_number, *reader.time)
        at_ms = clock.at_ms(*time)
        if sn is not None and at_ms is not None:
            if wanted.doubts and (doubt := clock.doubt(*time)) is not None:
                found.lost.append((start.broker, process, at_ms, line, doubt))
            if process in wanted.processes:
                more = start.lines if not parser.numbered and not reader.process_number else 0
                found.placed.setdefault(process, []).append((sn + more, line, at_ms))
        if (request := reader.request) is not None:
            connection, serial = request.connection, request.correlation_id
            if (process, connection) in wanted.connections and serial is not None:
                assert connection is not None
                shown = text.rstrip(b"\r").decode("utf-8", "replace")[:TEXT_SHOWN]
                copies = reader.copies(request)
                found.requests.append(
                    Request(process, connection, serial, number, sn, reader.readable, copies, shown)
                )
        if number % 10_000 == 0:
            reader.drop()
    return found


def _reject(again: Iterable[Request], parts: Iterable[ProcessPart]) -> None:
    """Count lines of a split as rejected that were counted as used."""
    of_process = {part.number: part for part in parts}
    for one in again:
        counts = Counter(of_process[one.process].counts)
        counts.update({"used": -1, "rejected": 1})
        of_process[one.process].counts = dict(counts)


def _repeated(seen: Mapping[Split, Look]) -> Mapping[Split, Sequence[Request]]:
    """Return, by split, the readable requests that splits before it have, too."""
    occurrences: dict[tuple[str, int, str, int], list[tuple[Request, Split]]] = defaultdict(list)
    for split, look in seen.items():
        for one in look.requests:
            key = log_file(split.file).broker, one.process, one.connection, one.correlation_id
            occurrences[key].append((one, split))
    found: dict[Split, list[Request]] = defaultdict(list)
    for several in occurrences.values():
        several.sort(key=lambda one: (in_order(one[1]), one[0].line))
        for before, (one, split) in enumerate(several):
            if before > one.copies and one.readable:
                found[split].append(one)
    return found


def _joined(
    parts: Mapping[str, Sequence[tuple[Split, ProcessPart]]], seen: Mapping[Split, Look]
) -> tuple[list[Json], list[Lost]]:
    """Join what splits hold of processes: a row for each; and the gaps."""
    processes: list[Json] = []
    lost: list[Lost] = []
    for broker, of_broker in parts.items():
        exact: dict[int, list[Placed]] = defaultdict(list)
        for split in dict.fromkeys(split for split, _ in of_broker):
            for number, placed in seen.get(split, Look()).placed.items():
                exact[number] += placed
        for _, part in of_broker:
            if part.number in exact:
                part.runs, exact[part.number] = list(runs(sorted(exact[part.number]))), []
        of_log, gaps = whole(broker, [part for _, part in of_broker])
        lost += gaps
        processes += (
            {
                "broker": broker,
                "process": process.number,
                "last_ms": process.last_ms,
                "partition": process.partition,
                **{status: process.statuses[status] for status in STATUSES},
            }
            for process in of_log
        )
    lost += chain.from_iterable(look.lost for look in seen.values())
    return processes, lost


def _of_all_groups(
    summaries: Mapping[Split, SplitSummary], starts: Mapping[Split, Place], parser: Parser
) -> Iterator[Json]:
    for split, start in starts.items():
        for row in Placing(start, parser).lines(summaries[split].of_all_groups):
            yield dict(zip(COLUMNS["transitions"], row, strict=True))


def _signs(
    summaries: Mapping[Split, SplitSummary], starts: Mapping[Split, Place], parser: Parser
) -> Mapping[str, Sequence[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for split, start in starts.items():
        clock = Clock(start, parser)
        for process, ms, tick, since_ms in summaries[split].signs:
            if (at_ms := clock.at_ms(process, ms, tick)) is not None:
                found[start.broker].append(at_ms - since_ms)
    return {broker: sorted(times) for broker, times in found.items()}
