"""`groupquake run`: runs an experiment on a real cluster, up to its verdict."""

import secrets
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from chaos.clusters.factory import KINDS, Place
from chaos.clusters.java import find_java
from groupquake import external, folders, load_process, own_builds
from groupquake.clients import programs
from groupquake.commands.open import has_windows
from groupquake.commands.options import (
    experiment_options,
    is_port,
    master_option,
    output_options,
    servers,
)
from groupquake.commands.report import WORST_FIRST, command_for, judge
from groupquake.commands.run_options import EXTERNAL, RELEASE, REPEATED, RunOptions
from groupquake.console import Console, json_lines
from groupquake.exits import AbortedError, Exit, NotHealedError
from groupquake.live.attached import run_attached
from groupquake.load_workers import listen_address
from groupquake.nightly import night
from groupquake.recovery import recover_all
from groupquake.run_screen import shown
from groupquake.runner import Runner
from groupquake.signals import SIGNALS
from groupquake.simulate.forecast import foresee, is_foreseen
from groupquake.simulate.table import lines, short
from reports import EvidenceError, ExecutionError
from reports.ingest.spark import SparkOptions, prepare, reach
from reports.judgement.run.forecast import FILE as FORECAST
from reports.judgement.run.run_folder import logs_bytes
from scenarios import Experiment
from scenarios.client_properties import without_tls
from scenarios.fields import BIG_SEED


def _ports(text: str) -> str:
    """Check a comma-separated list of ports."""
    if not all(map(is_port, text.split(","))):
        raise click.BadParameter(f"'{text}' is not a list of ports; write 9092,9093,9094")
    return text


@click.command()
@experiment_options
@click.option(
    "--seed", type=click.IntRange(0, BIG_SEED), help="Decides the order of faults. [random]"
)
@click.option(
    "--plan", type=click.Path(dir_okay=False, resolve_path=True, path_type=Path), metavar="FILE",
    help="Work this plan: plan.json of a run, or what `groupquake plan NAME --json` printed.",
)  # fmt: skip
@click.option(
    "--repeat", type=click.IntRange(1, 1_000), default=1, metavar="N",
    help="Run the same plan N times, and end with a table of the verdicts.",
)  # fmt: skip
@master_option
@click.option(
    "--cluster", type=click.Choice(KINDS),
    help="Brokers as local processes, as containers of a Docker engine, the reference coordinator"
    " in their place (oracle), or a cluster that exists (external).  [default: process, or as the"
    " experiment says]",
)  # fmt: skip
@click.option(
    "--bootstrap", metavar="HOST:PORT,…", type=servers, help="Servers of an external cluster."
)
@click.option(
    "--client-properties", type=click.Path(dir_okay=False, resolve_path=True, path_type=Path),
    help="File of lines key=value with which clients reach it: TLS, SASL.",
)  # fmt: skip
@click.option(
    "--prefix", metavar="TEXT",
    help="What the names of its topics and groups begin with. [groupquake- and random letters]",
)  # fmt: skip
@click.option(
    "--allow-faults", metavar="CLUSTER_ID",
    help="Allow faults of its brokers, by the hooks of the experiment.",
)  # fmt: skip
@click.option(
    "--image", metavar="NAME",
    help="Image of the containers. [groupquake/kafka, else apache/kafka]",
)  # fmt: skip
@click.option(
    "--kafka-home",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Use the jars of this Kafka distribution instead of Maven's.",
)
@click.option(
    "--ports", metavar="P,P,…", type=_ports,
    help="Client ports of the brokers on 127.0.0.1. [free ones]",
)  # fmt: skip
@click.option(
    "--tap", is_flag=True,
    help="Put the tap before the brokers: what members send goes through it, and is written.",
)  # fmt: skip
@click.option(
    "--profile", metavar="NAME",
    help="Judge by these rules: a release such as 4.3 or 3.9-java, or kip-345. Needed for a build"
    " of your own (--kafka-home, --image). The oracle serves them, too. [those of the release]",
)  # fmt: skip
@click.option(
    "--keep", is_flag=True, help="Judge the run, then keep its cluster running until Ctrl-C."
)
@click.option(
    "--no-report", is_flag=True, help="Only collect evidence, for `groupquake report` to judge."
)
@click.option(
    "--runs", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"),
    show_default=True, help="Parent of the run folders.",
)  # fmt: skip
@click.option(
    "--otel", is_flag=True,
    help="Export spans and metrics of members and faults by OpenTelemetry (OTEL_… variables).",
)  # fmt: skip
@click.option(
    "--processes", type=click.IntRange(1, 1_000), metavar="N",
    help="Run the members in N Locust workers on this machine, forked from their master.",
)  # fmt: skip
@click.option(
    "--expect-workers", type=click.IntRange(1, 1_000), metavar="N",
    help="Wait for N Locust workers that you start by the line that is shown.",
)  # fmt: skip
@click.option(
    "--listen", metavar="HOST[:PORT]", type=listen_address,
    help="Where the workers of --expect-workers connect to. [127.0.0.1, a free port]",
)  # fmt: skip
@click.option("--ui", is_flag=True, help="Serve Locust's page, and open the live page.")
@click.option(
    "--web-port", type=click.IntRange(1, 65535), default=8089, show_default=True,
    help="Port of that page on 127.0.0.1.",
)  # fmt: skip
@click.option("--attach", type=click.IntRange(1, 65535), hidden=True)
@output_options
def run(**given: Any) -> Exit:
    """Run an experiment on a real cluster of brokers and judge it.

    Prints the verdict, the headline, the report's path and the command that repeats the run.
    """
    options = RunOptions(**given)
    return carry_out(options)[0] if options.repeat == 1 else repeated(options)[0]


