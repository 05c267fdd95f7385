"""The findings about one group of a recorded or synthesized run.

They are those of `groupquake report`: the same functions judge the group, without Spark.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from groupquake.selftest.mutants.log_synthesis import LogSynthesis
from groupquake.selftest.mutants.synthesized_run import SynthesizedRun
from reference_coordinator.classic.step import Step
from reports.judgement import findings
from reports.judgement.doubtful import DOUBTFUL
from reports.judgement.findings import Finding
from reports.judgement.group import Judge
from reports.judgement.lateness.second_judgement import SecondJudgement, findings_of
from reports.judgement.missing.gaps import by_group
from reports.judgement.recording import Recording

__all__ = [
    "DOUBTFUL", "bound", "fails", "found", "missing_evidence", "proven", "second_judgement",
    "synthesized_run_of",
]  # fmt: skip
Tables = Mapping[str, list[dict[str, Any]]]
"""The rows of a group's tables (`reports.judgement.group`), by table."""


def found(recording: Recording, group: str) -> list[Finding]:
    """Return every difference between the observed and the expected events of a group."""
    return _differences(recording, group, _tables(recording.judge, recording, group))


def bound(recording: Recording, group: str) -> Mapping[str, int]:
    """Return what was bound from observation, by kind."""
    rows = _tables(recording.judge, recording, group)["bound"]
    return {row["name"]: row["count"] for row in rows if row["count"]}


def fails(recording: Recording, group: str) -> bool:
    """Return whether the evidence of a group makes the verdict `fail`, in both judgements."""
    first = _first_wrong(recording, group)
    roots = first or proven(found(recording, group))
    if not roots or _is_never_late(roots):
        return bool(roots)
    rows, wrong_ms = recording.rows_by_group[group], min(root.at_ms for root in roots)
    if second_judgement(recording, group).doubt(group, rows, wrong_ms) is None:
        return True
    return bool(first) and _is_never_late(proven(found(recording, group)))


def _is_never_late(roots: Iterable[Finding]) -> bool:
    """Whether there is one among them that lateness does not explain."""
    return not all(root.may_be_late for root in roots)


def second_judgement(recording: Recording, group: str) -> SecondJudgement:
    """Return what judges a group again, as a report does with one that is proven wrong."""
    groups = _tables(recording.judge, recording, group)["groups"]
    missing = missing_evidence(recording, groups)
    return SecondJudgement.of_run(
        recording.judge, recording.run, missing, recording.activity, recording.standstills
    )


def _first_wrong(recording: Recording, group: str) -> list[Finding]:
    """Return the first response that is proven wrong, if all differences before it are, too.

    What follows then need not be explained.
    """
    brief = _tables(replace(recording.judge, first_alone=True), recording, group)
    wrong = {(row["broker"], row["line"]) for row in brief["violations"]}
    for difference in _differences(recording, group, brief):
        if not difference.proven:
            break
        if (difference.broker, difference.line) in wrong:
            return [difference]
    return []


def _tables(judge: Judge, recording: Recording, group: str) -> Tables:
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    rows = recording.rows_by_group.get(group, ())
    for name, row in judge.tables(group, rows, recording.events_by_group.get(group, ())):
        tables[name].append({"group": group, **row})
    return tables


def _differences(recording: Recording, group: str, tables: Tables) -> list[Finding]:
    """List the differences in log order, without those that kills or gaps may explain."""
    rows = recording.rows_by_group.get(group, ())
    return findings_of(rows, tables, missing_evidence(recording, tables["groups"]))


def missing_evidence(
    recording: Recording, groups: Iterable[Mapping[str, Any]]
) -> findings.MissingEvidence:
    """Return what no log of a recording has; `groups` are rows of that table."""
    spans = {row["group"]: row for row in groups if row["requests"]}
    waits = {name: span["max_rebalance_timeout_ms"] or 0.0 for name, span in spans.items()}
    gaps = by_group(recording.gaps, spans)
    tells_bytes = recording.run.grammar.tells_bytes
    return findings.MissingEvidence(gaps, recording.run.kills, waits, tells_bytes)


def synthesized_run_of(coordinator: Step, recording: Recording, group: str) -> SynthesizedRun:
    """Replace the log of a group by the one that a coordinator would have written."""
    synthesized = LogSynthesis(recording, group, group, coordinator).run()
    return SynthesizedRun(recording.folder, recording, group, tuple(synthesized))


def proven(differences: Iterable[Finding]) -> list[Finding]:
    """Return the root findings that make the verdict `fail`."""
    return findings.proven_roots(differences)
