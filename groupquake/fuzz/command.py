"""`groupquake dev fuzz`: random sequences of requests to a real broker, judged by the oracle."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click

from chaos.errors import UnreachableError
from groupquake import folders
from groupquake.commands.options import coordinator_option, is_port
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.fuzz.campaign import Campaign
from groupquake.fuzz.fuzz_run import play_and_judge
from groupquake.fuzz.judge import Verdict, judges
from groupquake.fuzz.stall_detector import StallDetector
from groupquake.fuzz.summary import coverage, summary
from groupquake.fuzz.target import Target, own_broker, ready
from loadtest.wire import WireError
from reference_coordinator.classic.releases import default_coordinator, profile_for
from scenarios.fields import BIG_SEED
from scenarios.model import Cluster

CODES = {
    Verdict.EXPLAINED: Exit.PASS,
    Verdict.UNEXPLAINED: Exit.FAIL,
    Verdict.UNKNOWN: Exit.UNKNOWN,
}


def _address(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[str, int] | None:
    """Read HOST:PORT."""
    if text is None:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not is_port(port):
        raise click.BadParameter(f"'{text}' is not an address; write 127.0.0.1:9092")
    return host, int(port)


@click.command()
@click.option(
    "--kafka",
    metavar="VERSION",
    default=Cluster().version,
    show_default=True,
    help="Kafka release.",
)
@coordinator_option
@click.option(
    "--sequences",
    type=click.IntRange(1, 1_000_000),
    default=1_000,
    show_default=True,
    help="Number of sequences.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, BIG_SEED),
    default=7,
    show_default=True,
    help="Decides the sequences.",
)
@click.option(
    "--in-flight",
    type=click.IntRange(1, 500),
    default=60,
    show_default=True,
    help="Number of sequences at the same time, each in its own group.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Parent of the folder with the event files.",
)
@click.option(
    "--at",
    metavar="HOST:PORT",
    callback=_address,
    help="Use a running broker. [starts one]",
)
def fuzz(
    kafka: str,
    coordinator: str | None,
    sequences: int,
    seed: int,
    in_flight: int,
    out: Path,
    at: tuple[str, int] | None,
) -> Exit:
    """Send random sequences of group requests to a real broker, and judge them by the oracle.

    A sequence that the oracle does not explain is reduced and written to the folder.
    """
    console = Console()
    coordinator = coordinator or default_coordinator(kafka)
    profile = profile_for(kafka, coordinator)
    if profile is None:
        raise click.UsageError(
            f"the oracle has no rules for Kafka {kafka} with coordinator {coordinator}; name others"
        )
    folder = folders.make(out, f"fuzz-{kafka}-{coordinator}-{seed}")
    console.progress(f"folder {folder}")
    with judges() as pool:
        try:
            with (
                _broker(at, kafka, coordinator, folder, console) as target,
                StallDetector(target.host, target.port) as stall_detector,
            ):
                campaign = Campaign(target, stall_detector, seed, in_flight, console.progress)
                campaign.warm_up()
                outcome = play_and_judge(campaign, sequences, profile, pool, folder)
        except WireError as error:
            raise UnreachableError(str(error)) from error
        covered = coverage(outcome, profile, target, pool, console.progress)
    Console.result(*summary(outcome, covered, profile, target, folder))
    return CODES[outcome.worst]


def _broker(
    at: tuple[str, int] | None, kafka: str, coordinator: str, folder: Path, console: Console
) -> AbstractContextManager[Target]:
    if at is None:
        return own_broker(kafka, coordinator, folder / "brokers", console.progress)
    return nullcontext(ready(*at, kafka, coordinator))
