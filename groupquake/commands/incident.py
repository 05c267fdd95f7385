"""`groupquake report server.log*`: what brokers' own logs tell, without a run folder.

Logs on this machine of up to `SMALL_BYTES` are read in this process; more of them, and those
elsewhere, by Spark.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from groupquake.console import Console
from groupquake.exits import Exit
from reports.ingest import uris
from reports.ingest.failures import explained
from reports.ingest.gathered import STDIN, Gathered, gathered
from reports.page.wording import REASONS, counted

if TYPE_CHECKING:
    from reports.incident.analysis import Asked
    from reports.incident.small import Small
    from reports.incident.stock_logs import OnSpark
    from reports.ingest.spark import SparkOptions

OUTPUT = "incident"
"""The folder of the results, if none is given."""
LARGE = 1_000_000_000
"""The bytes that evidence elsewhere is taken to have: a session is opened for it."""
SMALL_BYTES = 200_000_000
"""Up to this size, unpacked as far as is known, logs need no Spark: half a minute."""
SHOWN = 5
_RUN = ("environment.json", "experiment.yaml", "night.json", "brokers")
"""What folders of runs and nights have; folders of logs have none of them."""
_OBSERVED = re.compile(r"group\.log.*")
"""The name of a log that only a run folder has, of a broker or of the tap."""
_LOG = re.compile(r"\.(?:log|out|txt|gz|bz2|xz|zst|tar|tgz)\b[^/]*$")
"""How the name of a log, or of an archive of logs, ends that is not on this machine."""


def time_zone(name: str) -> ZoneInfo:
    """Return a time zone by its name in the tz database; it is the `type` of options."""
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
        files = [child.name for child in path.rglob("*") if child.is_file()]
        is_run = any((path / name).exists() for name in _RUN)
        return not is_run and (not files or any(map(_LOG.search, files)))
    is_here = place in STDIN or path.is_file() or path.is_fifo()
    return is_here or _LOG.search(place) is not None


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
    logs: Sequence[str], output: str | None, asked: "Asked", spark: "SparkOptions"
) -> Exit:
    """Report the incident that some logs tell."""
    from reports.incident import analysis  # noqa: PLC0415 (the page's libraries load slowly)

    console = Console()
    for log in logs:
        if "://" not in log and (said := _of_a_run(Path(log))):
            raise click.UsageError(said)
    target = uris.uri_of(output or OUTPUT)
    results = ("tables", *analysis.FILES)
    with explained(target), gathered(logs) as found, ExitStack() as opened:
        is_small = not spark.asked_for and not found.uris and found.bytes <= SMALL_BYTES
        refused = results if output is not None else ()
        engine: Small | OnSpark
        if is_small and (folder := uris.local_path(target)):
            from reports.incident import small  # noqa: PLC0415 (only one of the two is needed)

            uris.refuse_results(target, [name for name in refused if (folder / name).exists()])
            engine = small.Small(found.names)
        else:
            engine = opened.enter_context(_on_spark(found, target, refused, spark, console))
        uris.remove(target, results)
        incident = analysis.analyse(engine, asked, target, progress=console.progress)
    console.answer(incident, *summary(incident, output or OUTPUT))
    return Exit.UNKNOWN


@contextmanager
def _on_spark(
    found: Gathered, target: str, refused: Sequence[str], spark: "SparkOptions", console: Console
) -> Iterator["OnSpark"]:
    from chaos.clusters.java import find_java  # noqa: PLC0415 (Spark needs it, and loads slowly)
    from reports.incident.stock_logs import OnSpark  # noqa: PLC0415
    from reports.ingest import cache, places  # noqa: PLC0415
    from reports.ingest.spark import session  # noqa: PLC0415

    find_java()
    console.progress("starting Spark")
    size, log = found.bytes + LARGE * len(found.uris), cache.folder() / "spark.log"
    with (
        explained(spark.remote or spark.master or "Spark"),
        session(spark, size, log) as opened,
        ExitStack() as until_stored,
    ):
        places.refuse_results(opened, target, refused)
        yield OnSpark(opened, found.names, found.uris, until_stored)


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
        lines += [f"  {name}: {gap['what']}" for gap in group["missing"][:SHOWN]]
    if len(incident["groups"]) > SHOWN:
        lines.append(f"  and {len(incident['groups']) - SHOWN} more groups in the report")
    lines.append(
        f"  {counted(read['lines_read'], 'line')} read: {read['used']} used,"
        f" {read['irrelevant']} irrelevant, {read['rejected']} rejected"
    )
    lines += [f"  {_read_as(one)}" for one in incident["files"][:SHOWN]]
    if len(incident["files"]) > SHOWN:
        lines.append(f"  and {len(incident['files']) - SHOWN} more files in the report")
    lines += [f"  {one['file']}: {one['what']}" for one in incident["notices"][:SHOWN]]
    if len(incident["notices"]) > SHOWN:
        lines.append(f"  and {len(incident['notices']) - SHOWN} more notices in the report")
    lines += [f"  unknown because {reason}" for reason in incident["unknown_because"]]
    return [*lines, f"report: {place}/incident.html"]


def _read_as(file: dict[str, Any]) -> str:
    form = f"{file['form']}, " if file["form"] else ""
    return f"{file['file']}: {form}{counted(file['lines'], 'line')}"
