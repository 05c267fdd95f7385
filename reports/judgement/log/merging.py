"""Merges the summaries of a run's logs, and reads logs that are in memory."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reports.judgement.log.broker_log import COLUMNS, TABLES, Place, tables_of
from reports.judgement.log.log_places import LogPlaces, log_file, logs_in
from reports.judgement.log.log_rows import WHOLE, Blob, How, LogSummary, Lost, line_counts
from reports.judgement.log.parsing import Parser
from reports.judgement.log.reading import read

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Merged:
    """What all logs of a run tell together, by broker (id); see `LogSummary`.

    `lost` are rows of the table `lost`, but for those that single lines tell (`Place.tables`): a
    place that may have such lines is `doubtful`.
    """

    starts: Mapping[str, Place]
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
    """What was read of some logs: packed rows by broker, and what the logs tell together."""

    blobs: Mapping[str, list[Blob]]
    merged: Merged

    def tables(self) -> dict[str, list[Json]]:
        """Return the rows of `TABLES`, in the order of their lines."""
        found: dict[str, list[Json]] = {name: [] for name in TABLES}
        for broker, blobs in self.blobs.items():
            for name, rows in tables_of(blobs, self.merged.starts[broker]).items():
                found[name] += rows
        lost = self.merged.lost
        found["lost"] += (dict(zip(COLUMNS["lost"], row, strict=True)) for row in lost)
        return found


def read_logs(texts: Mapping[str, Iterable[bytes]], parser: Parser, how: How = WHOLE) -> ReadLogs:
    """Read logs; `texts` are the lines of their files, by their URIs."""
    blobs: dict[str, list[Blob]] = {}
    summaries: list[LogSummary] = []
    for log, uris in logs_in(texts).items():
        broker = log.rpartition("/")[2]
        files = [(log_file(uri).name, texts[uri]) for uri in uris]
        *found, summary = read(files, broker, parser, how)
        assert isinstance(summary, LogSummary)
        blobs[broker] = [one for one in found if isinstance(one, Blob)]
        summaries.append(summary)
    return ReadLogs(blobs, merge(summaries, parser))


def merge(summaries: Iterable[LogSummary], parser: Parser) -> Merged:
    """Merge the summaries of all logs."""
    found = sorted(summaries, key=lambda one: one.broker)
    names = COLUMNS["transitions"]
    return Merged(
        {one.broker: Place.of(one, parser) for one in found},
        LogPlaces({one.broker: one.files for one in found}, parser.folder),
        [row for one in found for row in one.processes],
        [row for one in found for row in one.lost],
        [dict(zip(names, row, strict=True)) for one in found for row in one.of_all_groups],
        {one.broker: sorted(one.signs) for one in found},
    )
