"""`groupquake dev class-archive`: lets Spark start in half the time on this machine."""

import tempfile
from pathlib import Path

import click

from chaos.clusters import ClusterError
from chaos.clusters.java import find_java
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.selftest.synth.folder import Order, make
from groupquake.selftest.synth.mix import MIXES
from reference_coordinator.classic.releases import NEWEST
from scenarios.model import Cluster

GROUPS = 4
LOG_BYTES = 400_000.0


@click.command()
def class_archive() -> Exit:
    """Write an archive of Spark's classes, with which Spark starts in half the time.

    It takes 190 MB in the user's cache folder and half a minute: a simulated run is judged. It
    belongs to this JDK and these jars; with others it is not used.
    """
    from reports import analyse  # noqa: PLC0415 (Spark loads slowly)
    from reports.ingest import class_archive as archives  # noqa: PLC0415
    from reports.ingest.jvm import Jvm, JvmError  # noqa: PLC0415
    from reports.ingest.spark import local  # noqa: PLC0415

    find_java()
    kafka = Cluster().version
    order = Order(GROUPS, LOG_BYTES, MIXES["storm"], "storm", 0, kafka, NEWEST)
    with tempfile.TemporaryDirectory(prefix="groupquake-classes-") as name:
        run = Path(name) / "run"
        make(order, run, lambda _: None)

        def train(option: str) -> Jvm:
            session = local("local[*]", 0, Path(name) / "spark.log", archive=[option])
            analyse(session.session(), run)
            session.close()
            session.await_stop()
            return session.jvm

        try:
            archive = archives.make(train)
        except (JvmError, OSError) as error:
            raise ClusterError(f"no archive of Spark's classes: {error}") from error
    Console.result(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB of Spark's classes")
    return Exit.PASS
