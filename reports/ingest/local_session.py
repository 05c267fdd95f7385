"""A session on this machine, in a JVM that starts before the session is needed.

PySpark has one JVM a process and one session at a time. So has this module: the JVM stays for the
next session, with the options of the first.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from reports.ingest import class_archive
from reports.ingest.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_BYTES = 100_000_000
"""Up to this size of evidence, a session is set up for a short life."""
COMPILED_BYTES = 1_000_000_000
"""Up to this size of evidence, compiling optimised code takes longer than it saves."""

LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.files.maxPartitionBytes": "32m",  # some splits for each core, however few logs
}
SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
BIG = {
    "spark.sql.inMemoryColumnarStorage.compressed": "false",  # what is kept is read soon
    "spark.sql.inMemoryColumnarStorage.batchSize": "3000",  # the buffers of a batch grow by copies
}
QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
SMALL_HEAP, BIG_HEAP = "-Xmx1g", "-XX:MaxRAMPercentage=25"
"""The heap: for big evidence a quarter of the machine's memory, so that what is kept fits in it."""


def settings(size: int) -> dict[str, str]:
    """Return the settings of a session on this machine for evidence of `size` bytes."""
    return LOCAL | (SMALL if size <= SMALL_BYTES else BIG)


def java_options(size: int) -> tuple[str, ...]:
    """Return the JVM's options for such evidence, but for its heap."""
    quick = QUICK_JAVA if size <= COMPILED_BYTES else ()
    return (*quick, "-XX:+UseSerialGC" if size <= SMALL_BYTES else "-XX:+UseParallelGC")


def heap(size: int) -> str:
    """Return the JVM's option for its heap; `spark-submit` takes none."""
    return SMALL_HEAP if size <= SMALL_BYTES else BIG_HEAP


@contextmanager
def sigint_kept() -> Iterator[None]:
    """Keep the handler of SIGINT while a session opens: PySpark installs its own."""
    interrupted = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupted)


class LocalSession:
    """A session whose JVM starts at once, while the caller does something else."""

    _jvm: ClassVar[Jvm | None] = None
    _gateway: ClassVar[Any] = None
    _stopping: ClassVar[threading.Thread | None] = None

    def __init__(
        self,
        given: Mapping[str, str],
        size: int,
        log: Path,
        *,
        niced: bool = False,
    ) -> None:
        """Start the JVM, unless this process has one; `niced` lets other processes go first.

        `given` are settings of every session, `size` is that of the evidence in bytes.
        """
        self._settings = {**given, **settings(size)}
        self._spark: SparkSession | None = None
        self._opening = threading.Lock()
        if LocalSession._jvm is None:
            options = (heap(size), *java_options(size), *class_archive.options())
            LocalSession._jvm = Jvm(options, log, niced=niced)

    def rehearse(self, job: "Callable[[SparkSession], None]") -> None:
        """Open the session in the background and run a small job in it; its errors do not count."""
        import pyspark.sql  # noqa: F401, PLC0415 (two threads that import it at once both fail)

        def run() -> None:
            with suppress(Exception):
                job(self.session())

        threading.Thread(target=run, name="Spark's start", daemon=True).start()

    def close(self) -> None:
        """Stop the session in the background; the JVM ends with this process."""
        if self._spark is not None:
            LocalSession._stopping = threading.Thread(target=self._spark.stop, daemon=True)
            LocalSession._stopping.start()
            self._spark = None

    @classmethod
    def await_stop(cls) -> None:
        """Wait until the session that was closed has stopped."""
        if cls._stopping is not None:
            cls._stopping.join()

    def session(self) -> "SparkSession":
        """Return the session, once it is open; a rehearsal may go on. Raises JvmError."""
        with self._opening:
            if self._spark is None:
                self.await_stop()
                self._spark = self._open()
            return self._spark

    def _open(self) -> "SparkSession":
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415 (the JVM starts meanwhile)
        from pyspark.sql import SparkSession  # noqa: PLC0415

        if LocalSession._gateway is None:
            assert LocalSession._jvm is not None
            LocalSession._gateway = _connected(*LocalSession._jvm.address())
        os.environ["PYSPARK_PYTHON"] = sys.executable  # of the workers
        conf = SparkConf(_jvm=LocalSession._gateway.jvm).setAll([*self._settings.items()])
        with sigint_kept():
            SparkContext(conf=conf, gateway=LocalSession._gateway)
        return SparkSession.builder.getOrCreate()


def _connected(port: int, secret: str) -> Any:
    """Let PySpark connect to a gateway; it takes the address from variables alone."""
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    address = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(address)
    try:
        return launch_gateway()
    finally:  # other processes of ours are not to find it
        for name in address:
            del os.environ[name]
