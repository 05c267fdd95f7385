"""A session of the user's choice: on this machine, a cluster's, or one of Spark Connect.

On this machine, unless the user configures Spark, it may open in the background, even before the
evidence is complete, and its JVM maps an archive of the classes that Spark loads instead of reading
15,000 of them (class data sharing, JEP 350). The first JVM that finds none writes it as it ends,
190 MB in the user's cache folder; nothing waits for it. A session and its first Python job take
5.7 s of processor time with it and 10.4 s without (medians of pairs, JDK 17, two cores at a load
of 20). PySpark has one JVM a process and one session at a time: the JVM stays for the next session.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil

from reports.ingest import archive, cache
from reports.judgement.errors import EvidenceError, ExecutionError
from reports.timing import JVM_ENDS_S, JVM_STARTS_S, REACHED_WITHIN_S, SUBMITTED_S
from scenarios.regular_files import append_regular

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

NONE = "none"  # as an archive: the executors have our packages already
CONNECT_CONF = {"spark.sql.session.timeZone": "UTC"}
"""The settings that a session of Spark Connect can change; those of the user count more."""
CONF = {**CONNECT_CONF, "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
CLUSTER = {"spark.speculation": "true"}
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
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseParallelGC")
"""Rows are few in the JVM: compiling optimised code would take longer than it saves."""
CLASSES = "spark-classes-*.jsa"
UNSAID = "-Xlog:cds*=off"
"""Keeps a line for each class that no archive can hold out of the JVM's log."""
HEADER = 4
"""The bytes of an archive of classes that tell its kind; a JVM writes them last, zeros before."""
NICENESS = 10  # of a session that opens while brokers run
SMALL_BYTES = 100_000_000
"""Up to this size of evidence, a session on this machine is set up for a short life."""
CONFIGURED_BY = (
    *("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "PYSPARK_SUBMIT_ARGS"),
    *("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE"),
)
"""Variables by which users configure Spark; a process of `spark-submit` has some of them."""
CONNECT_PORT = 15002
_OF_A_JVM = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The variable by which PySpark tells a JVM where it is awaited."""
_ADDRESS = re.compile(r"(?:local(?:\[.+\]|-cluster\[.+\])?|yarn)$|(?:spark|sc|k8s)://.")
"""What Spark takes for a master, and the address of a Connect server."""


@dataclass(frozen=True)
class SparkOptions:
    """Where Spark runs.

    `remote` is the address of a Spark Connect server (`sc://HOST:PORT`), `conf` Spark's settings.
    `archive` is the archive for executors (see `archive`), a path or a URI, or `NONE`; without one
    it is made, where executors are not on this machine. Without `master` and `remote`, it is
    `spark-submit`'s master in a process that this started, else this machine.
    """

    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    archive: str | None = None

    @property
    def asked_for(self) -> bool:
        """Whether anything of it is given."""
        return self != SparkOptions()

    @property
    def plain(self) -> bool:
        """Whether Spark runs on this machine and nothing is set."""
        local = self.remote is None and (self.master or "local[*]").startswith("local")
        configured = any(name in os.environ for name in CONFIGURED_BY)
        configured |= (spark_home() / "conf").exists()
        return local and not (configured or self.conf or self.archive)


_rehearsing: list[threading.Thread] = []
"""What opens a session already."""
_not_started: list[ExecutionError] = []
"""Why it did not open one, where another try would take as long."""
_opened: "list[SparkSession]" = []
"""The session that this process uses: PySpark knows of an active one by thread."""
_stopping: list[threading.Thread] = []  # what stops the last session


def prepare(options: SparkOptions, size: int, log: Path, *, rehearsal: bool = False) -> None:
    """Open a session on this machine in the background, with its workers, for `session` to take.

    In a rehearsal brokers may still run: it is niced. Nothing is started for another master, or
    where the user configures Spark. Whatever goes wrong here, `session` says so.
    """
    if _rehearsing or not options.plain or _running() is not None:
        return
    import pyspark.sql  # noqa: F401, PLC0415 (two threads that import it at once both fail)

    given = options, size, log, NICENESS * rehearsal
    _rehearsing.append(threading.Thread(target=_rehearse, args=given, daemon=True))
    _rehearsing[0].start()


def _rehearse(options: SparkOptions, size: int, log: Path, niceness: int) -> None:
    """Open a session, and let a task on each core import what other tasks need."""
    with suppress(Exception):  # `session` runs into it
        if os.getpriority(os.PRIO_PROCESS, 0) < niceness:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)  # its JVM has it
        try:
            opened = _open(options, size, log)
        except ExecutionError as error:
            _not_started.append(error)
        else:
            opened.range(1_000).mapInArrow(_imported, "id LONG").toArrow()


@contextmanager
def session(options: SparkOptions, size: int, log: Path) -> "Iterator[SparkSession]":
    """Open a session for evidence of `size` bytes; an open session is used as it is.

    Spark's own output goes to `log`. Raises EvidenceError where the cluster cannot be reached, and
    as `start_jvm`.
    """
    if _rehearsing:
        _rehearsing.pop().join()
        if _not_started:
            raise _not_started.pop()
    elif (running := _running()) is not None:
        yield running
        return
    spark = _open(options, size, log)  # that of a rehearsal, if it is there
    _opened.append(spark)
    try:
        if options.archive is not None:
            if options.archive != NONE:
                archive.ship(spark, options.archive)
        elif options.remote or not (spark.conf.get("spark.master") or "").startswith("local"):
            archive.ship(spark, archive.cached())
        yield spark
    finally:
        _opened.remove(spark)
        if options.plain:  # it takes a second, and the JVM ends with this process
            _stopping.append(threading.Thread(target=spark.stop, daemon=True))
            _stopping[-1].start()
        else:
            spark.stop()


def _running() -> "SparkSession | None":
    while _stopping:
        _stopping.pop().join()
    if _opened:
        return _opened[-1]
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession  # noqa: PLC0415 (it is imported already)

    return SparkSession.getActiveSession()


def _open(options: SparkOptions, size: int, log: Path) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415 (it loads slowly)

    builder = SparkSession.builder.appName("groupquake")
    if options.remote is not None:
        reach(options.remote)
        builder = builder.remote(options.remote)
        return builder.config(map={**CONNECT_CONF, **options.conf}).getOrCreate()
    master = "local[*]" if options.plain and options.master is None else options.master
    if master is not None:
        reach(master)
        builder = builder.master(master)
    settings = {**CONF, **CLUSTER}
    if (master or "").startswith("local"):
        os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        settings = CONF | LOCAL | (SMALL if size <= SMALL_BYTES else {})
    settings |= options.conf
    with _sigint_kept():
        start_jvm(_quick() if options.plain else _submitted(settings, master), log, options.plain)
        return builder.config(map={**settings}).getOrCreate()


def _quick() -> "SparkConf":
    """Return the settings of a JVM for a short life on this machine."""
    from pyspark import SparkConf  # noqa: PLC0415 (it loads slowly)

    options = shlex.join([*QUICK, *archive_options()])
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    conf = SparkConf(loadDefaults=False).set("spark.driver.extraJavaOptions", options)
    return conf.set("spark.driver.memory", f"{max(memory >> 22, 1_024)}m")  # a quarter, as JVMs do


def _submitted(settings: Mapping[str, str], master: str | None) -> "SparkConf":
    from pyspark import SparkConf  # noqa: PLC0415 (it loads slowly)

    conf = SparkConf().setAll([*settings.items()])
    return conf if master is None else conf.setMaster(master)


def start_jvm(conf: "SparkConf", log: Path, plain: bool = True) -> None:
    """Let PySpark start this process's JVM, if it has none; its output goes to `log`.

    It ends with this process. PySpark itself waits for ever for one that hangs. Raises
    ExecutionError if it does not start: then it is ended. Where there is none to start, or none
    that answers, it raises what PySpark does.
    """
    from pyspark import SparkContext  # noqa: PLC0415 (it loads slowly)
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    if SparkContext._gateway is not None:  # noqa: SLF001 (PySpark has no public name for it)
        return
    started: list[Any] = []
    failed: list[Exception] = []
    others = {*psutil.Process().children(recursive=True)}
    within_s = JVM_STARTS_S if plain else SUBMITTED_S
    with append_regular(log) as file:

        def launch() -> None:
            try:
                started.append(launch_gateway(conf, {"stdout": file, "stderr": file}))
            except PySparkRuntimeError:
                pass  # the JVM ended
            except Exception as error:  # noqa: BLE001 (the caller raises it)
                failed.append(error)

        launching = threading.Thread(target=launch, daemon=True)
        launching.start()
        launching.join(within_s)
        if failed:
            _end_jvm(others)
            raise failed[0]
        if not started:
            why = (
                f"did not start within {within_s:g} s" if launching.is_alive() else "did not start"
            )
            _end_jvm(others)
            launching.join(JVM_ENDS_S)
            raise ExecutionError(
                f"Spark's JVM {why}; {log} says more (its Java is that of JAVA_HOME, or of PATH)"
            )
    SparkContext._ensure_initialized(gateway=started[0])  # noqa: SLF001


def _end_jvm(others: set[psutil.Process]) -> None:
    """Kill what PySpark started: the script `spark-submit`, and what that became or started.

    `others` were there before.
    """
    for process in {*psutil.Process().children(recursive=True)} - others:
        with suppress(psutil.Error):
            if _OF_A_JVM in process.environ():
                process.kill()


def spark_home() -> Path:
    """Return the folder of the Spark that PySpark brings."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def archive_options() -> list[str]:
    """Return the options of a JVM that uses the archive of classes, or writes it.

    A JVM goes on without an archive that it cannot use or write.
    """
    classes = archive_place()
    if classes is None:
        return []
    with suppress(OSError):
        classes.parent.mkdir(parents=True, exist_ok=True)
        with classes.open("rb") as file:
            if any(file.read(HEADER)):  # a JVM wrote it to its end
                cache.use(classes, CLASSES)
                return [f"-XX:SharedArchiveFile={classes}"]
    return [f"-XX:ArchiveClassesAtExit={classes}", UNSAID]


def archive_place() -> Path | None:
    """Return where the archive for this JDK and these jars belongs; None without a JDK."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home) / "bin" / "java" if home else "java")
    if java is None:
        return None
    program, jars = Path(java).resolve(), sorted((spark_home() / "jars").iterdir())
    jdk = program.parent.parent
    files = [program, jdk / "release", jdk / "lib" / "modules", *jars]
    key = sha256()
    for file in filter(Path.is_file, files):
        state = file.stat()
        key.update(f"{file} {state.st_size} {state.st_mtime_ns}\n".encode())
    return cache.place() / f"spark-classes-{key.hexdigest()[:16]}.jsa"


def _imported(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Import in a task what the tasks of a comparison need."""
    from reports.ingest import reading  # noqa: F401, PLC0415 (this module loads without Spark)

    return batches


@contextmanager
def _sigint_kept() -> Iterator[None]:
    """Keep the handler of SIGINT while a session opens: PySpark installs its own."""
    interrupted = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupted)


def reach(address: str) -> None:
    """Raise EvidenceError unless a master or server can be reached: Spark tries for minutes."""
    if not _ADDRESS.match(address):
        raise EvidenceError(
            f"{address}: no master of Spark; give local[*], spark://HOST:PORT, yarn or k8s://URL"
        )
    url = urlsplit(address)
    if url.scheme not in ("spark", "sc"):
        return
    reasons = []
    for server in url.netloc.split(","):
        host, _, port = server.partition(":")
        try:
            socket.create_connection((host, int(port or CONNECT_PORT)), REACHED_WITHIN_S).close()
        except (OSError, ValueError) as error:
            reasons.append(f"{server}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise EvidenceError(f"{address}: Spark cannot be reached there ({'; '.join(reasons)})")
