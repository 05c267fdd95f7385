"""`groupquake run`: runs an experiment on a real cluster, up to its verdict."""

import secrets
import shlex
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from chaos.clusters.factory import KINDS, Place
from chaos.clusters.java import find_java
from chaos.plan import make_plan
from groupquake import folders, load_process
from groupquake.attached import run_attached
from groupquake.commands.options import (
    coordinator_option,
    experiment_argument,
    kafka_option,
    master_option,
    resolve,
    set_option,
)
from groupquake.commands.report import judge
from groupquake.console import Console
from groupquake.exits import AbortedError, Exit, NotHealedError
from groupquake.runner import Runner
from groupquake.signals import SIGNALS
from reports import rehearsal
from scenarios.fields import BIG_SEED


def _ports(text: str | None) -> tuple[int, ...] | None:
    """Read a comma-separated list of ports."""
    if text is None:
        return None
    try:
        ports = tuple(int(port) for port in text.split(","))
    except ValueError:
        ports = ()
    if not ports or not all(0 < port < 65536 for port in ports):
        raise click.BadParameter(f"'{text}' is not a list of ports; write 9092,9093,9094")
    return ports


@click.command()
@experiment_argument
@kafka_option
@coordinator_option
@set_option
@click.option(
    "--seed", type=click.IntRange(0, BIG_SEED), help="Decides the order of faults. [random]"
)
@master_option
@click.option(
    "--cluster",
    "kind",
    type=click.Choice(KINDS),
    default=KINDS[0],
    show_default=True,
    help="Brokers as local processes, or as containers of a Docker engine.",
)
@click.option(
    "--image", metavar="NAME", help="Image of the containers. [groupquake/kafka, else apache/kafka]"
)
@click.option(
    "--kafka-home",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Use the jars of this Kafka distribution instead of Maven's.",
)
@click.option(
    "--ports",
    metavar="P,P,…",
    callback=lambda _, __, value: _ports(value),
    help="Client ports of the brokers on 127.0.0.1. [free ones]",
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
    kind: str,
    image: str | None,
    kafka_home: Path | None,
    ports: tuple[int, ...] | None,
    *,
    keep: bool,
    no_report: bool,
    runs: Path,
    page: bool,
    web_port: int,
    attach: int | None,
) -> Exit:
    """Run an experiment on a real cluster of brokers and judge it.

    Prints the verdict, the headline, the report's path and the command that repeats the run.
    """
    console = Console()
    experiment = resolve(name, kafka, coordinator, settings)
    count = experiment.cluster.brokers
    if ports and not len(ports) == len(set(ports)) == count:
        raise click.UsageError(f"give --ports {count} different ports")
    if image and kind != "docker":
        raise click.UsageError("--image is for --cluster docker")
    if kafka_home and kind != "process":
        raise click.UsageError("--kafka-home is for --cluster process")
    place = Place(kind, kafka_home, image, ports)
    if not no_report:
        find_java()  # Spark needs Java; fail now rather than after the run
    options = [f"--cluster={kind}"] if kind != KINDS[0] else []
    options += [f"--image={image}"] if image else []
    options += [f"--kafka-home={kafka_home.resolve()}"] if kafka_home else []
    options += [f"--ports={','.join(map(str, ports))}"] if ports else []
    options += [f"--set={setting}" for setting in settings]
    if page:
        if keep:
            raise click.UsageError("--keep cannot be used with --ui, which may start several runs")
        if no_report:
            raise click.UsageError("--no-report cannot be used with --ui, which shows the verdict")
        more = [*options, f"--runs={runs}", f"--master={master}"]
        load_process.exec_locust_page(web_port, name, kafka, coordinator, seed, more)
    chosen = secrets.randbelow(BIG_SEED) if seed is None else seed
    plan = make_plan(experiment, chosen)
    console.progress(plan.describe())
    folder = folders.create(runs, experiment, chosen)
    release = {"--kafka": kafka, "--coordinator": coordinator}
    options = [f"{option}={value}" for option, value in release.items() if value] + options
    command = folders.command_of(name, chosen, options)
    folders.describe(folder, experiment, plan, chosen, kind, command)
    console.progress(f"run folder {folder}")
    begin_analysis = partial(_begin_analysis, folder, master, judged=not no_report)
    runner = Runner(
        experiment,
        plan,
        folder,
        place,
        keep,
        console.progress,
        SIGNALS,
        load_ended=begin_analysis,
    )
    try:
        _gather(runner, attach, console)
        if no_report:
            console.result(f"not judged yet: groupquake report {shlex.quote(str(folder))}")
            return Exit.PASS
        return judge(folder, master, console)
    except AbortedError as error:
        left = "stopped, all faults healed; the evidence so far is kept"
        raise AbortedError(error.signal, left) from error


def _begin_analysis(folder: Path, master: str, *, judged: bool) -> None:
    """Start Spark beside the end of the run; what fails here fails again where it is needed."""
    if judged:
        with suppress(Exception):
            rehearsal.rehearse(folder, master)


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
