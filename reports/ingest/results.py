"""Results: stored tables in; the few rows that the verdict and the page need, out."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

from reports.ingest.tables import Asked, Tables
from reports.judgement import findings
from reports.judgement.coordinators import elections
from reports.judgement.costs import Costs
from reports.judgement.digest import Digest
from reports.judgement.disturbances import of_brokers
from reports.judgement.log.processes import ends_of_brokers, line_counts
from reports.judgement.missing.gaps import missing, possible_deletions, unlogged, unreadable
from reports.judgement.run.run_folder import HISTORY
from reports.judgement.verdict import Results
from reports.judgement.witnesses import Tap

FINDINGS = 10_000
"""How many rows that show a difference are read; see `_within_limit`."""
Json = dict[str, Any]
Row = Mapping[str, Any]
T = TypeVar("T")
Choose = Callable[[Mapping[str, Digest]], Sequence[str]]
"""Chooses groups by what is counted of them."""


@dataclass(frozen=True)
class Found:
    """What verdict and page need: few rows, however many groups and rebalances there are."""

    data: Results
    kip_848: list[str]
    """The groups that use the KIP-848 protocol."""
    drawn: Sequence[str]
    """The groups to draw."""
    joins: list[Json]
    """The rows of the table `joins` about them."""
    heard: list[Json]
    """The rows of the table `heard` about them."""
    costs: Costs


def results(tables: Tables, planned: Sequence[str], choose: Choose, partitions: int) -> Found:
    """Read what the verdict and the page need: first of all groups, then of those that show.

    The page shows the groups that `choose` chooses to be drawn, and the `planned` ones; owners of
    the first `partitions` of each topic.
    """
    small = defaultdict[str, list[Json]](list, tables.kept)
    digests = {row["group"]: Digest.from_json(row["digest"]) for row in small["digests"]}
    bound: dict[str, dict[str, int]] = defaultdict(dict)
    for row in sorted(small["bound"], key=itemgetter("group", "name")):
        bound[row["group"]][row["name"]] = row["count"]
    groups = sorted(small["groups"], key=itemgetter("group"))
    with_requests = [
        row | {"brokers": row["brokers"].split(",")} for row in groups if row["requests"]
    ]
    drawn = choose(digests)
    wrong = _within_limit(digests, drawn)
    shown = list(dict.fromkeys([*planned, *drawn]))
    rows = _rows_that_show(tables, digests, shown, drawn, wrong, partitions)
    starts = Counter[str]()
    for process in tables.merged.processes:
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
        broken_promises=_broken_promises(small["broken"]),
        departures=sorted(rows["departures"], key=itemgetter("at_ms", "group")),
        client_findings=sorted(rows["client_findings"], key=itemgetter("at_ms", "client_id")),
        bound=bound,
        checks={row["group"]: (row["requests"], row["explained"]) for row in with_requests},
        groups={row["group"]: row for row in with_requests},
        line_counts=line_counts(tables.merged.processes),
        starts=starts,
        partitions={row["group"]: row["partitions"] for row in groups},
        gaps=[
            *map(unreadable, tables.rejected),
            *map(missing, tables.lost),
            *map(unlogged, sorted(small["unlogged"], key=itemgetter("broker", "line"))),
            *possible_deletions(tables.ends_of_groups, context.deleted),
        ],
        of_brokers=[*of_brokers(context, (row["group"] for row in with_requests))],
        ended_ms=ends_of_brokers(tables.merged.processes, tables.lost),
        tells_bytes=context.grammar.tells_bytes,
        places=tables.merged.places,
        elections=list(elections.doubts(context.epochs, context.stalls)),
        altered_history=tables.history.doubts(HISTORY),
        left_out=sum(of.wrong for group, of in digests.items() if wrong and group not in wrong),
    )
    return Found(
        data,
        [row["group"] for row in groups if row["kip_848"]],
        drawn,
        rows["joins"],
        rows["heard"],
        Costs.of_rows(rows),
    )


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


def _broken_promises(rows: Iterable[Row]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[row["group"]].append(row["promise"])
    return {group: sorted(names) for group, names in sorted(found.items())}


def _by_start(rows: Iterable[Json]) -> list[Json]:
    began = lambda row: float("-inf") if row["started_ms"] is None else row["started_ms"]
    return sorted(rows, key=lambda row: (row["group"], began(row)))
