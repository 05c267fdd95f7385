"""The Locust workers of a run's load: forked on this machine, or started by the user elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass

import click

from chaos.clusters.ports import HOST, free_ports
from groupquake.commands.options import is_port
from groupquake.timing import LOAD_START_S, WORKERS_ELSEWHERE_S, WORKERS_QUIT_S
from loadtest.configs import PORTABLE
from scenarios import Experiment
from scenarios.clients import kind_of

EVERYWHERE = ("0.0.0.0", "*")  # noqa: S104 (the user chose it)
PLACEHOLDER = "ADDRESS_OF_THIS_MACHINE"
ONLY_HERE = (
    "members look for the brokers at 127.0.0.1: workers on other machines need a way from there to"
    " here, or a cluster of yours (--cluster external with cluster.logs, without --tap)"
)


@dataclass(frozen=True, slots=True)
class Workers:
    """Options of Locust that make its workers, and how long these may take."""

    options: tuple[str, ...] = ()
    start_s: float = LOAD_START_S
    quit_s: float = 0.0
    """How long the load may take to close its members if it fails; 0: they are killed at once."""
    announce: Callable[[str], object] = lambda _: None
    """Says how to start them; it gets the path of the locustfile."""


ALONE = Workers()
"""One Locust process that runs all members."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What the options of the command line say; None is a default."""

    processes: int | None = None
    elsewhere: int | None = None
    listen: str | None = None

    def check(self, experiment: Experiment) -> None:
        """Raise UsageError if workers cannot run an experiment."""
        if self.processes and self.elsewhere:
            raise click.UsageError("give --processes or --expect-workers, not both")
        if self.listen and not self.elsewhere:
            raise click.UsageError("--listen is for --expect-workers")
        if not self.elsewhere:
            return
        for member in experiment.members():
            if (client := kind_of(member.client)) not in PORTABLE:
                raise click.UsageError(
                    f"{member.name} is a program (client: {client}), and needs files of this"
                    f" machine; use --processes, or one of the clients {', '.join(PORTABLE)}"
                )
        if experiment.cluster.client_properties is not None:
            raise click.UsageError(
                "workers elsewhere do not have the client properties of this machine;"
                " use --processes"
            )

    def start(
        self,
        progress: Callable[[str], None],
        *,
        brokers_elsewhere: bool = False,
        otel: bool = False,
    ) -> Workers:
        """Return the workers of a run, on a free port unless one is named.

        `brokers_elsewhere` says whether members find brokers at other addresses than 127.0.0.1,
        `otel` whether the run exports: Locust's master does not hand that on.
        """
        if not (self.processes or self.elsewhere):
            return ALONE
        host, _, named_port = (self.listen or HOST).partition(":")
        port = named_port or free_ports(1)[0]
        at = (f"--master-bind-host={host}", f"--master-bind-port={port}")
        if self.processes:
            to = (f"--master-host={host}", f"--master-port={port}")
            return Workers((f"--processes={self.processes}", *at, *to))
        named = PLACEHOLDER if host in EVERYWHERE else host
        to_it = f"--worker --master-host {named} --master-port {port}" + " --otel" * otel
        noun = "a worker" if self.elsewhere == 1 else f"each of {self.elsewhere} workers"

        def announce(locustfile: str) -> None:
            if not (brokers_elsewhere or host.startswith("127.") or host == "localhost"):
                progress(ONLY_HERE)
            progress(f"start {noun}: locust -f {locustfile} {to_it}")

        expect = ("--master", f"--expect-workers={self.elsewhere}")
        return Workers((*expect, *at), WORKERS_ELSEWHERE_S, WORKERS_QUIT_S, announce)


def listen_address(text: str) -> str:
    """Check HOST or HOST:PORT."""
    host, colon, port = text.partition(":")
    if not host or (colon and not is_port(port)):
        raise click.BadParameter(f"'{text}' is no address; write HOST or HOST:PORT")
    return text
