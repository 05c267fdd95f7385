"""Options that several commands share, and the experiment that they name."""

from collections.abc import Sequence
from typing import get_args

import click

from scenarios import Experiment, find
from scenarios.releases import Coordinator

experiment_argument = click.argument("name", metavar="NAME|FILE")
kafka_option = click.option("--kafka", metavar="VERSION", help="Kafka release, such as 4.3.0.")
coordinator_option = click.option(
    "--coordinator",
    type=click.Choice(get_args(Coordinator)),
    help="Group coordinator, for releases with two. [the release's default]",
)
set_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change one value of the file."
)
master_option = click.option(
    "--master", default="local[*]", show_default=True, help="Spark master for the analysis."
)


def resolve(
    name: str, kafka: str | None, coordinator: str | None, settings: Sequence[str]
) -> Experiment:
    """Load an experiment by file or library name, with the changes of the command line."""
    experiment = find(name)
    cluster = {"version": kafka, "coordinator": coordinator}
    # quoted, since YAML reads `4.3` as a number
    chosen = [f'cluster.{key}="{value}"' for key, value in cluster.items() if value]
    changes = [*settings, *chosen]
    return experiment.override(changes) if changes else experiment
