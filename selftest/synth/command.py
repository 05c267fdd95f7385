"""`python -m selftest synth`: evidence of any size, simulated."""

import re
from pathlib import Path

import click

from groupquake.console import Console
from groupquake.exits import Exit
from kafka_protocol.log_line import is_numbered
from reference_coordinator.classic.releases import profile_for
from scenarios.fields import BIG_SEED
from scenarios.model import Cluster
from selftest.synth.folder import Made, make
from selftest.synth.mix import MIXES
from selftest.synth.order import Order

UNITS = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SIZE = re.compile(rf"([0-9]{{1,6}}(?:\.[0-9]+)?) ?({'|'.join(UNITS)})", re.IGNORECASE)


def _bytes(_context: click.Context, _parameter: click.Parameter, text: str) -> float:
    """Read a size such as 2GB; the units are decimal."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"'{text}' is no size; write 200MB or 2GB, 999999TB at most")
    return float(match[1]) * UNITS[match[2].upper()]


@click.command()
@click.option(
    "--groups",
    type=click.IntRange(1, 999_999),
    default=1_000,
    show_default=True,
    help="Number of groups.",
)
@click.option(
    "--size",
    callback=_bytes,
    metavar="SIZE",
    default="200MB",
    show_default=True,
    help="About how large the logs become together. More bytes a group make the run longer.",
)
@click.option(
    "--mix",
    type=click.Choice(list(MIXES)),
    default="steady",
    show_default=True,
    help="steady: heartbeats, commits, two deploys a day. storm: faults all the time.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FOLDER",
    help="The run folder to make.",
)
@click.option("--seed", type=click.IntRange(0, BIG_SEED), default=0, show_default=True,
              help="Decides everything.")  # fmt: skip
@click.option("--kafka", metavar="VERSION", default=Cluster().version, show_default=True,
              help="Kafka release, from 4.0 on.")  # fmt: skip
@click.option("--plant", type=click.IntRange(0, 999_999), default=0, show_default=True,
              help="Number of findings to plant; planted.jsonl lists them.")  # fmt: skip
def synth(
    groups: int, size: float, mix: str, output: Path, seed: int, kafka: str, plant: int
) -> Exit:
    """Write a run folder of simulated groups, for `groupquake report`.

    The reference coordinator decides what the brokers answer, so that the report finds nothing but
    what is planted.
    """
    profile = profile_for(kafka, "java")
    if profile is None or not is_numbered(kafka):
        raise click.UsageError(f"--kafka {kafka}: logs are simulated for releases from 4.0 on")
    if plant > groups:
        raise click.UsageError(f"--plant {plant}: there is one in a group, and {groups} groups")
    if output.exists():
        raise click.UsageError(f"{output} exists; give a folder that is to be made")
    order = Order(groups, size, MIXES[mix], mix, seed, kafka, profile, plant)
    try:
        made = make(order, output, Console().progress)
    except ValueError as error:
        raise click.UsageError(f"--size {size / 1e6:g}MB: {error}") from error
    except OSError as error:
        raise click.UsageError(f"{output}: cannot be written ({error.strerror})") from error
    Console.result(_summary(made, output, plant))
    return Exit.PASS


def _summary(made: Made, output: Path, plant: int) -> str:
    planted = f", {len(made.planted)} of {plant} findings planted" if plant else ""
    return (
        f"{output}: {made.bytes / 1e6:,.1f} MB, {made.lines:,} lines,"
        f" {made.seconds:,.0f} s of a run{planted}"
    )
