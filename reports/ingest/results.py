"""Results: stored tables in; the few rows that the verdict and the page need, out."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from math import inf
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from pyspark.sql import functions as F

from reports.ingest.tables import Tables, among, rows_of
from reports.judgement import findings, verdict
from reports.judgement.broker_activity import possible_in
from reports.judgement.costs import Costs, Expulsion, Handover, Holding, Stop
from reports.judgement.gaps import ENDS_OF_GROUPS, missing, possible_deletion, unreadable
from reports.judgement.run_folder import RunFolder
from reports.judgement.second_judgement import SecondJudgement
from reports.judgement.verdict import GAPS, Results

AROUND_MS = 120_000.0
"""How long before and after what is wrong brokers are looked at."""
Json = dict[str, Any]
Row = Mapping[str, Any]
T = TypeVar("T")


def results(tables: Tables) -> Results:
    """Read the rows that the verdict needs."""
    bound: dict[str, dict[str, int]] = defaultdict(dict)
    for row in sorted(tables.rows("bound"), key=itemgetter("group", "name")):
        bound[row["group"]][row["name"]] = row["count"]
    groups = sorted(tables.rows("groups"), key=itemgetter("group"))
    with_requests = [
        row | {"brokers": row["brokers"].split(",")} for row in groups if row["requests"]
    ]
    unread = rows_of(tables.frame("coverage").where("status = 'rejected'").limit(GAPS))
    lost = sorted(tables.rows("lost"), key=itemgetter("broker", "line"))
    starts = Counter[str]()
    for process in tables.processes:
        starts[process["broker"]] += process["process"] > 0
    located = partial(findings.located, before=partial(_before, tables))
    return Results(
        observed=_by_start(tables.rows("observed")),
        expected=_by_start(tables.rows("expected")),
        comparison=[located(row, "expected_started_ms") for row in _in_time(tables)],
        member_lines=[located(row, "due_ms") for row in tables.rows("member_lines")],
        violations=tables.rows("violations"),
        broken_promises=_broken_promises(tables),
        departures=sorted(tables.rows("departures"), key=itemgetter("at_ms", "group")),
        bound=bound,
        checks={row["group"]: (row["requests"], row["explained"]) for row in with_requests},
        groups={row["group"]: row for row in with_requests},
        line_counts=tables.line_counts,
        starts=starts,
        partitions={row["group"]: row["partitions"] for row in groups},
        assigned=tables.rows("assigned"),
        gaps=[
            *map(unreadable, sorted(unread, key=itemgetter("broker", "line"))),
            *map(missing, lost[:GAPS]),
            *map(
                possible_deletion,
                tables.rows("transitions", among("template", ENDS_OF_GROUPS)),
            ),
        ],
        standstills=tables.standstills,
        tells_bytes=tables.judge.grammar.tells_bytes,
    )


def late_alone(
    tables: Tables, run: RunFolder, data: Results, wrong: Mapping[str, Sequence[float]]
) -> dict[str, str]:
    """Say, by group, why all that is wrong with it may be lateness that nothing disproves.

    `wrong` tells when something is wrong with groups, ms. Others are left out.
    """
    if not wrong:
        return {}
    every = [at_ms for times in wrong.values() for at_ms in times]
    requests, lines = tables.activity(min(every) - AROUND_MS, max(every) + AROUND_MS)
    second = SecondJudgement(
        tables.judge,
        verdict.missing_evidence(run, data),
        possible_in(requests, lines, run.brokers, run.busy),
        run.busy,
        tables.standstills,
    )
    doubts = {
        group: second.doubt(group, tables.rows_of_group(group), min(times))
        for group, times in wrong.items()
    }
    return {group: doubt for group, doubt in doubts.items() if doubt is not None}


def _broken_promises(tables: Tables) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in tables.rows("broken"):
        found[row["group"]].append(row["promise"])
    return {group: sorted(names) for group, names in sorted(found.items())}


def _by_start(rows: Iterable[Json]) -> list[Json]:
    began = lambda row: float("-inf") if row["started_ms"] is None else row["started_ms"]
    return sorted(rows, key=lambda row: (row["group"], began(row)))


def _in_time(tables: Tables) -> list[Json]:
    """Return the comparison in a fixed order: stored rows are read in any order."""
    return sorted(tables.rows("comparison"), key=lambda row: (row["group"], findings.began_ms(row)))


def _before(tables: Tables, group: str, at_ms: float) -> list[Json]:
    return tables.rows("transitions", f"{among('group', [group])} AND at_ms <= {at_ms!r}D")


def kip_848_groups(tables: Tables) -> list[str]:
    """List the groups that use the KIP-848 protocol."""
    return sorted(row["group"] for row in tables.rows("groups", "kip_848"))


def costs(tables: Tables, groups: Sequence[str], partitions: int) -> Costs:
    """Read the costs; of holdings those of `groups` in the first `partitions` of each topic.

    Holdings that overlap with an earlier owner's are read for every group and partition.
    """
    owned = tables.frame("ownership")
    handovers = owned.groupBy("group", "from_ms").agg(
        F.sum(F.col("moved").cast("long")).alias("moved"), F.sum("unowned_ms").alias("unowned_ms")
    )
    held = tables.rows("ownership", f"{among('group', groups)} OR overlap_ms > 0")
    holdings = [r for r in held if r["overlap_ms"] > 0 or _number(r["partition"]) < partitions]
    return Costs(
        stops=_of(Stop, tables.stops, "from_ms", "group", "member"),
        handovers=sorted(
            (
                Handover(r["group"], r["from_ms"], r["moved"], round(r["unowned_ms"], 1))
                for r in rows_of(handovers)
            ),
            key=attrgetter("at_ms", "group"),
        ),
        holdings=_of(Holding, holdings, "from_ms", "group", "member", "partition"),
        expulsions=_of(
            Expulsion, tables.rows("expulsions"), "at_ms", "group", "subject", "api"
        ),
    )  # fmt: skip


def _number(partition: str) -> float:
    """Return the number of a partition that is named `topic-number`; without one, infinity."""
    number = partition.rpartition("-")[2]
    return int(number) if number.isdecimal() else inf


def _of(kind: type[T], rows: Iterable[Row], *order: str) -> list[T]:
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return sorted((kind(*map(row.get, names)) for row in rows), key=attrgetter(*order))
