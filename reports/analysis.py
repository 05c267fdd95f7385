"""From a run folder to its verdict and report: the one way, for a fresh run and a stored one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reference_coordinator.profiles import kafka_4_3, profile_for
from reports import junit, page, tables, verdict
from reports.capture import capture
from reports.run_folder import RunFolder
from reports.spark import session


def analyse(
    folder: Path, progress: Callable[[str], None], master: str = "local[*]"
) -> dict[str, Any]:
    """Compute tables, verdict and report of a run folder, write them into it, return the verdict.

    Raises EvidenceError where the folder is not that of a run.
    """
    run = RunFolder(folder)
    environment = run.environment
    known = profile_for(environment["kafka_version"])
    profile = (known or kafka_4_3()).with_settings(run.settings)
    _ = run.experiment, run.faults, run.never_began  # unreadable parts are told before Spark starts
    for made in ("verdict.json", "junit.xml", "report.html"):
        (folder / made).unlink(missing_ok=True)  # the tables they speak of are made anew
    lines = capture(folder, folder / tables.LINES)
    progress(f"starting Spark for {lines} log lines")
    with session(master, lines, folder / "spark.log") as spark:
        computed = tables.build(spark, folder, profile, progress)
        progress("judging")
        data = verdict.collect(computed)
        judged = verdict.judge(
            run, data, verdict.kip_848_groups(computed), known.name if known else None
        )
        scenes = page.collect(computed)
    (folder / "verdict.json").write_text(verdict.to_json(judged), encoding="utf-8")
    (folder / "junit.xml").write_text(junit.render(judged), encoding="utf-8")
    progress("drawing the report")
    (folder / "report.html").write_text(page.render(run, judged, data, scenes), encoding="utf-8")
    return judged