def repeated(options: RunOptions) -> tuple[Exit, list[Path]]:
    """Run one plan several times; return the worst exit code, and the run folders.

    After each run comes a table of the verdicts so far, whatever may end the next one.
    """
    if options.keep:
        raise click.UsageError("--keep is for one run; leave out --repeat")
    if options.seed is None and options.plan is None:
        options = replace(options, seed=secrets.randbelow(BIG_SEED))
    worst, ran = Exit.PASS, list[Path]()
    said = Console().said
    for number in range(1, options.repeat + 1):
        said(f"run {number} of {options.repeat}")
        code, folder = carry_out(options)
        worst = min(worst, code, key=WORST_FIRST.index)
        ran.append(folder)
        said("", *night.table(ran))
    return worst, ran


def carry_out(options: RunOptions) -> tuple[Exit, Path]:
    """Run an experiment and judge it; return the exit code and the run folder."""
    console = Console()
    if options.otel:
        load_process.require_otel()
    experiment = options.experiment()
    options = replace(options, profile=options.profile or experiment.never_shipped)
    place = options.place(experiment)
    options.workers.check(experiment)
    programs.require_there(experiment)
    if not options.no_report:
        find_java()  # Spark needs Java and its master; fail now rather than after the run
        reach(options.master)
    tap = options.has_tap(experiment)
    if experiment.cluster.logs == "none" and not (options.no_report or tap):
        raise click.UsageError("cluster.logs: none gives no verdict; add --no-report, or --tap")
    if options.ui:
        _open_page(options, load_process.security_of(experiment, tap=tap))
    runner = _runner(options, experiment, place, console, tap=tap)
    codes: list[Exit] = []

    def judge_it() -> None:
        codes.append(_judged(runner.folder, options, console))

    with shown(runner.folder, runner.experiment, runner.plan, console):
        try:
            _gather(replace(runner, judge=judge_it if options.keep else None), options, console)
        except AbortedError as error:
            how = f"; judge what there is: {command_for(runner.folder)}"
            left = "stopped, all faults healed" + (how if logs_bytes(runner.folder) else "")
            raise AbortedError(error.signal, left) from error
        if not codes:
            judge_it()
    return codes[0], runner.folder


