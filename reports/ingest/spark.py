"""The Spark session: local by default, or on another master."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

SMALL_LINES = 200_000
"""Up to this number of lines, compiling optimised code takes longer than it saves."""

COMMON = {"spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": "false"}
LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}
SMALL = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


@contextmanager
def session(master: str, lines: int, log: Path) -> Iterator[SparkSession]:
    """Open a session for evidence of `lines` lines; an open session is used as it is.

    Spark's own output goes to `log`.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    with stderr_to(log):
        spark = _build(master, lines)
    try:
        yield spark
    finally:
        spark.stop()


def _build(master: str, lines: int) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = dict(COMMON)
    if master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        options |= LOCAL
        options |= SMALL if lines <= SMALL_LINES else {}
    builder = SparkSession.builder.master(master).appName("groupquake")
    for name, value in options.items():
        builder = builder.config(name, value)
    interrupted = signal.getsignal(signal.SIGINT)
    spark = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupted)  # PySpark installs its own
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def stderr_to(log: Path) -> Iterator[None]:
    """Redirect standard error to a file until the block ends; child processes keep the file."""
    sys.stderr.flush()
    ours = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
