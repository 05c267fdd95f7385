"""From a run folder to its verdict and report, for a fresh run and a stored one alike."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.releases import NEWEST, promised_by
from reports.ingest import results, tables
from reports.ingest.capture import capture
from reports.ingest.spark import session
from reports.judgement import costs, counterexample, verdict
from reports.judgement.broker_log import Clocks
from reports.judgement.run_folder import RunFolder
from reports.page import drawn_groups, junit, report
from reports.page.cost_charts import PARTITIONS
from reports.page.drawn_groups import GROUPS_DRAWN


def analyse(
    folder: Path, progress: Callable[[str], None], master: str = "local[*]"
) -> dict[str, Any]:
    """Compute tables, verdict and report of a run folder, write them into it, return the verdict.

    Raises EvidenceError where the folder is not the folder of a run, or was altered.
    """
    run = RunFolder(folder)
    environment = run.environment
    known = CLASSIC.profile_for(environment["kafka_version"], environment["coordinator"])
    rules = (known or NEWEST).with_settings(run.settings)
    promised = promised_by(rules)
    profile = promised if run.experiment.judge == "kip-345" else rules
    _ = (
        run.experiment,
        run.faults,
        run.never_began,
        run.grammar,
    )  # what cannot be read is an error before Spark starts
    for made in ("verdict.json", "junit.xml", "report.html", *counterexample.FILES):
        (folder / made).unlink(missing_ok=True)  # the tables they describe are computed again
    clocks = Clocks(tables.parser_of(run))
    captured = capture(folder, folder / tables.LINES, clocks.look)
    progress(f"starting Spark for {captured.lines} log lines")
    with session(master, captured.lines, folder / "spark.log") as spark:
        computed = tables.build(spark, run, captured, clocks, profile, promised, rules, progress)
        progress("judging")
        data = results.results(computed)
        kip_848 = results.kip_848_groups(computed)
        named = profile.name if known else None
        judged = verdict.judge(run, data, kip_848, named)
        if wrong := verdict.proven_wrong(judged):
            progress("looking whether lateness alone explains what is wrong")
            data = replace(data, late_alone=results.late_alone(computed, run, data, wrong))
            judged = verdict.judge(run, data, kip_848, named)
        if (group := counterexample.group_of(judged, data.violations)) is not None:
            progress(f"reducing the evidence of {group} to its first wrong response")
            judged["counterexample"] = counterexample.write(run, computed.evidence(group), profile)
        groups = [group.name for group in run.experiment.workload.groups][:GROUPS_DRAWN]
        cost = results.costs(computed, groups, PARTITIONS)
        costs.add(judged, cost, run, data.observed)
        drawn = drawn_groups.collect(data.comparison, computed.rows_of)
    (folder / "verdict.json").write_text(verdict.to_json(judged), encoding="utf-8")
    (folder / "junit.xml").write_text(junit.render(judged), encoding="utf-8")
    progress("drawing the report")
    page = report.render(run, judged, data, drawn, cost)
    (folder / "report.html").write_text(page, encoding="utf-8")
    return judged