def _open_page(options: RunOptions, security: dict[str, str]) -> None:
    """Put Locust's page in the place of this process; it begins runs with the same options."""
    options.require_page_alone()
    form = {"experiment": options.name, "seed": options.seed}
    form |= {name: getattr(options, name) for name in RELEASE}
    more = [*options.given(REPEATED), f"--runs={options.runs}", f"--master={options.master}"]
    load_process.exec_locust_page(
        options.web_port, form, more, security, otel=options.otel, in_browser=has_windows()
    )


def _runner(
    options: RunOptions, experiment: Experiment, place: Place, console: Console, *, tap: bool
) -> Runner:
    """Ask an external cluster or a build what it is, and make the run folder."""
    recover_all(console.progress)  # before the cluster is asked: brokers of it may be broken
    outside: dict[str, Any] = {}
    release = (options.kafka, options.coordinator)
    if place.kind == EXTERNAL:
        experiment, place, outside = external.resolve(
            experiment, place, *release, options.allow_faults, console.progress
        )
        properties = place.external.client_properties if place.external else {}
        programs.require_able(experiment, without_tls(properties) if tap else properties)
    experiment, place, built = own_builds.resolve(
        experiment, place, *release, options.profile, console.progress
    )
    outside |= built
    plan = options.schedule(experiment)
    steps, *table = plan.describe()
    console.progress(steps, *(table if console.verbose else ()))
    forecast = foresee(experiment, plan, options.profile) if is_foreseen(experiment) else None
    if forecast is not None:
        console.progress(*(lines if console.verbose else short)(forecast))
    given = options.given((*RELEASE, *REPEATED))
    command = ["groupquake", "run", options.name, "--seed", str(plan.seed), *given]
    folder = folders.create(options.runs, experiment, plan, place.kind, command, outside)
    if forecast is not None:
        text = "\n".join((*json_lines(forecast.as_dict()), ""))
        (folder / FORECAST).write_text(text, encoding="utf-8")
    console.progress(f"run folder {folder}")
    workers = options.workers.start(
        console.progress, brokers_elsewhere=place.kind == EXTERNAL and not tap, otel=options.otel
    )
    return Runner(
        experiment,
        plan,
        folder,
        place,
        console.progress,
        SIGNALS,
        tap=tap,
        load=partial(load_process.running, otel=options.otel, workers=workers),
        prepare_analysis=partial(_begin_analysis, folder, options),
    )


def _gather(runner: Runner, options: RunOptions, console: Console) -> None:
    """Run the experiment; its evidence is complete when this returns."""
    if options.attach is None:
        outcome = runner.run()
    else:
        outcome = run_attached(runner, options.attach, options.allow_faults)
    if outcome.unhealed:
        raise NotHealedError(
            f"NOT HEALED: {', '.join(outcome.unhealed)}; see {runner.folder}/journal.jsonl"
        )
    if outcome.aborted:
        raise AbortedError(outcome.aborted)
    if outcome.error is not None:
        console.progress(f"the plan ended early: {outcome.error}")


def _judged(folder: Path, options: RunOptions, console: Console) -> Exit:
    """Judge the run, or say how to do it later."""
    if options.no_report:
        console.said(f"not judged yet: {command_for(folder)}")
        return Exit.PASS
    try:
        return judge(folder, options.master, console, alone=not options.keep)
    except (EvidenceError, ExecutionError) as error:
        later = f"the run is whole, judge it later: {command_for(folder)}"
        raise type(error)(f"{error}; {later}") from error


def _begin_analysis(folder: Path, options: RunOptions) -> None:
    """Start Spark beside the end of the run; what fails here fails again where it is needed.

    The second call finds it started. Nothing starts where no analysis follows.
    """
    if not options.no_report:
        with suppress(Exception):
            spark = SparkOptions(options.master)
            prepare(spark, logs_bytes(folder), folder / "spark.log", rehearsal=True)
