"""`groupquake report server.log*`: what brokers' own logs tell, without a run folder."""

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from chaos.clusters.java import find_java
from groupquake.console import Console
from groupquake.exits import Exit
from reports.ingest import cache
from reports.ingest.failures import explained
from reports.ingest.spark import SparkOptions, session
from reports.page.wording import REASONS, counted
from scenarios.regular_files import open_regular

OUTPUT = "incident"
"""The folder of the results, if none is given."""
LARGE = 1_000_000_000
"""The bytes that evidence elsewhere is taken to have: a session is opened for it."""
SHOWN = 5
_RUN = ("environment.json", "experiment.yaml", "night.json", "brokers")
"""What folders of runs and nights have; folders of logs have none of them."""
_OBSERVED = re.compile(r"group\.log.*")
"""The name of a log that only a run folder has, of a broker or of the tap."""
_LOG = re.compile(r"\.(?:log|gz|out)\b[^/]*$")
"""How the name of a log ends that is not on this machine."""


def time_zone(_: click.Context, __: click.Parameter, name: str) -> ZoneInfo:
    """Return a time zone by its name in the tz database."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise click.BadParameter(
            f"no time zone is called {name!r}; write one like Europe/Berlin"
        ) from error


def are_logs(place: str) -> bool:
    """Tell whether an argument is a broker's log, or a folder of such, and no run folder."""
    path = Path(place)
    if path.is_dir():
        return not any((path / name).exists() for name in _RUN) and any(
            child.is_file() and _LOG.search(child.name) for child in path.rglob("*")
        )
    return path.is_file() or _LOG.search(place) is not None


def _of_a_run(place: Path) -> str | None:
    """Say what to give instead of what a run's brokers or its tap wrote; None for other logs."""
    whole = place.resolve()
    wrote = [up for up in whole.parents if whole.relative_to(up).parts[0] in ("brokers", "tap")]
    run = next((up for up in wrote if (up / "environment.json").is_file()), None)
    if run is not None:
        return f"{place} is a part of a run; give the run's folder, {run}"
    files = list(place.rglob("*.log*")) if place.is_dir() else [place]
    if not files or any(_OBSERVED.fullmatch(file.name) is None for file in files):
        return None
    return (
        f"{place}: {files[0].name} has a run's requests; give the folder of its run, with"
        " environment.json, or the brokers' server.log"
    )


def report_logs(
    logs: Sequence[str],
    output: str | None,
    zone: ZoneInfo,
    session_ms: float | None,
    spark: SparkOptions,
) -> Exit:
    """Report the incident that some logs tell."""
    from reports.incident import analysis  # noqa: PLC0415 (Spark and the page's libraries load slowly)
    from reports.ingest import places  # noqa: PLC0415

    find_java()
    console = Console()
    for log in logs:
        if "://" not in log and (said := _of_a_run(Path(log))):
            raise click.UsageError(said)
    here = [Path(log) for log in logs if "://" not in log]
    for file in chain(here, *(log.rglob("*") for log in here if log.is_dir())):
        if not file.is_dir():
            try:
                open_regular(file).close()
            except OSError as error:
                raise click.UsageError(f"{file}: {error.strerror}") from error
    console.progress("starting Spark")
    target = places.uri_of(output or OUTPUT)
    with (
        explained(spark.remote or spark.master or "Spark"),
        session(spark, sum(map(_bytes_of, logs)), cache.folder() / "spark.log") as opened,
    ):
        if output is not None:
            places.refuse_results(opened, target, ("tables", *analysis.FILES))
        places.remove(target, ("tables", *analysis.FILES))
        incident = analysis.analyse(
            opened,
            [places.glob_of(log) for log in logs],
            target,
            zone,
            session_ms,
            progress=console.progress,
        )
    console.result(*summary(incident, output or OUTPUT))
    return Exit.UNKNOWN


def _bytes_of(log: str) -> int:
    """Return the bytes of a log or a folder of logs; `LARGE` where it is not on this machine."""
    path = Path(log)
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) if path.exists() else LARGE


def summary(incident: dict[str, Any], place: str) -> list[str]:
    """Return the last lines that the command prints."""
    read = incident["coverage"]
    lines = ["", f"verdict: {incident['verdict']} (evidence level {incident['evidence_level']})"]
    lines += [f"  {line}" for line in incident["headline"]]
    lines += [
        f"  {count}: {REASONS.get(reason, reason)}"
        for reason, count in list(incident["rebalances_by_reason"].items())[:SHOWN]
    ]
    for name, group in list(incident["groups"].items())[:SHOWN]:
        spared = group["would_be_static"]
        lines.append(
            f"  {name}: {counted(group['rebalances'], 'rebalance')},"
            f" {counted(len(group['storms']), 'storm')}; as static members, with a session of"
            f" {spared['session_ms'] / 1000:g} s, about {spared['spared']} fewer"
        )
    if len(incident["groups"]) > SHOWN:
        lines.append(f"  and {len(incident['groups']) - SHOWN} more groups in the report")
    lines.append(
        f"  {read['lines_read']} lines read: {read['used']} used, {read['irrelevant']} irrelevant,"
        f" {read['rejected']} rejected"
    )
    lines += [f"  {one['file']}: {one['what']}" for one in incident["notices"][:SHOWN]]
    if len(incident["notices"]) > SHOWN:
        lines.append(f"  and {len(incident['notices']) - SHOWN} more notices in the report")
    lines += [f"  unknown because {reason}" for reason in incident["unknown_because"]]
    return [*lines, f"report: {place}/incident.html"]
