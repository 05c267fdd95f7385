"""`python -m selftest synth`: evidence of any size, simulated."""

from pathlib import Path

import click

from groupquake.console import Console
from groupquake.exits import Exit, writing
from kafka_protocol.log_line import is_numbered
from reference_coordinator.classic.releases import profile_for
from scenarios.fields import BIG_SEED
from scenarios.releases import DEFAULT_RELEASE
from selftest.synth.folder import make
from selftest.synth.spec import MIXES, Spec


@click.command()
@click.option("--groups", type=click.IntRange(1, 999_999), default=1_000, show_default=True,
              help="Number of groups.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(32, 999_999), default=120, show_default=True,
              help="Length of the run. A group writes 8 KB a second in a storm.")  # fmt: skip
@click.option("--mix", type=click.Choice(list(MIXES)), default="steady", show_default=True,
              help="steady: heartbeats, commits, two deploys a day; storm: faults.")  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path), required=True, metavar="FOLDER",
              help="The run folder to make.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, BIG_SEED), default=0, show_default=True,
              help="Decides everything.")  # fmt: skip
@click.option("--kafka", metavar="VERSION", default=DEFAULT_RELEASE, show_default=True,
              help="Kafka release, from 4.0 on.")  # fmt: skip
def synth(groups: int, seconds: float, mix: str, output: Path, seed: int, kafka: str) -> Exit:
    """Write a run folder of simulated groups, for `groupquake report`.

    The reference coordinator decides what the brokers answer, so that the report finds nothing.
    """
    profile = profile_for(kafka, "java")
    if profile is None or not is_numbered(kafka):
        raise click.UsageError(f"--kafka {kafka}: logs are simulated for releases from 4.0 on")
    if output.exists():
        raise click.UsageError(f"{output} exists; give a folder that is to be made")
    with writing(f"{output}: cannot be written"):
        made = make(Spec(groups, seconds, mix, seed, kafka, profile), output, Console().progress)
    Console.result(f"{output}: {made.bytes / 1e6:,.1f} MB, {made.lines:,} lines")
    return Exit.PASS
