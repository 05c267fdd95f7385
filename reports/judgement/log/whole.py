"""Reads whole logs in this process: read, merge and place, in a row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from operator import itemgetter
from typing import Any

from reports.judgement.log.broker_log import COLUMNS, TABLES, Place, Placing
from reports.judgement.log.log_places import Split, log_file
from reports.judgement.log.merging import Looks, Merged, TailTooShortError, look, merge
from reports.judgement.log.parsing import Parser
from reports.judgement.log.reading import read
from reports.judgement.log.split_rows import WHOLE, Blob, How, SplitSummary, unpacked

Json = dict[str, Any]
Lines = Mapping[Split, Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class ReadLogs:
    """What was read of some logs: packed rows by split, and what the splits tell together."""

    blobs: Mapping[Split, list[Blob]]
    merged: Merged

    def tables(self, parser: Parser) -> dict[str, list[Json]]:
        """Return the rows of `TABLES`, in the order of their lines."""
        found: dict[str, list[Json]] = {name: [] for name in TABLES}
        for split, blobs in self.blobs.items():
            placed = tables_of(blobs, self.merged.starts[split], parser)
            for name, rows in placed.items():
                found[name] += rows
        lost = self.merged.lost
        found["lost"] += (dict(zip(COLUMNS["lost"], row, strict=True)) for row in lost)
        return found


def tables_of(blobs: Iterable[Blob], place: Place, parser: Parser) -> dict[str, list[Json]]:
    """Return the rows of a split, by table, in the order of its lines."""
    placing = Placing(place, parser)
    found: dict[str, list[Json]] = {name: [] for name in TABLES}
    for blob in blobs:
        for of_group in unpacked(blob.data):
            for name, rows in placing.tables(of_group):
                found[name] += (dict(zip(COLUMNS[name], row, strict=True)) for row in rows)
    by_line = itemgetter("line")
    return {name: sorted(of_table, key=by_line) for name, of_table in found.items()}


def read_logs(lines: Lines, parser: Parser, how: How = WHOLE) -> ReadLogs:
    """Read the lines of the splits of some logs; those of a split may be read more than once."""
    blobs: dict[Split, list[Blob]] = {}
    summaries: dict[Split, SplitSummary] = {}
    for split, texts in lines.items():
        blobs[split] = []
        for one in read(texts, log_file(split.file).broker, parser, how):
            if isinstance(one, Blob):
                blobs[split].append(one)
            else:
                summaries[split] = one
    try:
        return ReadLogs(blobs, merge(summaries, parser, looks_at(lines, parser, how)))
    except TailTooShortError:
        return read_logs(lines, parser, replace(how, tail_ms=inf))


def looks_at(lines: Lines, parser: Parser, how: How) -> Looks:
    """Return what reads some of the splits again."""
    return lambda wanted: {
        split: look(lines[split], parser, how, one) for split, one in wanted.items()
    }
