"""What is found of one group of a recorded run, told truly or otherwise.

It is what `groupquake report` finds: the same functions judge the group, without Spark.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from groupquake.selftest.mutants.log_synthesis import Storyteller
from groupquake.selftest.mutants.synthesized_run import Retold
from reference_coordinator.classic.step import Step
from reports.judgement import findings
from reports.judgement.findings import Finding
from reports.judgement.gaps import by_group
from reports.judgement.group import Judge
from reports.judgement.recording import Recording

Tables = Mapping[str, list[dict[str, Any]]]
"""The rows of a group's tables (`reports.judgement.group`), by table."""


def found(recording: Recording, group: str) -> list[Finding]:
    """Return every difference between what was observed of a group and what was due."""
    return _differences(recording, group, _tables(recording.judge, recording, group))


def fails(recording: Recording, group: str) -> bool:
    """Say whether what is told of a group makes a verdict `fail`.

    One answer that is proven wrong does if all differences before it are proven too, whatever comes
    after it: that need not be explained.
    """
    brief = _tables(replace(recording.judge, first_alone=True), recording, group)
    wrong = {(row["broker"], row["line"]) for row in brief["violations"]}
    for difference in _differences(recording, group, brief):
        if not difference.proven:
            break
        if (difference.broker, difference.line) in wrong:
            return True
    return bool(proven(found(recording, group)))


def _tables(judge: Judge, recording: Recording, group: str) -> Tables:
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, row in judge.tables(group, recording.rows_by_group.get(group, ())):
        tables[name].append({"group": group, **row})
    return tables


def _differences(recording: Recording, group: str, tables: Tables) -> list[Finding]:
    """List what the tables show, in the order of the log, less what kills and gaps may explain."""
    lines = [row for row in recording.rows_by_group.get(group, ()) if row["template"] is not None]
    before = lambda _, at_ms: [line for line in lines if line["at_ms"] <= at_ms]
    located = lambda name, due: [findings.located(row, due, before) for row in tables[name]]
    differences = findings.collect(
        tables["violations"],
        located("comparison", "expected_started_ms"),
        located("member_lines", "due_ms"),
        tells_bytes=recording.run.grammar.tells_bytes,
    )
    spans = {row["group"]: row for row in tables["groups"] if row["requests"]}
    waits = {name: span["max_rebalance_timeout_ms"] or 0.0 for name, span in spans.items()}
    differences = findings.unproven_since(differences, by_group(recording.gaps, spans))
    return findings.unproven_around_kills(differences, recording.run.kills, waits)


def told_by(coordinator: Step, recording: Recording, group: str) -> Retold:
    """Tell a group's story as a coordinator would have had it, asked what the brokers were."""
    story = Storyteller(recording, group, group, coordinator).tell()
    return Retold(recording.folder, recording, group, tuple(story))


def proven(differences: Iterable[Finding]) -> list[Finding]:
    """Return the roots that make a verdict `fail`."""
    return [finding for finding in differences if finding.root is None and finding.proven]
