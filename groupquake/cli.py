"""The command line: the commands, and the mapping of errors to one line and an exit code."""

import io
import pkgutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import click
from click.shell_completion import CompletionItem

from chaos.errors import ChaosError, ClusterError, UnreachableError, UnsupportedError
from groupquake import __version__
from groupquake.completion import Completion, experiments, releases, runs
from groupquake.console import Console
from groupquake.exits import AbortedError, Exit, NotAuthorizedError, NotHealedError, NotSteadyError
from groupquake.signals import ENDING, SIGNALS
from kafka_protocol.printable import printable
from reports import EvidenceError, ExecutionError
from scenarios import ScenarioError
from scenarios.client_properties import PropertiesError


class Lazy(click.Command):
    """A command that is imported when it is called; only its help line is here.

    So `plan` does not wait for the import of Spark, Docker and Kafka's clients; nor does the shell
    that completes an argument: how is said here, by a name of `groupquake.completion`.
    """

    def __init__(
        self, name: str, place: str, line: str, argument: Completion | None = None
    ) -> None:
        """`place` is the command's place, as `module:name`."""
        kafka = click.Option(["--kafka"], shell_complete=releases)
        words = click.Argument(["words"], nargs=-1, shell_complete=argument)
        unread = {"ignore_unknown_options": True}
        super().__init__(name, help=line, params=[kafka, words], context_settings=unread)
        self.place = place
        self.completes = argument is not None

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Delegate to the command itself, unless the shell completes an argument."""
        in_option = args and args[-1].startswith("-") and args[-1] != "--kafka"
        if extra.get("resilient_parsing") and self.completes and not in_option:
            return super().make_context(info_name, args, parent, **extra)
        return self.loaded().make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete the name of an option, which the command itself knows."""
        return self.loaded().shell_complete(ctx, incomplete)

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


_ARGUMENTS: Mapping[str, Completion] = {
    **dict.fromkeys(("plan", "run", "show", "shrink", "simulate", "validate"), experiments),
    **dict.fromkeys(("compare", "heal", "open", "report"), runs),
}
"""What the shell completes of the arguments of commands."""

for name, place, line in (
    ("clients", "clients.command:clients",
     "List and build clients that members may be of, and see what they do with errors."),
    ("compare", "commands.compare:compare",
     "Compare judged runs: rebalances by reason, their time, partitions without an owner."),
    ("dev", "commands.dev:dev", "Fuzz brokers, and build archives and images."),
    ("doctor", "commands.doctor:doctor",
     "Tell what your cluster allows: releases, ACLs, loggers, and what is missing."),
    ("group", "commands.group:group", "Act on a consumer group of any cluster."),
    ("heal", "commands.heal:heal",
     "Heal the faults that a killed run left open, and end what it left."),
    ("list", "commands.experiments:list_experiments",
     "List the experiments that come with groupquake, by topic, and how long each takes."),
    ("new", "commands.new:new",
     "Write an experiment of your own: six questions, and a file with comments."),
    ("nightly", "nightly.command:nightly",
     "Run the experiments of a suite on all its releases, and compare with earlier nights."),
    ("open", "commands.open:open_page",
     "Open the report of a run in the browser: the latest one, if no other is named."),
    ("oracle", "commands.oracle:oracle",
     "Replay event files with the reference coordinator, or serve it to clients."),
    ("plan", "commands.experiments:plan",
     "Print the fault schedule of an experiment and a seed; starts nothing."),
    ("report", "commands.report:report",
     "Judge stored runs again, from their run folders; or report what brokers' own logs tell."),
    ("run", "commands.run:run", "Run an experiment on a real cluster of brokers and judge it."),
    ("show", "commands.show:show",
     "Show what an experiment does: members, faults, what is expected, how long it takes."),
    ("shrink", "shrink.command:shrink",
     "Make a failing experiment as small as it still fails for the same root."),
    ("simulate", "commands.simulate:simulate",
     "Foresee an experiment in virtual time, without a broker."),
    ("trial", "trial.command:trial",
     "Try clients on a real cluster: did they keep the protocol, and did its brokers."),
    ("validate", "commands.experiments:validate", "Check experiments without running them."),
    ("watch", "watch.command:watch",
     "Follow brokers' own logs, and count the rebalances of each group as they happen."),
):  # fmt: skip
    cli.add_command(Lazy(name, f"groupquake.{place}", line, _ARGUMENTS.get(name)))

_CODES: tuple[tuple[type[Exception], Exit], ...] = (
    (ScenarioError, Exit.USAGE),
    (EvidenceError, Exit.USAGE),
    (ExecutionError, Exit.INTERNAL),
    (UnsupportedError, Exit.USAGE),
    (ClusterError, Exit.NOT_STEADY),
    (NotSteadyError, Exit.NOT_STEADY),
    (NotAuthorizedError, Exit.NOT_AUTHORIZED),
    (NotHealedError, Exit.NOT_HEALED),
    (UnreachableError, Exit.UNAVAILABLE),
    (ChaosError, Exit.USAGE),
    (PropertiesError, Exit.USAGE),
)


def main(
    arguments: Sequence[str] | None = None,
    command: click.Command = cli,
    name: str = "groupquake",
) -> None:
    """Run a command line and end the process with one of `Exit`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as Python does for standard error
    code = code_of(arguments, command, name)
    for number in ENDING:  # only the interpreter is left to end
        signal.signal(number, signal.SIG_IGN)
    sys.exit(int(code))


def code_of(
    arguments: Sequence[str] | None, command: click.Command = cli, name: str = "groupquake"
) -> Exit:
    """Run a command line; errors go to standard error, one line each."""
    SIGNALS.install()
    try:
        result: Any = command.main(arguments, prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        if not isinstance(error, click.exceptions.NoArgsIsHelpError):  # whose message is the help
            error = click.UsageError(printable(error.format_message()), getattr(error, "ctx", None))
        with suppress(OSError):  # nobody reads it
            error.show()
        return Exit.USAGE
    except SystemExit:
        return Exit.PASS  # click's end where nobody reads a help
    except AbortedError as error:
        Console.error(str(error))
        return Exit.ABORTED
    except tuple(kind for kind, _ in _CODES) as error:
        Console.error(*(error.args if isinstance(error, ScenarioError) else [str(error)]))
        return next(code for kind, code in _CODES if isinstance(error, kind))
    except Exception as error:  # noqa: BLE001 (users get one line)
        Console.error(f"internal error: {type(error).__name__}: {error}; please report it")
        return Exit.INTERNAL
    return result if isinstance(result, Exit) else Exit.PASS
