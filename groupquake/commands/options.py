"""Options that several commands share, and the experiment that they name."""

import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, get_args

import click

from groupquake.console import OUTPUT
from scenarios.releases import DEFAULT_RELEASE, Coordinator

if TYPE_CHECKING:
    from scenarios import Experiment

WIDTH = 99
"""Of lines of text, in columns."""
coordinator_option = click.option(
    "--coordinator",
    type=click.Choice(get_args(Coordinator)),
    help="Group coordinator, for releases with two. [the release's default]",
)
kafka_option = click.option(
    "--kafka", metavar="VERSION", default=DEFAULT_RELEASE, show_default=True, help="Kafka release."
)
master_option = click.option(
    "--master", default="local[*]", show_default=True, help="Spark master for the analysis."
)


def experiment_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the experiment that it is about, and what may differ from its file."""
    for one in (
        click.option(
            "--set", "set_", multiple=True, metavar="KEY=VALUE",
            help="Change one value of the file.",
        ),
        coordinator_option,
        click.option("--kafka", metavar="VERSION", help="Kafka release, such as 4.3.0."),
        click.argument("name", metavar="NAME|FILE"),
    ):  # fmt: skip
        command = one(command)
    return command


def _note(context: click.Context, option: click.Parameter, given: bool) -> None:
    """Keep the value of an option for the command's console."""
    context.meta.setdefault(OUTPUT, {})[option.name] = given


json_option = click.option(
    "--json", is_flag=True, expose_value=False, callback=_note,
    help="Print the result as JSON, and nothing else on standard output.",
)  # fmt: skip


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command what its console prints: more, less, or the result as JSON."""
    for one in (
        json_option,
        click.option(
            "--verbose", "-v", is_flag=True, expose_value=False, callback=_note,
            help="Print details too: what witnesses saw, what the load logs.",
        ),
        click.option(
            "--quiet", "-q", is_flag=True, expose_value=False, callback=_note,
            help="Print the result and errors only.",
        ),
    ):  # fmt: skip
        command = one(command)
    return command


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of Spark, and their values as `spark` (`SparkOptions`)."""

    @click.option("--master", metavar="URL", help="Spark's master.  [default: local[*]]")
    @click.option(
        "--remote", metavar="URL", envvar="SPARK_REMOTE", help="A Spark Connect server, sc://…."
    )
    @click.option("--conf", multiple=True, metavar="KEY=VALUE", help="One of Spark's settings.")
    @click.option(
        "--archive",
        metavar="FILE|none",
        help="What `dev spark-archive` wrote, for executors; none: they have groupquake."
        "  [default: made where Spark does not run on this machine]",
    )
    @wraps(command)
    def with_spark(
        *given: Any,
        master: str | None,
        remote: str | None,
        conf: Sequence[str],
        archive: str | None,
        **others: Any,
    ) -> Any:
        from reports.ingest.spark import SparkOptions  # noqa: PLC0415 (Spark loads slowly)

        if master is not None and remote is not None:
            raise click.UsageError("give --master or --remote (or SPARK_REMOTE), not both")
        if wrong := [setting for setting in conf if "=" not in setting]:
            raise click.BadParameter(f"--conf {wrong[0]}: write KEY=VALUE")
        settings = dict(setting.split("=", 1) for setting in conf)
        return command(*given, spark=SparkOptions(master, remote, settings, archive), **others)

    return with_spark


def is_port(text: str) -> bool:
    """Whether text is the number of a TCP port."""
    return re.fullmatch("[0-9]{1,5}", text) is not None and 0 < int(text) < 65536


def resolve(
    name: str, kafka: str | None, coordinator: str | None, settings: Sequence[str]
) -> "Experiment":
    """Load an experiment by file or library name, with the changes of the command line."""
    from scenarios import find  # noqa: PLC0415 (the models load slowly)

    experiment = find(name)
    cluster = {"version": kafka, "coordinator": coordinator}
    # quoted, since YAML reads `4.3` as a number
    chosen = [f'cluster.{key}="{value}"' for key, value in cluster.items() if value]
    changes = [*settings, *chosen]
    return experiment.override(changes) if changes else experiment


# Each that follows is the `type` of an option, and raises BadParameter.


def duration(text: str) -> int:
    """Read a duration such as 45s, as ms."""
    from scenarios.durations import parse_positive_ms  # noqa: PLC0415 (the models load slowly)

    try:
        return parse_positive_ms(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def servers(text: str) -> str:
    """Check a list of servers; IPv6 addresses are in brackets."""
    for server in text.split(","):
        host, colon, port = server.rpartition(":")
        if not (host and colon and is_port(port)):
            raise click.BadParameter(f"'{server}' is not a server; write HOST:PORT,HOST:PORT,…")
    return text
