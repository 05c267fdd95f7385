"""What is found in one group of a recorded or altered run, and what contradicts an oracle.

The findings are those of `groupquake report`: the same functions judge the group, without Spark.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from groupquake.fuzz.judge import Verdict, replayed, verdict_of
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.releases import profile_for
from reference_coordinator.classic.step import Step, step
from reference_coordinator.event_files.reading import EventSequence
from reference_coordinator.replay import Tolerance, replay
from reports.judgement.collector import collector_paused
from reports.judgement.disturbances import Disturbances, of_brokers
from reports.judgement.doubtful import DOUBTFUL
from reports.judgement.findings import Finding, of_group, proven_roots
from reports.judgement.group import check_rows
from reports.judgement.missing.gaps import unlogged
from reports.judgement.recording import Recording
from reports.judgement.results import Results
from reports.judgement.run_context import RunContext
from selftest.mutants.log_synthesis import LogSynthesis
from selftest.mutants.synthesized_run import SynthesizedRun

Tables = Mapping[str, list[dict[str, Any]]]
"""The rows of a group's tables (`reports.judgement.group`), by table."""
BRIEFLY = Tolerance(search=100)
"""The search limit for a mutant: a sequence counts only if a short search shows the difference."""


def fails(recording: Recording, group: str) -> bool:
    """Tell whether the verdict on a group is `fail`: something in it is proven wrong."""
    with collector_paused():
        return bool(_first_wrong(recording, group) or proven_roots(found(recording, group)))


def doubts(recording: Recording, group: str) -> Counter[str]:
    """Count what makes the verdict on a group `unknown`, by kind.

    Findings that are not proven count, and what was bound from observation that is doubtful.
    """
    with collector_paused():
        tables = _all_tables(recording, group)
        differences = _differences(recording, tables)
    bound_kinds = {row["name"]: row["count"] for row in tables["bound"] if row["name"] in DOUBTFUL}
    return Counter(one.kind for one in differences if one.root is None) + Counter(bound_kinds)


def found(recording: Recording, group: str) -> list[Finding]:
    """Return every difference between the observed and the expected events of a group."""
    return _differences(recording, _all_tables(recording, group))


def bound(recording: Recording, group: str) -> Mapping[str, int]:
    """Return what was bound from observation, by kind."""
    rows = _all_tables(recording, group)["bound"]
    return {row["name"]: row["count"] for row in rows if row["count"]}


def _first_wrong(recording: Recording, group: str) -> list[Finding]:
    """Return the first response that is proven wrong, if all differences before it are, too.

    What follows then need not be explained.
    """
    brief = _tables(replace(recording.context, first_alone=True), recording, group)
    wrong = {(row["broker"], row["line"]) for row in brief["violations"]}
    for difference in _differences(recording, brief):
        if not difference.proven:
            break
        if (difference.broker, difference.line) in wrong:
            return [difference]
    return []


@lru_cache(maxsize=8)
def _all_tables(recording: Recording, group: str) -> Tables:
    """Return the tables of a group; the last ones are kept for the next question about it."""
    return _tables(recording.context, recording, group)


def _tables(context: RunContext, recording: Recording, group: str) -> Tables:
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    rows = recording.rows_by_group.get(group, ())
    for name, row in check_rows(context, group, rows, recording.events_by_group.get(group, ())):
        tables[name].append({"group": group, **row})
    return tables


def _differences(recording: Recording, tables: Tables) -> list[Finding]:
    """List the differences in log order, each beside the disturbances of the run."""
    return disturbances_of(recording, tables).judged(of_group(tables))


def disturbances_of(recording: Recording, tables: Tables) -> Disturbances:
    """Return what may explain differences of a group with these tables."""
    groups = {row["group"]: row for row in tables.get("groups", ()) if row["requests"]}
    data = Results(
        gaps=[*recording.gaps, *map(unlogged, tables.get("unlogged", ()))],
        of_brokers=[*of_brokers(recording.context, groups)],
        groups={name: row | {"brokers": row["brokers"].split(",")} for name, row in groups.items()},
        comparison=tables.get("comparison", ()),
        tells_bytes=recording.run.grammar.tells_bytes,
    )
    return Disturbances.of_run(recording.run, data)


def synthesized_run_of(coordinator: Step, recording: Recording, group: str) -> SynthesizedRun:
    """Replace the log of a group by the one that a coordinator would have written."""
    synthesized = LogSynthesis(recording, group, group, coordinator).run()
    return SynthesizedRun(recording.folder, recording, group, tuple(synthesized))


def explains(
    sequence: EventSequence, coordinator: Step = step, tolerance: Tolerance | None = None
) -> Verdict:
    """Replay a sequence by a coordinator under the rules of the release; return the verdict."""
    rules = profile_for(sequence.kafka, sequence.coordinator)
    assert rules is not None, f"no rules for Kafka {sequence.kafka}, {sequence.coordinator}"
    return verdict_of(replayed(sequence, rules, tolerance, coordinator))


def contradicts(recording: Recording, group: str, coordinator: Step) -> bool:
    """Tell whether a coordinator as the oracle cannot explain the unaltered evidence of a group."""
    evidence = recording.evidence_with_faults(group)
    protocol = replace(CLASSIC, step=coordinator)
    with collector_paused():
        return replay(evidence, recording.profile, first_alone=True, protocol=protocol).proven
