"""The command line: which commands there are; errors to one clear line and an exit code."""

import pkgutil
import signal
import sys
from collections.abc import Sequence
from typing import Any

import click

from chaos.clusters import ClusterError, UnsupportedError
from chaos.errors import ChaosError, UnreachableError
from groupquake import __version__
from groupquake.console import Console
from groupquake.exits import AbortedError, Exit, NotHealedError, NotSteadyError
from groupquake.signals import ENDING, SIGNALS
from reports import EvidenceError
from scenarios import ScenarioError


class Lazy(click.Command):
    """A command of which only its line in the help is here; calling it imports the rest.

    So nobody who asks for a plan waits for Spark, Docker and Kafka's clients to be imported.
    """

    def __init__(self, name: str, place: str, line: str) -> None:
        """`place` is where the command is, as `module:name`."""
        super().__init__(name, help=line)
        self.place = place

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Let the command itself go on."""
        return self.loaded().make_context(info_name, args, parent, **extra)

    def loaded(self) -> click.Command:
        """Import the command itself."""
        command: click.Command = pkgutil.resolve_name(self.place)
        return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="groupquake")
def cli() -> None:
    """Put real Kafka consumer groups under load, break things on purpose, and prove from the
    brokers' own logs whether every rebalance was due.
    """  # noqa: D205


for name, place, line in (
    ("dev", "commands.dev:dev", "Make what groupquake itself needs."),
    ("group", "commands.group:group", "Act on a consumer group of any cluster."),
    ("heal", "commands.heal:heal",
     "Undo, from the journal alone, what a run that was killed left broken."),
    ("list", "commands.experiments:list_experiments",
     "List the experiments that come with groupquake."),
    ("nightly", "nightly.command:nightly",
     "Run every experiment of a suite on every release it names, and compare with earlier nights."),
    ("oracle", "commands.oracle:oracle", "Ask the reference coordinator."),
    ("plan", "commands.experiments:plan",
     "Print the schedule of an experiment and a seed; touches nothing."),
    ("report", "commands.report:report", "Judge stored runs again, from their evidence alone."),
    ("run", "commands.run:run", "Run an experiment on a real cluster of brokers and judge it."),
    ("validate", "commands.experiments:validate", "Check experiments without running them."),
):  # fmt: skip
    cli.add_command(Lazy(name, f"groupquake.{place}", line))

_CODES: tuple[tuple[type[Exception], Exit], ...] = (
    (ScenarioError, Exit.USAGE),
    (EvidenceError, Exit.USAGE),
    (UnsupportedError, Exit.USAGE),
    (ClusterError, Exit.NOT_STEADY),
    (NotSteadyError, Exit.NOT_STEADY),
    (NotHealedError, Exit.NOT_HEALED),
    (UnreachableError, Exit.UNAVAILABLE),
    (ChaosError, Exit.USAGE),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with one of `Exit`."""
    code = code_of(arguments)
    for number in ENDING:  # nothing is left to end but the interpreter
        signal.signal(number, signal.SIG_IGN)
    sys.exit(int(code))


def code_of(arguments: Sequence[str] | None) -> Exit:
    """Run the command line; errors go to standard error, one line each."""
    SIGNALS.install()
    try:
        result: Any = cli.main(arguments, prog_name="groupquake", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except AbortedError as error:
        Console.complain(str(error))
        return Exit.ABORTED
    except tuple(kind for kind, _ in _CODES) as error:
        Console.complain(str(error))
        return next(code for kind, code in _CODES if isinstance(error, kind))
    except Exception as error:  # noqa: BLE001 (a traceback is for us, one line for users)
        Console.complain(f"internal error: {type(error).__name__}: {error}; please report it")
        return Exit.INTERNAL
    return result if isinstance(result, Exit) else Exit.PASS
