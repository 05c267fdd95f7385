"""`groupquake dev`: tests of groupquake itself, and container images."""

import click

from chaos.clusters import image as images
from groupquake.commands.class_archive import class_archive
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.selftest.fuzz.command import fuzz
from groupquake.selftest.mutants.command import mutants
from groupquake.selftest.synth.command import synth
from scenarios.model import Cluster


@click.group()
def dev() -> None:
    """Test groupquake itself, and build what it needs."""


dev.add_command(fuzz)
dev.add_command(mutants)
dev.add_command(synth)
dev.add_command(class_archive)


@dev.group()
def image() -> None:
    """Images for --cluster docker."""


@image.command()
@click.option(
    "--kafka",
    metavar="VERSION",
    default=Cluster().version,
    show_default=True,
    help="Kafka release.",
)
def build(kafka: str) -> Exit:
    """Build the image of a Kafka release, for use where apache/kafka cannot be pulled.

    It has a Debian root file system with Java (made by mmdebstrap, shared by all releases) and the
    release's jars. Existing parts are reused.
    """
    Console.result(images.build(kafka, Console().progress))
    return Exit.PASS
