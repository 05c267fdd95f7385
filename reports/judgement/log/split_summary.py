"""Where a split of a broker's log begins: summaries of splits in; the start of each split out.

The lines of a broker's log hang together: numbers of lines and processes, clocks, times within a
millisecond. A log is read split by split, so each split is first summarised, and the summaries of a
broker's splits, in the order of its log, tell where each begins.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import msgspec

from reports.judgement.log.broker_log import Start, offset_ms
from reports.judgement.log.parsing import Parser
from reports.judgement.run.skews import Skew

TAIL_MS = 1_000.0
"""How much of its end a summary tells millisecond by millisecond. Where lines are further out of
order than that, the splits are summarised again without such a bound."""


class TailTooShortError(Exception):
    """The lines of a split are earlier than the summary of the split before reaches."""


class ProcessSummary(msgspec.Struct, array_like=True):
    """What a split holds of one broker process."""

    lines: int = 0
    apart_us: dict[int, int] = {}
    """Lines with both clocks, by printed time minus nano clock in whole microseconds; only of times
    at which no fault had set the clock off."""
    within_ms: dict[int, int] = {}
    """Lines by printed time, from `told_from_ms` on; only of lines without a nano clock."""
    told_from_ms: float = -inf
    lowest_ms: int | None = None
    """The lowest printed time; only of lines without a nano clock."""


class SplitSummary(msgspec.Struct, array_like=True):
    """What is known of a split before its lines are read.

    `last_ms` is the last printed time. The first of `processes` goes on from the split before.
    """

    processes: list[ProcessSummary]
    last_ms: int | None = None

    @property
    def lines(self) -> int:
        """The number of lines."""
        return sum(process.lines for process in self.processes)


def summarised(
    texts: Iterable[str], parser: Parser, tail_ms: float = TAIL_MS, skews: Sequence[Skew] = ()
) -> SplitSummary:
    """Summarise the lines of a split; faults had set the clock of its broker off in `skews`."""
    split, numbered, first_line_end = parser.split, parser.numbered, parser.grammar.first_line_end
    process = ProcessSummary()
    found = SplitSummary([process])
    apart_us: Counter[int] = Counter()
    for text in texts:
        parts = split(text)
        if parts.body.endswith(first_line_end):
            _close(process, apart_us, tail_ms, numbered)
            process, apart_us = ProcessSummary(), Counter()
            found.processes.append(process)
        process.lines += 1
        if (ms := parts.logged_ms) is None:
            continue
        found.last_ms = ms
        if not numbered:
            apart_us[ms] += 1
        elif parts.nanos is not None and not any(skew.may_show(ms) for skew in skews):
            apart_us[(ms * 1_000_000 - parts.nanos) // 1_000] += 1
    _close(process, apart_us, tail_ms, numbered)
    return found


def _close(process: ProcessSummary, counts: Counter[int], tail_ms: float, numbered: bool) -> None:
    if numbered:
        process.apart_us = dict(counts)
    elif counts:
        process.lowest_ms, highest_ms = min(counts), max(counts)
        if process.lowest_ms < highest_ms - tail_ms:
            process.told_from_ms = highest_ms - tail_ms
        process.within_ms = {ms: n for ms, n in counts.items() if ms >= process.told_from_ms}


def starts(splits: Sequence[SplitSummary]) -> list[Start]:
    """Return where each split of one broker's log begins; `splits` are in the log's order.

    Raises TailTooShortError where a summary has to reach further back.
    """
    apart_us: dict[int, Counter[int]] = defaultdict(Counter)
    number = 0
    for split in splits:
        for place, process in enumerate(split.processes):
            number += place > 0
            apart_us[number].update(process.apart_us)
    offsets = {process: offset_ms(counts) for process, counts in apart_us.items() if counts}
    return list(_starts(splits, offsets))


@dataclass(slots=True)
class _Before:
    """What the lines before a split are counted to."""

    line: int = 0
    process: int = 0
    lines: int = 0
    last_ms: int | None = None
    told_from_ms: float = -inf
    within_ms: Counter[int] = field(default_factory=Counter)


def _starts(splits: Iterable[SplitSummary], offsets: Mapping[int, float]) -> Iterator[Start]:
    before = _Before()
    for split in splits:
        lowest_ms = split.processes[0].lowest_ms
        if lowest_ms is not None and lowest_ms < before.told_from_ms:
            raise TailTooShortError
        last = before.process + len(split.processes)
        yield Start(
            before.line,
            before.process,
            before.lines,
            None if before.last_ms is None else float(before.last_ms),
            {n: offsets[n] for n in range(before.process, last) if n in offsets},
            {ms: n for ms, n in before.within_ms.items() if ms >= (lowest_ms or 0)},
        )
        for place, process in enumerate(split.processes):
            if place:
                before.process += 1
                before.lines, before.told_from_ms, before.within_ms = 0, -inf, Counter()
            before.line += process.lines
            before.lines += process.lines
            before.told_from_ms = max(before.told_from_ms, process.told_from_ms)
            before.within_ms.update(process.within_ms)
        if split.last_ms is not None:
            before.last_ms = split.last_ms


def start_of(texts: Iterable[str], parser: Parser, skews: Sequence[Skew] = ()) -> Start:
    """Return where a whole log begins."""
    return starts([summarised(texts, parser, skews=skews)])[0]
