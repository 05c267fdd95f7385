"""From a run's evidence to its tables, verdict and page, for a fresh run and a stored one alike."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import NEWEST, promised_by
from reports.ingest import places, tables, uris
from reports.ingest.failures import explained
from reports.judgement import costs, counterexample, verdict
from reports.judgement.explained import explain
from reports.judgement.explained.course import Arrow
from reports.judgement.judging import Rules
from reports.judgement.run import forecast
from reports.judgement.run.run_folder import RunFolder
from reports.page import junit, report
from reports.page.cost_charts import PARTITIONS
from reports.page.drawn_groups import GROUPS_DRAWN, chosen

Progress = Callable[[str], None]
Json = dict[str, Any]
FILES = ("verdict.json", "junit.xml", "report.html", *counterexample.FILES)
"""The files that an analysis writes beside its tables."""


def analyse(
    spark: SparkSession,
    evidence: str | Path,
    output: str | Path | None = None,
    *,
    progress: Progress = lambda _: None,
) -> Json:
    """Compute tables, verdict and page of a run in a session, store them, return the verdict.

    See `reports.analyse`.
    """
    source = uris.uri_of(evidence)
    target = source if output is None else uris.uri_of(output)
    if target != source:
        with explained(target):
            places.refuse_results(spark, target, ("tables", *FILES))
    with explained(source), places.run_folder(spark, source) as run:
        require_readable(run, target)
        rules, profile, named = _rules(run)
        uris.remove(target, ("tables", *FILES))  # all is made again
        planned = [group.name for group in run.experiment.workload.groups][:GROUPS_DRAWN]
        of_run = Rules(profile, promised_by(rules), rules)
        computed = tables.build(spark, run, source, target, of_run, progress)
        progress("judging")
        data, drawn, rows = tables.results(computed, planned, chosen, PARTITIONS)
        judged = verdict.evaluate(run, data, named)
        texts, smallest = dict[str, str](), dict[str, Sequence[Arrow]]()
        group = counterexample.group_of(judged, data.violations)
        shown = {*explain.groups_of(judged), *([] if group is None else [group])}
        replayed = {name: computed.evidence(name) for name in sorted(shown)}
        if group is not None:
            progress(f"reducing the evidence of {group} to its first wrong response")
            if shortest := counterexample.reduced(run, replayed[group], profile, data.places):
                judged["counterexample"], texts, smallest[group] = shortest
        requests = {group: one.requests for group, one in replayed.items()}
        explain.add(judged, run, requests, smallest, data.places)
        costs.add(judged, costs.hub_gaps(computed.read.late_ms), data.digests)
        if run.foreseen is not None and run.completed and not (run.stopped or run.by_hand):
            judged["forecast"] = [*forecast.beside(run.foreseen, judged["groups"])]
        progress("drawing the report")
        texts |= {
            "verdict.json": verdict.to_json(judged),
            "junit.xml": junit.render(judged),
            "report.html": report.render(run, judged, data, drawn, rows, texts),
        }
        places.write_texts(spark, target, texts)
    return judged


def _rules(run: RunFolder) -> tuple[Profile, Profile, str | None]:
    """Return the release's rules, those the run is judged by, and their name if they are known."""
    known = run.profile
    rules = (known or NEWEST).with_settings(run.settings)
    profile = promised_by(rules) if run.experiment.judge == "kip-345" else rules
    return rules, profile, profile.name if known else None


def require_readable(run: RunFolder, target: str) -> None:
    """Raise EvidenceError where a file of a run cannot be read, or was altered.

    Nothing of an earlier analysis is left then at the URI `target`.
    """
    if run.is_there:
        uris.remove(target, FILES)
    run.require_regular()
    _ = (run.environment, run.settings, run.experiment, run.faults, run.never_began, run.grammar)
    _ = run.foreseen
