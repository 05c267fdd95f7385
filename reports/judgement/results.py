"""Results: rows of tables and what was read of logs in; what verdict and page need of them, out."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from reports.judgement.buckets import GAPS
from reports.judgement.coordinators import elections
from reports.judgement.digest import Digest
from reports.judgement.disturbances import of_brokers
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.log.merging import Merged
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
from reports.judgement.rows import Json
from reports.judgement.run.commit_errors import CommitError
from reports.judgement.run.disturbance import Disturbance
from reports.judgement.run_context import RunContext
from reports.judgement.timelines.compare import began_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What verdict and page need of the tables: digests of all groups, rows of few."""

    digests: Mapping[str, Digest] = field(default_factory=dict)
    groups: dict[str, Json] = field(default_factory=dict)
    """The rows of the table `groups`, by group with requests; `brokers` is a list."""
    bound: dict[str, dict[str, int]] = field(default_factory=dict)
    broken_promises: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The promises of KIP-345 that are broken, by group."""
    partitions: dict[str, int] = field(default_factory=dict)
    """How many partitions of `__consumer_offsets` the lines of each group name."""
    kip_848: Sequence[str] = ()  # the groups that use the KIP-848 protocol
    observed: Sequence[Json] = ()
    """The observed rebalances of the groups that the page shows, in order of time."""
    comparison: Sequence[Json] = ()
    """The comparison of the groups that the page shows, and every row that is no match."""
    member_lines: Sequence[Json] = ()
    violations: Sequence[Json] = ()
    breaches: Sequence[Json] = ()
    departures: Sequence[Json] = ()
    client_findings: Sequence[Json] = ()
    left_out: int = 0
    """How many differences, all of groups without any that is read, were not read."""
    line_counts: Mapping[str, int] = field(default_factory=dict)
    starts: Mapping[str, int] = field(default_factory=dict)
    """How many starts of each broker its log shows; only brokers that have a log."""
    ended_ms: Mapping[str, float] = field(default_factory=dict)
    """When the brokers (ids) whose logs are whole wrote their last lines."""
    places: LogPlaces = field(default_factory=LogPlaces)
    gaps: Sequence[Disturbance] = ()
    of_brokers: Sequence[Disturbance] = ()
    """When brokers stood still, by no fault of the journal, and elections without a fault."""
    elections: Sequence[str] = ()
    """Loads of offsets partitions that no log bears out, in words."""
    tells_bytes: bool = True
    """Whether requests are logged with the bytes of metadata and assignments, not just lengths."""
    witnesses: Mapping[str, int] | None = None
    """What was compared of brokers' logs and the tap's, where there are both, by kind."""
    altered_history: Sequence[str] = ()
    """What of the client history is not understood, in words."""
    coordinators: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    """Which broker coordinated each group, from when until when (None: not known), in order."""
    commit_errors: Mapping[str, Mapping[str, CommitError]] = field(default_factory=dict)
    """The commits that failed, as members say."""


def gathered(
    tables: Mapping[str, Sequence[Json]],
    merged: Merged,
    context: RunContext,
    altered_history: Sequence[str] = (),
    left_out: int = 0,
    failed: Mapping[str, Mapping[str, CommitError]] = {},
) -> Results:
    """Gather results from rows of tables, and from what all splits of the logs tell."""
    rows = defaultdict[str, Sequence[Json]](list, tables)
    bound: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows["bound"]:
        bound[row["group"]][row["name"]] = row["count"]
    broken: dict[str, list[str]] = defaultdict(list)
    for row in rows["broken"]:
        broken[row["group"]].append(row["promise"])
    groups = {
        row["group"]: row | {"brokers": row["brokers"].split(",")}
        for row in rows["groups"]
        if row["requests"]
    }
    starts = Counter[str]()
    for process in merged.processes:
        starts[process["broker"]] += process["process"] > 0
    digests = {row["group"]: Digest.from_json(row["digest"]) for row in rows["digests"]}
    ends_of_groups = first(row for row in merged.of_all_groups if _ends_groups(row))
    lost = first(rows["lost"])
    return Results(
        digests=digests,
        groups=groups,
        bound=bound,
        broken_promises=broken,
        partitions={row["group"]: row["partitions"] for row in rows["groups"]},
        kip_848=[row["group"] for row in rows["groups"] if row["kip_848"]],
        observed=sorted(rows["observed"], key=lambda row: (row["group"], row["started_ms"] or 0.0)),
        comparison=sorted(rows["comparison"], key=lambda row: (row["group"], began_ms(row))),
        member_lines=rows["member_lines"],
        violations=rows["violations"],
        breaches=rows["breaches"],
        departures=sorted(rows["departures"], key=itemgetter("at_ms", "group")),
        client_findings=sorted(rows["client_findings"], key=itemgetter("at_ms", "client_id")),
        left_out=left_out,
        line_counts=line_counts(merged.processes),
        starts=starts,
        ended_ms=ends_of_brokers(merged.processes, lost),
        places=merged.places,
        gaps=[
            *map(unreadable, first(rows["rejected"])),
            *map(missing, lost),
            *map(unlogged, sorted(rows["unlogged"], key=itemgetter("broker", "line"))),
            *possible_deletions(ends_of_groups, context.deleted),
        ],
        of_brokers=[*of_brokers(context, groups)],
        elections=list(elections.doubts(context.epochs, context.stalls)),
        tells_bytes=context.grammar.tells_bytes,
        witnesses=None if context.tap is None else _witnesses(context.tap.lines, digests.values()),
        altered_history=altered_history,
        coordinators={name: _coordinators(context, row) for name, row in groups.items()},
        commit_errors=failed,
    )


def first(rows: Iterable[Json]) -> list[Json]:
    """Return the first rows of lines in order of time, at most GAPS: by brokers and lines."""
    place = itemgetter("broker", "line")
    at_ms = lambda row: float("-inf") if row["at_ms"] is None else row["at_ms"]
    return sorted(sorted(rows, key=lambda row: (at_ms(row), *place(row)))[:GAPS], key=place)


def _coordinators(context: RunContext, row: Json) -> list[Json]:
    """List who had loaded a group, by the brokers' lines; without such a line, who answered it."""
    first_ms = row["first_ms"] if len(row["brokers"]) == 1 else None
    return context.epochs.coordinated(row["group"]) or [
        {"broker": broker, "since_ms": first_ms, "until_ms": None} for broker in row["brokers"]
    ]


def _ends_groups(row: Json) -> bool:
    """Tell whether a line is about groups that were deleted, or about offsets."""
    if row["template"] in ENDS_OF_OFFSETS:
        return re.search(REMOVED_NONE, row["message"]) is None
    return row["template"] in ENDS_OF_GROUPS


def _witnesses(tap_lines: int, digests: Iterable[Digest]) -> Mapping[str, int]:
    """Sum up what was compared of the tap's lines."""
    counts = Counter[str]()
    for digest in digests:
        counts.update(digest.witnesses)
    return {"tap_lines": tap_lines, **dict(sorted(counts.items()))}
