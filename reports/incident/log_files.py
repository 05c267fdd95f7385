"""The files of an incident: what is known of their splits in; whose they are, and doubts, out."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from math import inf
from operator import itemgetter
from typing import Any

from reports.incident.lines.form import Form
from reports.incident.lines.reader import IRRELEVANT, REJECTED, USED, SplitSummary
from reports.incident.rows import Owners
from reports.incident.timing import BACK_MS

Json = dict[str, Any]


def log_files(
    names: Mapping[str, str],
    forms: Mapping[str, tuple[Form, str]],
    splits: Iterable[tuple[str, int, SplitSummary]],
) -> list[Json]:
    """Join the splits of files (path, begin, summary); return the files, in order of time.

    `names` has what people know files by, `forms` the form and the first line of each that has one.
    A file has what its splits have, its `broker`, the one that most lines name (empty where none
    does), the number of its `lines`, and how many of them count once (`copies`). `first_lines` are
    the lines before each split, by its begin.
    """
    of_path: dict[str, dict[int, SplitSummary]] = {path: {} for path in names}
    for path, start, split in sorted(splits, key=itemgetter(0, 1)):
        of_path[path][start] = split
    files = []
    for path, mine in of_path.items():
        form, opening = forms.get(path, (None, ""))
        known = {"path": path, "name": names[path], "form": form, "opening": opening}
        files.append(known | _file(mine))
    return sorted(files, key=lambda file: (file["first_ms"] or 0.0, file["path"]))


def _file(of_start: Mapping[int, SplitSummary]) -> Json:
    splits = [*of_start.values()]
    counts = lambda name: sum((Counter(getattr(one, name)) for one in splits), Counter[str]())
    total = lambda name: sum(getattr(one, name) for one in splits)
    lines = [sum(one.statuses.values()) for one in splits]
    brokers = counts("brokers")
    of_source: dict[str, Counter[str]] = defaultdict(Counter)
    for one in splits:
        for source, counted in one.of_source.items():
            of_source[source].update(counted)
    times = [
        (one.first_ms, one.last_ms)
        for one in splits
        if one.first_ms is not None and one.last_ms is not None
    ]
    ends = [
        at
        for one in splits
        for at in (one.first_ms, one.last_ms, one.earliest_ms, one.latest_ms)
        if at is not None
    ]
    back_ms = [ended_ms - begun_ms for (_, ended_ms), (begun_ms, _) in pairwise(times)]
    return {
        "statuses": counts("statuses"),
        "brokers": brokers,
        "broker": _most(brokers or counts("said")),
        "processes": {source: _most(counted) for source, counted in of_source.items()},
        "clusters": [(start, *at) for start, one in of_start.items() for at in one.cluster_marks],
        "lines": sum(lines),
        "first_lines": dict(zip(of_start, accumulate(lines, initial=0), strict=False)),
        "copies": 0,
        **{name: total(name) for name in ("timed", "client", "preparing_rejected")},
        "first_ms": min(ends, default=None),
        "last_ms": max(ends, default=None),
        "is_newest_first": bool(times) and times[0][0] > times[-1][1],
        "back_ms": max([0.0, *back_ms, *(one.back_ms for one in splits)]),
        "others": {
            group: of
            for known in (False, True)  # a line that names the protocol counts
            for one in reversed(splits)
            for group, of in one.others.items()
            if (of != "another") is known
        },
        "damage": next((one.damage for one in splits if one.damage), ""),
    }


def _most(counts: Mapping[str, int]) -> str:
    return max(sorted(counts), key=lambda broker: counts[broker], default="")


def leave(file: Json, cluster: str, reported: Mapping[tuple[str], Json]) -> None:
    """Leave of a file that names other clusters what was reported of the one that is asked for.

    The coordinator's lines of the others are irrelevant, and no time but that of a line reported
    is known to be the cluster's.
    """
    if {mark[-1] for mark in file["clusters"]} <= {cluster}:
        return
    left = reported.get((file["path"],), {"count": 0, "first_ms": None, "last_ms": None})
    used = min(left["count"], file["statuses"][USED])
    file["statuses"][IRRELEVANT] += file["statuses"][USED] - used
    file["statuses"][USED] = used
    file.update(first_ms=left["first_ms"], last_ms=left["last_ms"])


def owners(files: Sequence[Json], cluster: str) -> Owners:
    """Return whose the lines of files are, which are in the order of their times."""
    brokers: dict[tuple[str, str], str] = {}
    clusters: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for file in files:
        brokers[file["path"], ""] = file["broker"]
        for source, broker in file["processes"].items():
            brokers[file["path"], source] = broker
            if source:
                brokers["", source] = broker
        for start, place, source, name in file["clusters"]:
            clusters.setdefault((file["path"], source), []).append((start, place, name))
    ranks = {file["path"]: rank for rank, file in enumerate(files)}
    newest_first = (file["path"] for file in files if file["is_newest_first"])
    return Owners(ranks, brokers, clusters, cluster, frozenset(newest_first))


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
    elif not file["lines"]:
        yield "has no line"
    elif not file["timed"]:
        yield "no line is recognised as a broker's"
    if rejected := file["statuses"][REJECTED]:
        yield f"rejected lines: {rejected}"
    if len(file["brokers"]) > 1:
        yield f"has lines of several brokers: {', '.join(sorted(file['brokers']))}"
    if len(clusters := {mark[-1] for mark in file["clusters"]}) > 1:
        yield f"has lines of several clusters: {', '.join(sorted(clusters))}"
    if file["back_ms"] > BACK_MS:
        or_else = ", or it has its newest lines first" if file["is_newest_first"] else ""
        yield f"its clock jumps back by up to {file['back_ms'] / 1000:,.0f} s{or_else}"
    if file["copies"]:
        yield f"{file['copies']} of its lines stand in the logs twice, and count once"


def as_json(file: Json) -> Json:
    """Return what is known of a file: lines = used + irrelevant + rejected."""
    form: Form | None = file["form"]
    return {
        "file": file["name"],
        "form": form.sentence() if form and file["timed"] else "",
        "resolution_ms": form and form.resolution_ms,
        "broker": file["broker"] or None,
        "lines": file["lines"],
        **{status: file["statuses"][status] for status in (USED, IRRELEVANT, REJECTED)},
        "copies": file["copies"],
        "first_ms": file["first_ms"],
        "last_ms": file["last_ms"],
        "damage": file["damage"] or None,
    }
