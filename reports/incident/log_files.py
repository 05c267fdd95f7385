"""The files of an incident: what is known of their splits in; whose they are, and doubts, out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Any

from reports.incident.stock_lines import IRRELEVANT, REJECTED, USED
from reports.incident.timing import BACK_MS
from reports.judgement.errors import EvidenceError

Json = dict[str, Any]


def log_files(paths: Iterable[str], splits: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Join the splits of files (see `Reader`); return the files, in the order of their times.

    A file has what its splits have, its `broker`, the one that most lines name (empty where none
    does), the number of its `lines`, and how many of them files before it have, too (`copies`).
    `first_lines` are the lines before each split, by its begin. Raises EvidenceError where no line
    is a coordinator's, or files are of different clusters.
    """
    of_path: dict[str, list[Mapping[str, Any]]] = {path: [] for path in paths}
    for split in sorted(splits, key=lambda split: split["start"]):
        of_path[split["path"]].append(split)
    files = [_file(path, mine) for path, mine in of_path.items()]
    _require_lines(files)
    _refuse_clusters(files)
    return sorted(files, key=lambda file: (file["first_ms"] or 0.0, file["path"]))


def _file(path: str, splits: list[Mapping[str, Any]]) -> Json:
    summed = {
        name: sum((Counter(split[name]) for split in splits), Counter[str]())
        for name in ("statuses", "brokers", "said")
    }
    lines = [sum(split["statuses"].values()) for split in splits]
    starts = [split["start"] for split in splits]
    back_ms, last_ms = 0.0, None
    for split in splits:
        if last_ms is not None and split["first_ms"] is not None:
            back_ms = max(back_ms, last_ms - split["first_ms"])
        back_ms = max(back_ms, split["back_ms"])
        last_ms = last_ms if split["last_ms"] is None else split["last_ms"]
    named = summed["brokers"] or summed["said"]
    return {
        **summed,
        "path": path,
        "name": path.removeprefix("file:"),
        "broker": max(sorted(named), key=lambda broker: named[broker], default=""),
        "lines": sum(lines),
        "first_lines": {start: sum(lines[:place]) for place, start in enumerate(starts)},
        "copies": 0,
        "stock": sum(split["stock"] for split in splits),
        "first_ms": next((s["first_ms"] for s in splits if s["first_ms"] is not None), None),
        "last_ms": last_ms,
        "back_ms": back_ms,
        "clusters": {cluster for split in splits for cluster in split["clusters"]},
        "others": {group for split in splits for group in split["others"]},
        "damage": next((split["damage"] for split in splits if split["damage"]), ""),
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
