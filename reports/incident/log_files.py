"""The files of an incident: what is known of their splits in; whose they are, and doubts, out."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from reports.incident.stock_lines import IRRELEVANT, REJECTED, USED, Summary
from reports.judgement.errors import EvidenceError

BACK_MS = 1_000.0
"""How far a clock may jump back within a file unnoticed: threads write their lines out of order."""


class LogFile(NamedTuple):
    """A file; `broker` is empty where no line names one. `first_lines` is by its splits' begins.

    `copies` counts lines that files before it have, too.
    """

    path: str
    broker: str
    summary: Summary
    first_lines: Mapping[int, int]
    copies: int = 0

    @property
    def name(self) -> str:
        """The file as a user wrote it: a path of this machine, or a URI."""
        return self.path.removeprefix("file:")


def log_files(paths: Iterable[str], by_split: Mapping[tuple[str, int], Summary]) -> list[LogFile]:
    """Join the splits of files, in the order of their times.

    Raises EvidenceError where no line is a coordinator's, or files are of different clusters.
    """
    wholes = {path: (Summary(), dict[int, int]()) for path in paths}
    for path, start in sorted(by_split):
        whole, first_lines = wholes[path]
        first_lines[start] = whole.lines
        whole.merge(by_split[path, start])
    files = [LogFile(path, _broker(whole), whole, first) for path, (whole, first) in wholes.items()]
    _require_lines(files)
    _refuse_clusters(files)
    return sorted(files, key=lambda file: (file.summary.first_ms or 0.0, file.path))


def _broker(summary: Summary) -> str:
    named = summary.brokers or summary.said
    return max(sorted(named), key=lambda broker: named[broker], default="")


def _require_lines(files: Iterable[LogFile]) -> None:
    if not any(file.summary.statuses.get(USED) for file in files):
        read = sum(file.summary.lines for file in files)
        damaged = [f"; {file.name}: {file.summary.damage}" for file in files if file.summary.damage]
        raise EvidenceError(
            f"none of {read} lines is a group coordinator's; give brokers' server.log in Kafka's"
            f" stock pattern, [%d] %p %m (%c)%n{''.join(damaged[:3])}"
        )


def _refuse_clusters(files: Iterable[LogFile]) -> None:
    where: dict[str, str] = {}
    for file in files:
        for cluster in file.summary.clusters:
            where.setdefault(cluster, file.name)
    if len(where) > 1:
        named = ", ".join(f"{cluster} ({path})" for cluster, path in sorted(where.items()))
        raise EvidenceError(f"logs of different clusters: {named}; report each cluster's alone")


def notices(files: Iterable[LogFile]) -> list[dict[str, str]]:
    """List what is doubtful about files."""
    found = [{"file": file.name, "what": what} for file in files for what in _of_file(file)]
    by_broker: dict[str, list[LogFile]] = {}
    for file in files:
        if file.broker and file.summary.brokers:
            by_broker.setdefault(file.broker, []).append(file)
    for broker, of_broker in by_broker.items():
        for one, other in pairwise(sorted(of_broker, key=attrgetter("summary.first_ms"))):
            if _overlap(one, other) and not one.copies and not other.copies:
                found.append({
                    "file": other.name,
                    "what": f"has other lines of broker {broker} than {one.name} from the same"
                    " time: logs of two clusters, or no rotated parts of one log",
                })  # fmt: skip
    return found


def _overlap(one: LogFile, other: LogFile) -> bool:
    last_ms, first_ms = one.summary.last_ms, other.summary.first_ms
    return last_ms is not None and first_ms is not None and first_ms < last_ms - BACK_MS


def _of_file(file: LogFile) -> Iterable[str]:
    summary = file.summary
    if summary.damage:
        yield f"{summary.damage}: the lines before that are read"
    if not summary.lines:
        yield "has no line"
    elif not summary.stock:
        yield "has no line in the form [%d] %p %m (%c)%n"
    if rejected := summary.statuses.get(REJECTED):
        yield f"rejected lines of a coordinator: {rejected}"
    if len(summary.brokers) > 1:
        yield f"has lines of several brokers: {', '.join(sorted(summary.brokers))}"
    if summary.back_ms > BACK_MS:
        yield f"its clock jumps back by up to {summary.back_ms / 1000:.0f} s"
    if file.copies:
        yield f"{file.copies} of its lines stand in other files, too, and count once"


def as_json(file: LogFile) -> dict[str, Any]:
    """Return what is known of a file: lines = used + irrelevant + rejected."""
    summary = file.summary
    return {
        "file": file.name,
        "broker": file.broker or None,
        "lines": summary.lines,
        **{status: summary.statuses.get(status, 0) for status in (USED, IRRELEVANT, REJECTED)},
        "copies": file.copies,
        "first_ms": summary.first_ms,
        "last_ms": summary.last_ms,
        "damage": summary.damage or None,
    }
