"""Results: stored tables in; the few rows that the verdict and the page need, out."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from reports.ingest.tables import ALWAYS_KEPT, Asked, Tables
from reports.judgement.digest import Digest
from reports.judgement.results import Results, gathered
from reports.judgement.run.run_folder import HISTORY

FINDINGS = 10_000  # how many rows that show a difference are read; see `_within_limit`
Json = dict[str, Any]
Choose = Callable[[Mapping[str, Digest]], Sequence[str]]
"""Chooses groups by what is counted of them."""


class Found(NamedTuple):
    """What verdict and page need: few rows, however many groups and rebalances there are.

    `drawn` are the groups to draw, `rows` those of tables that the page shows.
    """

    data: Results
    drawn: Sequence[str]
    rows: Mapping[str, list[Json]]


def results(tables: Tables, planned: Sequence[str], choose: Choose, partitions: int) -> Found:
    """Read what the verdict and the page need: first of all groups, then of those that show.

    The page shows the groups that `choose` chooses to be drawn, and the `planned` ones; owners of
    the first `partitions` of each topic.
    """
    digests = {
        row["group"]: Digest.from_json(row["digest"]) for row in tables.kept.get("digests", ())
    }
    drawn = choose(digests)
    wrong = _within_limit(digests, drawn)
    shown = list(dict.fromkeys([*planned, *drawn]))
    wanted: dict[str, Asked] = {
        **dict.fromkeys(("observed", "expulsions", "stops", "handovers"), Asked(shown)),
        "client_findings": Asked(shown),
        "comparison": Asked(shown, wrong),
        "ownership": Asked(shown, below=partitions),
        **dict.fromkeys(("joins", "heard"), Asked(drawn)),
        **dict.fromkeys(("violations", "breaches", "member_lines", "departures"), Asked(wrong)),
    }
    total = sum((digest.rows for digest in digests.values()), Counter[str]())
    asked = {name: one for name, one in wanted.items() if total[name]}
    with ThreadPoolExecutor() as threads:  # each may be a job of Spark's
        read = threads.map(lambda name: tables.rows(name, asked[name]), asked)
        rows = defaultdict[str, list[Json]](list, zip(asked, read, strict=True))
    few = {name: tables.kept.get(name, []) for name in ALWAYS_KEPT}
    left_out = sum(of.wrong for group, of in digests.items() if wrong and group not in wrong)
    altered = tables.read.history.doubts(HISTORY)
    data = gathered({**few, **rows}, tables.merged, tables.context, altered, left_out)
    return Found(data, drawn, rows)


def _within_limit(digests: Mapping[str, Digest], drawn: Iterable[str]) -> Collection[str] | None:
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
