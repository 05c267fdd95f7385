"""A run folder judged in this process, without Spark: the same functions, joined by Python."""

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

from reference_coordinator.classic.releases import promised_by
from reports.judgement import verdict
from reports.judgement.coordinators import elections
from reports.judgement.digest import Digest, Digester
from reports.judgement.disturbances import of_brokers
from reports.judgement.group import check_rows
from reports.judgement.log.split_rows import STATUSES, ends_of_brokers
from reports.judgement.missing.gaps import (
    ENDS_OF_GROUPS,
    ENDS_OF_OFFSETS,
    REMOVED_NONE,
    possible_deletions,
    unlogged,
)
from reports.judgement.recording import Recording
from reports.judgement.run.run_folder import HISTORY
from reports.judgement.verdict import Results

Json = dict[str, Any]


def judged_here(folder: Path) -> Json:
    """Return the verdict on a run folder. Raises EvidenceError as an analysis does."""
    recording = Recording(folder)
    run = recording.run
    run.require_regular()
    data, kip_848 = _results(recording)
    profile = recording.profile.name
    return verdict.evaluate(run, data, kip_848, profile)


def _results(recording: Recording) -> tuple[Results, list[str]]:
    run, rules = recording.run, recording.profile
    promised = promised_by(rules)
    judge = replace(
        recording.context,
        profile=promised if run.experiment.judge == "kip-345" else rules,
        promised=promised,
        rules=rules,
        digester=Digester.of(run),
    )
    rows: dict[str, list[Json]] = defaultdict(list)
    for group in sorted({*recording.rows_by_group, *recording.events_by_group}):
        of_group = recording.rows_by_group.get(group, ())
        for name, row in check_rows(
            judge, group, of_group, recording.events_by_group.get(group, ())
        ):
            rows[name].append({"group": group, **row})
    groups = {
        row["group"]: row | {"brokers": row["brokers"].split(",")}
        for row in rows["groups"]
        if row["requests"]
    }
    processes = recording.logs.merged.processes
    ends = (
        line.row
        for line in recording.lines
        if line.template in ENDS_OF_GROUPS
        or (line.template in ENDS_OF_OFFSETS and REMOVED_NONE not in line.row["message"])
    )
    starts = Counter[str]()
    for one in processes:
        starts[one["broker"]] += one["process"] > 0
    bound: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows["bound"]:
        bound[row["group"]][row["name"]] = row["count"]
    broken: dict[str, list[str]] = defaultdict(list)
    for row in rows["broken"]:
        broken[row["group"]].append(row["promise"])
    gaps = recording.all_gaps
    last = {one["broker"]: one["process"] for one in processes}
    lost = [{"broker": gap.broker, "process": last[gap.broker], "what": gap.cause} for gap in gaps]
    data = Results(
        digests={row["group"]: Digest.from_json(row["digest"]) for row in rows["digests"]},
        observed=rows["observed"],
        comparison=rows["comparison"],
        member_lines=rows["member_lines"],
        violations=rows["violations"],
        departures=rows["departures"],
        broken_promises=broken,
        bound=bound,
        checks={name: (row["requests"], row["explained"]) for name, row in groups.items()},
        groups=groups,
        line_counts={name: sum(one.get(name, 0) for one in processes) for name in STATUSES},
        starts=starts,
        partitions={row["group"]: row["partitions"] for row in rows["groups"]},
        gaps=[*gaps, *map(unlogged, rows["unlogged"]), *possible_deletions(ends, run.deleted)],
        of_brokers=[*of_brokers(judge, groups)],
        ended_ms=ends_of_brokers(processes, lost),
        tells_bytes=run.grammar.tells_bytes,
        breaches=rows["breaches"],
        client_findings=rows["client_findings"],
        elections=list(elections.doubts(judge.epochs, judge.stalls)),
        altered_history=recording.history.doubts(HISTORY),
    )
    return data, [row["group"] for row in rows["groups"] if row["kip_848"]]
