"""A run folder judged in this process, without Spark: the same functions, joined by Python."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

from reference_coordinator.classic.releases import promised_by
from reports.judgement import verdict
from reports.judgement.digest import Digester
from reports.judgement.explained import explain
from reports.judgement.group import check_rows
from reports.judgement.recording import Recording
from reports.judgement.results import gathered
from reports.judgement.run.run_folder import HISTORY

Json = dict[str, Any]


def judged_here(folder: Path) -> Json:
    """Return the verdict on a run folder. Raises EvidenceError as an analysis does."""
    recording = Recording(folder)
    run, rules = recording.run, recording.profile
    run.require_regular()
    promised = promised_by(rules)
    context = replace(
        recording.context,
        profile=promised if run.experiment.judge == "kip-345" else rules,
        promised=promised,
        rules=rules,
        digester=Digester.of(run),
    )
    tables = defaultdict[str, list[Json]](list)
    for group in sorted({*recording.rows_by_group, *recording.events_by_group}):
        of_group, events = recording.rows_by_group.get(group, ()), recording.events_by_group
        for name, row in check_rows(context, group, of_group, events.get(group, ())):
            tables[name].append({"group": group, **row})
    coverage = recording.tables["coverage"]
    tables["rejected"] = [dict(row) for row in coverage if row["status"] == "rejected"]
    tables["lost"] = [dict(row) for row in recording.tables["lost"]]
    altered = recording.history.doubts(HISTORY)
    data = gathered(tables, recording.logs.merged, context, altered)
    judged = verdict.evaluate(run, data, recording.profile.name)
    requests = {of: recording.evidence(of).requests for of in explain.groups_of(judged)}
    explain.add(judged, run, requests, {}, data.places)
    return judged
