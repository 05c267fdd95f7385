"""The command line: arguments to calls, errors to one clear line and an exit code."""

import json
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from chaos.clusters import ClusterError
from chaos.clusters.guard import end_left_over
from chaos.clusters.java import find_java
from chaos.errors import ChaosError
from chaos.healing import heal as heal_journal
from chaos.plan import make_plan
from groupquake import __version__, folders
from groupquake.console import Console
from groupquake.exits import OF_VERDICT, AbortedError, Exit, NotHealedError, NotSteadyError
from groupquake.runner import Runner
from groupquake.signals import ENDING, Signals
from groupquake.summary import summary
from reports import EvidenceError
from reports.analysis import analyse
from scenarios import Experiment, ScenarioError, json_schema, load, named, names

BIG_SEED = 2**31
SIGNALS = Signals()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="groupquake")
def cli() -> None:
    """Put real Kafka consumer groups under load, break things on purpose, and prove from the
    brokers' own logs whether every rebalance was due.
    """  # noqa: D205


def resolve(name: str, kafka: str | None, settings: Sequence[str]) -> Experiment:
    """Find an experiment by file or library name, and apply the command line's changes."""
    is_file = name.endswith((".yaml", ".yml")) or "/" in name
    experiment = load(Path(name)) if is_file else named(name)
    changes = [*settings, *([f"cluster.version={kafka}"] if kafka else [])]
    return experiment.override(changes) if changes else experiment


def _ports(text: str | None) -> tuple[int, ...] | None:
    """Read a comma-separated list of ports."""
    if text is None:
        return None
    try:
        ports = tuple(int(port) for port in text.split(","))
    except ValueError:
        ports = ()
    if not ports or not all(0 < port < 65536 for port in ports):
        raise click.BadParameter(f"'{text}' is no list of ports; write 9092,9093,9094")
    return ports


_experiment = click.argument("name", metavar="NAME|FILE")
_kafka = click.option("--kafka", metavar="VERSION", help="Kafka release, such as 4.3.0.")
_set = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change one value of the file."
)
_seed = click.option(
    "--seed", type=click.IntRange(0, BIG_SEED), help="Decides the order of a bounce. [random]"
)
_master = click.option(
    "--master", default="local[*]", show_default=True, help="Spark master for the analysis."
)


@cli.command()
@_experiment
@_kafka
@_set
@_seed
@_master
@click.option(
    "--kafka-home",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the jars of this Kafka distribution instead of Maven's.",
)
@click.option(
    "--ports",
    metavar="P,P,…",
    callback=lambda _, __, value: _ports(value),
    help="Client ports of the brokers on 127.0.0.1. [free ones]",
)
@click.option("--keep", is_flag=True, help="Leave the cluster up at the end, until Ctrl-C.")
@click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Where run folders go.",
)
def run(
    name: str,
    kafka: str | None,
    settings: tuple[str, ...],
    seed: int | None,
    master: str,
    kafka_home: Path | None,
    ports: tuple[int, ...] | None,
    *,
    keep: bool,
    runs: Path,
) -> Exit:
    """Run an experiment on a real cluster of local brokers and judge it.

    Ends with the verdict, the headline, the report's path and the command that repeats the run.
    """
    console = Console()
    experiment = resolve(name, kafka, settings)
    if ports and len(set(ports)) != experiment.cluster.brokers:
        raise click.UsageError(f"give --ports {experiment.cluster.brokers} different ports")
    chosen = secrets.randbelow(BIG_SEED) if seed is None else seed
    plan = make_plan(experiment, chosen)
    console.progress(plan.describe())
    folder = folders.create(runs, experiment, chosen)
    options = [f"--kafka={kafka}"] if kafka else []
    options += [f"--kafka-home={kafka_home.resolve()}"] if kafka_home else []
    options += [f"--ports={','.join(map(str, ports))}"] if ports else []
    options += [f"--set={setting}" for setting in settings]
    folders.describe(folder, experiment, plan, chosen, folders.command_of(name, chosen, options))
    console.progress(f"run folder {folder}")
    runner = Runner(experiment, plan, folder, kafka_home, ports, keep, console.progress, SIGNALS)
    outcome = runner.run()
    if outcome.unhealed:
        raise NotHealedError(
            f"NOT HEALED: {', '.join(outcome.unhealed)}; see {folder}/journal.jsonl"
        )
    if outcome.aborted:
        raise AbortedError(outcome.aborted)
    if outcome.error is not None:
        console.progress(f"the plan was cut short: {outcome.error}")
    return judge(folder, master, console)


