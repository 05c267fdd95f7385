"""Results: stored tables in; the few rows that the verdict and the page need, out."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import Any, NamedTuple

from reports.ingest.tables import Asked, Tables
from reports.judgement import findings
from reports.judgement.buckets import GAPS
from reports.judgement.coordinators import elections
from reports.judgement.digest import Digest
from reports.judgement.disturbances import of_brokers
from reports.judgement.log.split_rows import ends_of_brokers, line_counts
from reports.judgement.missing.gaps import (
    ENDS_OF_GROUPS,
    ENDS_OF_OFFSETS,
    REMOVED_NONE,
    missing,
    possible_deletions,
    unlogged,
    unreadable,
)
from reports.judgement.run.run_folder import HISTORY
from reports.judgement.verdict import Results
from reports.judgement.witnesses import Tap

FINDINGS = 10_000
"""How many rows that show a difference are read; see `_within_limit`."""
Json = dict[str, Any]
Row = Mapping[str, Any]
Choose = Callable[[Mapping[str, Digest]], Sequence[str]]
"""Chooses groups by what is counted of them."""


class Found(NamedTuple):
    """What verdict and page need: few rows, however many groups and rebalances there are.

    `kip_848` are the groups that use the KIP-848 protocol, and `drawn` those to draw. `rows` are
    those of tables that the page shows.
    """

    data: Results
    kip_848: list[str]
    drawn: Sequence[str]
    rows: Mapping[str, list[Json]]


def results(tables: Tables, planned: Sequence[str], choose: Choose, partitions: int) -> Found:
    """Read what the verdict and the page need: first of all groups, then of those that show.

    The page shows the groups that `choose` chooses to be drawn, and the `planned` ones; owners of
    the first `partitions` of each topic.
    """
    small = defaultdict[str, list[Json]](list, tables.kept)
    digests = {row["group"]: Digest.from_json(row["digest"]) for row in small["digests"]}
    bound: dict[str, dict[str, int]] = defaultdict(dict)
    for row in small["bound"]:
        bound[row["group"]][row["name"]] = row["count"]
    broken: dict[str, list[str]] = defaultdict(list)
    for row in small["broken"]:
        broken[row["group"]].append(row["promise"])
    with_requests = {
        row["group"]: row | {"brokers": row["brokers"].split(",")}
        for row in small["groups"]
        if row["requests"]
    }
    drawn = choose(digests)
    wrong = _within_limit(digests, drawn)
    shown = list(dict.fromkeys([*planned, *drawn]))
    rows = _rows_that_show(tables, digests, shown, drawn, wrong, partitions)
    merged = tables.merged
    lost = _first(small["lost"])
    starts = Counter[str]()
    for process in merged.processes:
        starts[process["broker"]] += process["process"] > 0
    context = tables.context
    data = Results(
        digests=digests,
        observed=_by_start(rows["observed"]),
        comparison=sorted(
            rows["comparison"], key=lambda row: (row["group"], findings.began_ms(row))
        ),
        member_lines=rows["member_lines"],
        violations=rows["violations"],
        breaches=rows["breaches"],
        witnesses=None if context.tap is None else _witnesses(context.tap, digests.values()),
        broken_promises=broken,
        departures=sorted(rows["departures"], key=itemgetter("at_ms", "group")),
        client_findings=sorted(rows["client_findings"], key=itemgetter("at_ms", "client_id")),
        bound=bound,
        checks={name: (row["requests"], row["explained"]) for name, row in with_requests.items()},
        groups=with_requests,
        line_counts=line_counts(merged.processes),
        starts=starts,
        partitions={row["group"]: row["partitions"] for row in small["groups"]},
        gaps=[
            *map(unreadable, _first(small["rejected"])),
            *map(missing, lost),
            *map(unlogged, sorted(small["unlogged"], key=itemgetter("broker", "line"))),
            *possible_deletions(
                _first(filter(_ends_groups, merged.of_all_groups)), context.deleted
            ),
        ],
        of_brokers=[*of_brokers(context, with_requests)],
        ended_ms=ends_of_brokers(merged.processes, lost),
        tells_bytes=context.grammar.tells_bytes,
        places=merged.places,
        elections=list(elections.doubts(context.epochs, context.stalls)),
        altered_history=tables.read.history.doubts(HISTORY),
        left_out=sum(of.wrong for group, of in digests.items() if wrong and group not in wrong),
    )
    kip_848 = [row["group"] for row in small["groups"] if row["kip_848"]]
    return Found(data, kip_848, drawn, rows)


def _first(rows: Iterable[Json]) -> list[Json]:
    """Return the first rows of lines in order of time, at most GAPS: by brokers and lines."""
    at = lambda row: float("-inf") if row["at_ms"] is None else row["at_ms"]
    first = sorted(rows, key=lambda row: (at(row), row["broker"], row["line"]))[:GAPS]
    return sorted(first, key=itemgetter("broker", "line"))


def _ends_groups(row: Row) -> bool:
    """Tell whether a line is about groups that were deleted, or about offsets."""
    if row["template"] in ENDS_OF_OFFSETS:
        return re.search(REMOVED_NONE, row["message"]) is None
    return row["template"] in ENDS_OF_GROUPS


def _witnesses(tap: Tap, digests: Iterable[Digest]) -> Mapping[str, int]:
    """Sum up what was compared of the tap's lines."""
    counts = Counter[str]()
    for digest in digests:
        counts.update(digest.witnesses)
    return {"tap_lines": tap.lines, **dict(sorted(counts.items()))}


def _rows_that_show(
    tables: Tables,
    digests: Mapping[str, Digest],
    shown: Sequence[str],
    drawn: Sequence[str],
    wrong: Collection[str] | None,
    partitions: int,
) -> Mapping[str, list[Json]]:
    """Read the rows of the groups that the page shows, and those that show a difference.

    `wrong` are the groups whose differences are read; None stands for all.
    """
    total = Counter[str]()
    for digest in digests.values():
        total.update(digest.rows)
    wanted: dict[str, Asked] = {
        "observed": Asked(shown),
        "comparison": Asked(shown, wrong),
        "expulsions": Asked(shown),
        "stops": Asked(shown),
        "handovers": Asked(shown),
        "ownership": Asked(shown, below=partitions),
        "joins": Asked(drawn),
        "heard": Asked(drawn),
        "violations": Asked(wrong),
        "breaches": Asked(wrong),
        "member_lines": Asked(wrong),
        "departures": Asked(wrong),
        "client_findings": Asked(shown),
    }
    asked = {name: one for name, one in wanted.items() if total[name]}
    with ThreadPoolExecutor() as threads:  # each may be a job of Spark's
        read = threads.map(lambda name: tables.rows(name, asked[name]), asked)
        return defaultdict(list, zip(asked, read, strict=True))


def _within_limit(digests: Mapping[str, Digest], drawn: Iterable[str]) -> set[str] | None:
    """Return the groups whose differences are read, at most FINDINGS or one group's; None for all.

    Those that are drawn come first. A group's differences are read together: which of them is the
    first is what matters.
    """
    left = FINDINGS
    if sum(digest.wrong for digest in digests.values()) <= left:
        return None
    read = set[str]()
    for group in dict.fromkeys([*drawn, *sorted(digests)]):
        count = digests[group].wrong
        if count and (count <= left or not read):
            read.add(group)
            left -= count
    return read


def _by_start(rows: Iterable[Json]) -> list[Json]:
    began = lambda row: float("-inf") if row["started_ms"] is None else row["started_ms"]
    return sorted(rows, key=lambda row: (row["group"], began(row)))
