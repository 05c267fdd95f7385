"""The files of an incident: what is known of their splits in; whose they are, and doubts, out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from math import inf
from operator import itemgetter
from typing import Any

from reports.incident.lines.reader import IRRELEVANT, REJECTED, USED, SplitSummary
from reports.incident.timing import BACK_MS
from reports.judgement.errors import EvidenceError

Json = dict[str, Any]


def log_files(paths: Iterable[str], splits: Iterable[tuple[str, int, SplitSummary]]) -> list[Json]:
    """Join the splits of files (path, begin, summary); return the files, in order of time.

    A file has what its splits have, its `broker`, the one that most lines name (empty where none
    does), the number of its `lines`, and how many of them files before it have, too (`copies`).
    `first_lines` are the lines before each split, by its begin. Raises EvidenceError where no line
    is a coordinator's, or files are of different clusters.
    """
    of_path: dict[str, dict[int, SplitSummary]] = {path: {} for path in paths}
    for path, start, split in sorted(splits, key=itemgetter(0, 1)):
        of_path[path][start] = split
    files = [_file(path, mine) for path, mine in of_path.items()]
    _require_lines(files)
    _refuse_clusters(files)
    return sorted(files, key=lambda file: (file["first_ms"] or 0.0, file["path"]))


def _file(path: str, of_start: Mapping[int, SplitSummary]) -> Json:
    splits = [*of_start.values()]
    counts = lambda name: sum((Counter(getattr(one, name)) for one in splits), Counter[str]())
    brokers, lines = counts("brokers"), [sum(one.statuses.values()) for one in splits]
    named = brokers or counts("said")
    times = [
        (one.first_ms, one.last_ms)
        for one in splits
        if one.first_ms is not None and one.last_ms is not None
    ]
    first_ms = (one.first_ms for one in splits if one.first_ms is not None)
    last_ms = (one.last_ms for one in reversed(splits) if one.last_ms is not None)
    back_ms = [ended_ms - begun_ms for (_, ended_ms), (begun_ms, _) in pairwise(times)]
    return {
        "statuses": counts("statuses"),
        "brokers": brokers,
        "path": path,
        "name": path.removeprefix("file:"),
        "broker": max(sorted(named), key=lambda broker: named[broker], default=""),
        "lines": sum(lines),
        "first_lines": dict(zip(of_start, accumulate(lines, initial=0), strict=False)),
        "copies": 0,
        "stock": sum(one.timed for one in splits),
        "first_ms": next(first_ms, None),
        "last_ms": next(last_ms, None),
        "back_ms": max([0.0, *back_ms, *(one.back_ms for one in splits)]),
        "clusters": {cluster for one in splits for cluster in one.clusters},
        "others": {group for one in splits for group in one.others},
        "damage": next((one.damage for one in splits if one.damage), ""),
    }


def _require_lines(files: Iterable[Json]) -> None:
    if not any(file["statuses"][USED] for file in files):
        read = sum(file["lines"] for file in files)
        damaged = [f"; {file['name']}: {file['damage']}" for file in files if file["damage"]]
        raise EvidenceError(
            f"none of {read} lines is a group coordinator's; give brokers' server.log in Kafka's"
            f" stock pattern, [%d] %p %m (%c)%n{''.join(damaged[:3])}"
        )


def _refuse_clusters(files: Iterable[Json]) -> None:
    where: dict[str, str] = {}
    for file in files:
        for cluster in file["clusters"]:
            where.setdefault(cluster, file["name"])
    if len(where) > 1:
        named = ", ".join(f"{cluster} ({path})" for cluster, path in sorted(where.items()))
        raise EvidenceError(f"logs of different clusters: {named}; report each cluster's alone")


def notices(files: Sequence[Json]) -> list[dict[str, str]]:
    """List what is doubtful about files, which are in the order of their times."""
    found = [{"file": file["name"], "what": what} for file in files for what in _of_file(file)]
    named = sorted((file for file in files if file["brokers"]), key=lambda file: file["broker"])
    for one, other in pairwise(named):  # in the order of their times
        overlap_ms = (one["last_ms"] or 0.0) - (other["first_ms"] or inf)
        of_one = one["broker"] == other["broker"] and not one["copies"] and not other["copies"]
        if of_one and overlap_ms > BACK_MS:
            what = (
                f"has other lines of broker {one['broker']} than {one['name']} from the same time:"
                " logs of two clusters, or no rotated parts of one log"
            )
            found.append({"file": other["name"], "what": what})
    return found


def _of_file(file: Json) -> Iterator[str]:
    if file["damage"]:
        yield f"{file['damage']}: the lines before that are read"
    if not file["lines"]:
        yield "has no line"
    elif not file["stock"]:
        yield "has no line in the form [%d] %p %m (%c)%n"
    if rejected := file["statuses"][REJECTED]:
        yield f"rejected lines of a coordinator: {rejected}"
    if len(file["brokers"]) > 1:
        yield f"has lines of several brokers: {', '.join(sorted(file['brokers']))}"
    if file["back_ms"] > BACK_MS:
        yield f"its clock jumps back by up to {file['back_ms'] / 1000:.0f} s"
    if file["copies"]:
        yield f"{file['copies']} of its lines stand in other files, too, and count once"


def as_json(file: Json) -> Json:
    """Return what is known of a file: lines = used + irrelevant + rejected."""
    return {
        "file": file["name"],
        "broker": file["broker"] or None,
        "lines": file["lines"],
        **{status: file["statuses"][status] for status in (USED, IRRELEVANT, REJECTED)},
        "copies": file["copies"],
        "first_ms": file["first_ms"],
        "last_ms": file["last_ms"],
        "damage": file["damage"] or None,
    }
