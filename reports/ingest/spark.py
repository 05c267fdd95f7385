"""The Spark session: on this machine, on another master, or one that is open already."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.ingest import local_session
from reports.ingest.jvm import JvmError, spark_home
from reports.ingest.local_session import LocalSession
from scenarios.regular_files import append_regular

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMON = {
    "spark.app.name": "groupquake",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
CONFIGURED_BY = (
    *("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "PYSPARK_SUBMIT_ARGS"),
    *("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE"),
)
"""Variables by which users configure Spark."""

_prepared: list[LocalSession] = []
"""The session that `prepare` began to start, until `session` takes it."""


def prepare(
    master: str,
    size: int,
    log: Path,
    rehearsal: "Callable[[SparkSession], None] | None" = None,
) -> None:
    """Start a session on this machine in the background, for `session` to take.

    With a rehearsal the session opens and runs that job, niced: brokers may still run. Nothing is
    started for another master, or where the user configures Spark.
    """
    if _prepared or not _plain(master) or _running() is not None:
        return
    with suppress(JvmError):
        given = {**COMMON, "spark.master": master}
        starting = LocalSession(given, size, log, niced=rehearsal is not None)
        if rehearsal is not None:
            starting.rehearse(rehearsal)
        _prepared.append(starting)


@contextmanager
def session(master: str, size: int, log: Path) -> "Iterator[SparkSession]":
    """Open a session for evidence of `size` bytes; a session that is open is used as it is.

    Spark's own output goes to `log`.
    """
    if not _prepared and (running := _running()) is not None:
        yield running
        return
    prepare(master, size, log)
    if _prepared:
        own = _prepared.pop()
        with suppress(JvmError):  # then Spark says itself what is wrong
            spark = own.session()
            try:
                yield spark
            finally:
                own.close()
            return
    with stderr_to(log):
        spark = _submitted(master, size)
    try:
        yield spark
    finally:
        spark.stop()


def _plain(master: str) -> bool:
    """Say whether a session on this machine needs nothing that only `spark-submit` does."""
    configured = any(name in os.environ for name in CONFIGURED_BY)
    return master.startswith("local") and not configured and not (spark_home() / "conf").exists()


def _running() -> "SparkSession | None":
    LocalSession.await_stop()
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession  # noqa: PLC0415 (it is imported already)

    return SparkSession.getActiveSession()


def _submitted(master: str, size: int) -> "SparkSession":
    """Open a session by `spark-submit`, which heeds every setting of the user's."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 (it loads slowly)

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options: dict[str, Any] = COMMON
    if master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        java = {"spark.driver.extraJavaOptions": " ".join(local_session.java_options(size))}
        options = options | local_session.settings(size) | java
    builder = SparkSession.builder.master(master).config(map=options)
    with local_session.sigint_kept():
        return builder.getOrCreate()


@contextmanager
def stderr_to(log: Path) -> Iterator[None]:
    """Redirect standard error to a file until the block ends; child processes keep the file."""
    sys.stderr.flush()
    ours = os.dup(2)
    with append_regular(log) as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
