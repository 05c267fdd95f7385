"""`groupquake dev fuzz`: random sequences of requests to a real broker, judged by the oracle."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click

from chaos.errors import UnreachableError
from groupquake import folders
from groupquake.commands.options import coordinator_option, is_port, kafka_option
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.fuzz.campaign import Campaign
from groupquake.fuzz.connections import StallDetector
from groupquake.fuzz.judge import Verdict, judges
from groupquake.fuzz.summary import coverage, summary
from groupquake.fuzz.target import Target, own_broker, ready
from loadtest.wire import WireError
from reference_coordinator.classic.releases import default_coordinator, profile_for
from scenarios.fields import BIG_SEED

CODES = {
    Verdict.EXPLAINED: Exit.PASS,
    Verdict.UNEXPLAINED: Exit.FAIL,
    Verdict.UNKNOWN: Exit.UNKNOWN,
}


def _address(text: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not is_port(port):
        raise click.BadParameter(f"'{text}' is not an address; write 127.0.0.1:9092")
    return host, int(port)


@click.command()
@kafka_option
@coordinator_option
@click.option("--sequences", type=click.IntRange(1, 1_000_000), default=1_000, show_default=True,
              help="Number of sequences.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, BIG_SEED), default=7, show_default=True,
              help="Decides the sequences.")  # fmt: skip
@click.option("--in-flight", type=click.IntRange(1, 500), default=60, show_default=True,
              help="Number of sequences at the same time, each in its own group.")  # fmt: skip
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"),
              show_default=True, help="Parent of the folder with the event files.")  # fmt: skip
@click.option("--at", metavar="HOST:PORT", type=_address,
              help="Use a running broker. [starts one]")  # fmt: skip
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
    broker: AbstractContextManager[Target]
    with judges() as pool:
        try:
            if at is None:
                broker = own_broker(kafka, coordinator, folder / "brokers", console.progress)
            else:
                broker = nullcontext(ready(*at, kafka, coordinator))
            with broker as target, StallDetector(target.host, target.port) as stalls:
                campaign = Campaign(
                    target, stalls, profile, pool, seed, in_flight, folder, console.progress
                )
                outcome = campaign.run(sequences)
        except WireError as error:
            raise UnreachableError(str(error)) from error
        covered = coverage(outcome, campaign)
    Console.result(*summary(outcome, covered, campaign))
    return CODES[outcome.worst]
