"""`groupquake run`: runs an experiment on a real cluster, up to its verdict."""

import secrets
import shlex
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from chaos.clusters.java import find_java
from chaos.plan import make_plan
from groupquake import external, folders, load_process, own_builds, telemetry
from groupquake.attached import run_attached
from groupquake.clients import programs
from groupquake.commands.options import (
    coordinator_option,
    experiment_argument,
    kafka_option,
    master_option,
    resolve,
    set_option,
)
from groupquake.commands.report import judge
from groupquake.commands.where import EXTERNAL, Where, implies_tap, where_options
from groupquake.console import Console
from groupquake.exits import AbortedError, Exit, NotHealedError
from groupquake.load_workers import WorkerOptions, worker_options
from groupquake.recovery import recover_all
from groupquake.runner import Runner
from groupquake.signals import SIGNALS
from reports import EvidenceError, ExecutionError
from reports.ingest.spark import prepare, reach
from reports.judgement.run.run_folder import logs_bytes
from scenarios.client_properties import without_tls
from scenarios.fields import BIG_SEED


@click.command()
@experiment_argument
@kafka_option
@coordinator_option
@set_option
@click.option(
    "--seed", type=click.IntRange(0, BIG_SEED), help="Decides the order of faults. [random]"
)
@master_option
@where_options
@click.option(
    "--tap",
    is_flag=True,
    help="Put the tap before the brokers: what members send goes through it, and is written.",
)
@click.option(
    "--profile",
    metavar="NAME",
    help="Judge by these rules: a release such as 4.3 or 3.9-java, or kip-345. Needed for a build"
    " of your own (--kafka-home, --image). [those of the release]",
)
@click.option("--keep", is_flag=True, help="Keep the cluster running at the end, until Ctrl-C.")
@click.option(
    "--no-report",
    is_flag=True,
    help="Only collect evidence, for `groupquake report` to judge.",
)
@click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Parent of the run folders.",
)
@click.option(
    "--otel",
    is_flag=True,
    help="Export spans and metrics of members and faults by OpenTelemetry (OTEL_… variables).",
)
@worker_options
@click.option("--ui", "page", is_flag=True, help="Open Locust's page to start and see the run.")
@click.option(
    "--web-port",
    type=click.IntRange(1, 65535),
    default=8089,
    show_default=True,
    help="Port of that page on 127.0.0.1.",
)
@click.option("--attach", type=click.IntRange(1, 65535), hidden=True)
def run(
    name: str,
    kafka: str | None,
    coordinator: str | None,
    settings: tuple[str, ...],
    seed: int | None,
    master: str,
    *,
    where: Where,
    tap: bool,
    profile: str | None,
    keep: bool,
    no_report: bool,
    runs: Path,
    otel: bool,
    workers: WorkerOptions,
    page: bool,
    web_port: int,
    attach: int | None,
) -> Exit:
    """Run an experiment on a real cluster of brokers and judge it.

    Prints the verdict, the headline, the report's path and the command that repeats the run.
    """
    console = Console()
    if otel:
        telemetry.require()
    experiment = resolve(name, kafka, coordinator, (*settings, *where.settings))
    place = where.place(experiment)
    workers.check(experiment)
    programs.require_there(experiment)
    if not no_report:
        find_java()  # Spark needs Java and its master; fail now rather than after the run
        reach(master)
    options = [*where.options, *(f"--set={setting}" for setting in settings)]
    options += [*workers.given, *(["--tap"] if tap else [])]
    tap = tap or implies_tap(experiment)
    options += [f"--profile={profile}"] if profile else []
    if experiment.cluster.logs == "none" and not (no_report or tap):
        raise click.UsageError("cluster.logs: none gives no verdict; add --no-report, or --tap")
    if page:
        _require_page_alone(keep=keep, no_report=no_report, workers=workers)
        more = [*options, f"--runs={runs}", f"--master={master}"]
        security = load_process.security_of(experiment, tap=tap)
        load_process.exec_locust_page(
            web_port, name, kafka, coordinator, seed, more, security, otel=otel
        )
    recover_all(console.progress)  # before the cluster is asked: brokers of it may be broken
    outside: dict[str, Any] = {}
    if place.kind == EXTERNAL:
        experiment, place, outside = external.resolve(
            experiment, place, kafka, coordinator, where.allow_faults, console.progress
        )
        properties = place.external.client_properties if place.external else {}
        programs.require_able(experiment, without_tls(properties) if tap else properties)
    experiment, place, built = own_builds.resolve(
        experiment, place, kafka, coordinator, profile, console.progress
    )
    outside |= built
    chosen = secrets.randbelow(BIG_SEED) if seed is None else seed
    plan = make_plan(experiment, chosen)
    console.progress(*plan.describe())
    release = {"--kafka": kafka, "--coordinator": coordinator}
    options = [f"{option}={value}" for option, value in release.items() if value] + options
    command = folders.command_of(name, chosen, options)
    folder = folders.create(runs, experiment, plan, chosen, place.kind, command, outside)
    console.progress(f"run folder {folder}")
    runner = Runner(
        experiment,
        plan,
        folder,
        place,
        keep,
        console.progress,
        SIGNALS,
        tap=tap,
        load=partial(
            load_process.running,
            otel=otel,
            workers=workers.start(
                console.progress,
                brokers_elsewhere=place.kind == EXTERNAL and not tap,
                otel=otel,
            ),
        ),
        prepare_analysis=partial(_begin_analysis, folder, master, soon=not (no_report or keep)),
    )
    try:
        _gather(runner, attach, console)
        return _judged(folder, None if no_report else master, console)
    except AbortedError as error:
        left = "stopped, all faults healed; the evidence so far is kept"
        raise AbortedError(error.signal, left) from error


def _judged(folder: Path, master: str | None, console: Console) -> Exit:
    """Judge the run with a master; without one, or where that fails, say how to do it later."""
    later = f"groupquake report {shlex.quote(str(folder))}"
    if master is None:
        console.result(f"not judged yet: {later}")
        return Exit.PASS
    try:
        return judge(folder, master, console)
    except (EvidenceError, ExecutionError) as error:
        raise type(error)(f"{error}; the run is whole, judge it later: {later}") from error


def _require_page_alone(*, keep: bool, no_report: bool, workers: WorkerOptions) -> None:
    if workers.distributed:
        raise click.UsageError(
            "--processes and --expect-workers cannot be used with --ui, whose own process runs"
            " all members"
        )
    if keep:
        raise click.UsageError("--keep cannot be used with --ui, which may start several runs")
    if no_report:
        raise click.UsageError("--no-report cannot be used with --ui, which shows the verdict")


def _begin_analysis(folder: Path, master: str, *, soon: bool) -> None:
    """Start Spark beside the end of the run; what fails here fails again where it is needed.

    The second call finds it started. Nothing starts where no analysis follows `soon`: there is
    none, or the cluster is kept before it.
    """
    if soon:
        with suppress(Exception):
            prepare(master, logs_bytes(folder), folder / "spark.log", rehearsal=True)


def _gather(runner: Runner, attach: int | None, console: Console) -> None:
    """Run the experiment; its evidence is complete when this returns."""
    outcome = runner.run() if attach is None else run_attached(runner, attach)
    if outcome.unhealed:
        raise NotHealedError(
            f"NOT HEALED: {', '.join(outcome.unhealed)}; see {runner.folder}/journal.jsonl"
        )
    if outcome.aborted:
        raise AbortedError(outcome.aborted)
    if outcome.error is not None:
        console.progress(f"the plan ended early: {outcome.error}")
