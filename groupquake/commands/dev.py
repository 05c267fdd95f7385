"""`groupquake dev`: the fuzzer, and what runs elsewhere need: archives and images."""

from pathlib import Path

import click

from chaos.clusters import image as images
from groupquake.commands.options import kafka_option
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.fuzz.command import fuzz


@click.group()
def dev() -> None:
    """Fuzz brokers, and build archives and images."""


dev.add_command(fuzz)


@dev.command()
@click.option(
    "--output",
    metavar="FILE",
    type=Path,
    default=Path("groupquake.tar.gz"),
    show_default=True,
    help="The archive.",
)
def spark_archive(output: Path) -> Exit:
    """Write the archive that brings groupquake to Spark's executors.

    `groupquake report` makes and sends it by itself. Give it a stored one with --archive, for
    executors of another system, or in a notebook: reports.ingest.archive.ship(spark, FILE).
    """
    from reports.ingest import archive  # noqa: PLC0415 (Spark loads slowly)

    archive.build(output)
    Console.result(str(output))
    return Exit.PASS


@dev.group()
def image() -> None:
    """Images for --cluster docker."""


@image.command()
@kafka_option
def build(kafka: str) -> Exit:
    """Build the image of a Kafka release, for use where apache/kafka cannot be pulled.

    It has a Debian root file system with Java (made by mmdebstrap, shared by all releases) and the
    release's jars. Existing parts are reused.
    """
    Console.result(images.build(kafka, Console().progress))
    return Exit.PASS
