"""The files of an incident: what is known of their splits in; whose they are, and doubts, out."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf
from operator import attrgetter
from typing import Any

import msgspec

from reports.incident.stock_lines import IRRELEVANT, REJECTED, USED, Summary
from reports.judgement.errors import EvidenceError

BACK_MS = 1_000.0
"""How far a clock may jump back within a file unnoticed: threads write their lines out of order."""


class LogFile(Summary, kw_only=True):
    """What is known of a file; `first_lines` is by its splits' begins.

    `copies` counts lines that files before it have, too.
    """

    path: str
    first_lines: dict[int, int] = msgspec.field(default_factory=dict)
    copies: int = 0

    @property
    def name(self) -> str:
        """The file as a user wrote it: a path of this machine, or a URI."""
        return self.path.removeprefix("file:")

    @property
    def broker(self) -> str:
        """The broker that most lines name; empty where none does."""
        named = self.brokers or self.said
        return max(sorted(named), key=lambda broker: named[broker], default="")


def log_files(paths: Iterable[str], by_split: Mapping[tuple[str, int], Summary]) -> list[LogFile]:
    """Join the splits of files, in the order of their times.

    Raises EvidenceError where no line is a coordinator's, or files are of different clusters.
    """
    files = {path: LogFile(path=path) for path in paths}
    for path, start in sorted(by_split):
        files[path].first_lines[start] = files[path].lines
        files[path].merge(by_split[path, start])
    _require_lines(files.values())
    _refuse_clusters(files.values())
    return sorted(files.values(), key=lambda file: (file.first_ms or 0.0, file.path))


def _require_lines(files: Iterable[LogFile]) -> None:
    if not any(file.statuses.get(USED) for file in files):
        read = sum(file.lines for file in files)
        damaged = [f"; {file.name}: {file.damage}" for file in files if file.damage]
        raise EvidenceError(
            f"none of {read} lines is a group coordinator's; give brokers' server.log in Kafka's"
            f" stock pattern, [%d] %p %m (%c)%n{''.join(damaged[:3])}"
        )


def _refuse_clusters(files: Iterable[LogFile]) -> None:
    where: dict[str, str] = {}
    for file in files:
        for cluster in file.clusters:
            where.setdefault(cluster, file.name)
    if len(where) > 1:
        named = ", ".join(f"{cluster} ({path})" for cluster, path in sorted(where.items()))
        raise EvidenceError(f"logs of different clusters: {named}; report each cluster's alone")


def notices(files: Sequence[LogFile]) -> list[dict[str, str]]:
    """List what is doubtful about files, which are in the order of their times."""
    found = [{"file": file.name, "what": what} for file in files for what in _of_file(file)]
    named = sorted((file for file in files if file.brokers), key=attrgetter("broker"))
    for one, other in pairwise(named):  # in the order of their times
        overlap_ms = (one.last_ms or 0.0) - (other.first_ms or inf)
        of_one = one.broker == other.broker and not one.copies and not other.copies
        if of_one and overlap_ms > BACK_MS:
            found.append({
                "file": other.name,
                "what": f"has other lines of broker {one.broker} than {one.name} from the same"
                " time: logs of two clusters, or no rotated parts of one log",
            })  # fmt: skip
    return found


def _of_file(file: LogFile) -> Iterable[str]:
    if file.damage:
        yield f"{file.damage}: the lines before that are read"
    if not file.lines:
        yield "has no line"
    elif not file.stock:
        yield "has no line in the form [%d] %p %m (%c)%n"
    if rejected := file.statuses.get(REJECTED):
        yield f"rejected lines of a coordinator: {rejected}"
    if len(file.brokers) > 1:
        yield f"has lines of several brokers: {', '.join(sorted(file.brokers))}"
    if file.back_ms > BACK_MS:
        yield f"its clock jumps back by up to {file.back_ms / 1000:.0f} s"
    if file.copies:
        yield f"{file.copies} of its lines stand in other files, too, and count once"


def as_json(file: LogFile) -> dict[str, Any]:
    """Return what is known of a file: lines = used + irrelevant + rejected."""
    return {
        "file": file.name,
        "broker": file.broker or None,
        "lines": file.lines,
        **{status: file.statuses.get(status, 0) for status in (USED, IRRELEVANT, REJECTED)},
        "copies": file.copies,
        "first_ms": file.first_ms,
        "last_ms": file.last_ms,
        "damage": file.damage or None,
    }