def judge(folder: Path, master: str, console: Console) -> Exit:
    """Analyse a run folder and print what came out."""
    find_java()  # Spark needs one too, and tells of it in forty lines
    with SIGNALS.ordering(_leave_at_once):
        verdict = analyse(folder, console.progress, master)
    console.result(summary(verdict, folder))
    return OF_VERDICT[verdict["verdict"]]


def _leave_at_once(name: str) -> None:
    """End inside the analysis: nothing is broken, Spark's JVM goes when we do, evidence is kept.

    An exception would surface in the middle of Spark's gateway, which answers with tracebacks.
    """
    _complain(f"{name}: stopped, everything healed; `groupquake report` judges the evidence")
    os._exit(Exit.ABORTED)


@cli.command()
@click.argument("folders_given", metavar="RUN…", nargs=-1, required=True, type=Path)
@_master
def report(folders_given: tuple[Path, ...], master: str) -> Exit:
    """Judge stored runs again, from their evidence alone."""
    worst = Exit.PASS
    for folder in folders_given:
        code = judge(folder.resolve() if folder.is_symlink() else folder, master, Console())
        worst = min(worst, code, key=(Exit.FAIL, Exit.UNKNOWN, Exit.PASS).index)
    return worst


@cli.command()
@_experiment
@_kafka
@_set
@click.option("--seed", type=click.IntRange(0, BIG_SEED), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def plan(
    name: str, kafka: str | None, settings: tuple[str, ...], seed: int, *, as_json: bool
) -> Exit:
    """Print the schedule of an experiment and a seed; touches nothing."""
    made = make_plan(resolve(name, kafka, settings), seed)
    Console.result(json.dumps(made.as_dict(), indent=2) if as_json else made.describe())
    return Exit.PASS


@cli.command()
@click.argument("given", metavar="[NAME|FILE]…", nargs=-1)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of experiment files.")
def validate(given: tuple[str, ...], *, schema: bool) -> Exit:
    """Check experiments without running them."""
    if schema:
        Console.result(json.dumps(json_schema(), indent=2))
    elif not given:
        raise click.UsageError("name an experiment or a file, or ask for --schema")
    for name in given:
        experiment = resolve(name, None, ())
        faults = len(make_plan(experiment, 0).steps)
        members = len(experiment.members())
        Console.result(f"{name}: valid ({members} members, {faults} faults)")
    return Exit.PASS


@cli.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_experiments(*, as_json: bool) -> Exit:
    """List the experiments that come with groupquake."""
    known = {name: named(name).description for name in names()}
    if as_json:
        Console.result(json.dumps(known, indent=2))
    else:
        for name, description in known.items():
            Console.result(f"{name:18} {' '.join(description.split())}")
    return Exit.PASS


@cli.command()
@click.argument("folder", metavar="RUN", type=click.Path(exists=True, path_type=Path))
def heal(folder: Path) -> Exit:
    """Undo, from the journal alone, what a run that was killed left broken."""
    results = heal_journal(folder / "journal.jsonl", None)
    ended = end_left_over(folder / "brokers")
    for result in results:
        state = "healed" if result.healed else "NOT healed"
        Console.result(f"{result.fault_id}: {state}: {result.how}")
    if ended:
        Console.result(f"ended brokers that were left: {', '.join(map(str, ended))}")
    if not results and not ended:
        Console.result("nothing to heal")
    return Exit.PASS if all(result.healed for result in results) else Exit.NOT_HEALED


_CODES: tuple[tuple[type[Exception], Exit], ...] = (
    (ScenarioError, Exit.USAGE),
    (EvidenceError, Exit.USAGE),
    (ClusterError, Exit.NOT_STEADY),
    (NotSteadyError, Exit.NOT_STEADY),
    (NotHealedError, Exit.NOT_HEALED),
    (ChaosError, Exit.USAGE),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with one of `Exit`."""
    code = _code_of(arguments)
    for number in ENDING:  # nothing is left to end but the interpreter
        signal.signal(number, signal.SIG_IGN)
    sys.exit(int(code))


def _code_of(arguments: Sequence[str] | None) -> Exit:
    SIGNALS.install()
    try:
        result: Any = cli.main(arguments, prog_name="groupquake", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except AbortedError as error:
        _complain(f"{error}: stopped, everything healed; the evidence so far is kept")
        return Exit.ABORTED
    except tuple(kind for kind, _ in _CODES) as error:
        _complain(str(error))
        return next(code for kind, code in _CODES if isinstance(error, kind))
    except Exception as error:  # noqa: BLE001 (a traceback is for us, one line for users)
        _complain(f"internal error: {type(error).__name__}: {error}; please report it")
        return Exit.INTERNAL
    return result if isinstance(result, Exit) else Exit.PASS


def _complain(message: str) -> None:
    print(f"groupquake: {message}", file=sys.stderr, flush=True)
