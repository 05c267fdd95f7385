"""The JVM of Spark's sessions on this machine, started at once and without `spark-submit`.

`spark-submit` starts a shell and a JVM to compose a command, and then the JVM of that command. Here
the command is composed in Python: PySpark's gateway, with the options that Spark's own launcher
gives it. A session is open after 6.3 s so, and after 7.7 s in PySpark's own way (median of pairs,
each with an archive of classes, two cores at a load of 15).

The archive holds the classes that Spark loads: a JVM maps it instead of reading 15,000 classes
(class data sharing, JEP 350). The first JVM that finds none writes it as it ends, 190 MB in the
user's cache folder; nothing waits for it. A session and its first Python job take 5.7 s of
processor time with it and 10.4 s without (medians of pairs, JDK 17, two cores at a load of 20).
"""

import atexit
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from reports.ingest import cache
from reports.judgement.errors import ExecutionError
from reports.timing import JVM_START_S
from scenarios.regular_files import append_regular

GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
"""Opens a port for PySpark, and ends when its standard input ends: with the process that has it."""

_OPENED = """
java.base/java.lang java.base/java.lang.invoke java.base/java.lang.reflect java.base/java.io
java.base/java.net java.base/java.nio java.base/java.util java.base/java.util.concurrent
java.base/java.util.concurrent.atomic java.base/jdk.internal.ref java.base/sun.nio.ch
java.base/sun.nio.cs java.base/sun.security.action java.base/sun.util.calendar
java.security.jgss/sun.security.krb5
"""
MODULES = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED.split()),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""What Spark 4.3 gives each of its JVMs (`org.apache.spark.launcher.JavaModuleOptions`)."""
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseParallelGC")
"""Rows are few in the JVM: compiling optimised code would take longer than it saves."""
ARCHIVES = "classes-*.jsa"
UNSAID = "-Xlog:cds*=off"
"""Keeps a line for each class that no archive can hold out of the JVM's log."""
HEADER = 4
"""The bytes of an archive that tell its kind; a JVM writes them last, zeros before."""
NICENESS = 10
"""Of a JVM that starts while brokers run."""


class Jvm:
    """A JVM that starts; it ends with this process."""

    def __init__(self, options: Sequence[str], log: Path, *, niced: bool = False) -> None:
        """Start it with `options` and return at once; its output goes to `log`. Raises OSError."""
        self._folder = tempfile.TemporaryDirectory(
            prefix="groupquake-jvm-", ignore_cleanup_errors=True
        )
        self._address = Path(self._folder.name) / "address"
        self._log = log
        command = ["nice", "-n", str(NICENESS)] if niced else []
        home = spark_home()
        class_path = f"{home / 'conf'}{os.pathsep}{home / 'jars'}/*"
        command += [str(java()), *options, *MODULES, "-cp", class_path, GATEWAY]
        with append_regular(log) as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=os.environ | {
                    "SPARK_HOME": str(home),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_CONNECT_MODE": "0",
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._address),
                },
                process_group=0,  # Ctrl-C is not the JVM's to handle
            )  # fmt: skip
        atexit.register(self._give_up)

    def _give_up(self) -> None:
        """Kill it: without the folder of its address it would stay for ever."""
        self.process.kill()
        self._folder.cleanup()

    @cached_property
    def address(self) -> tuple[int, str]:
        """The port of the gateway, once it is open, and its secret. Raises ExecutionError."""
        deadline = time.monotonic() + JVM_START_S
        while not self._address.exists():
            if (ended := self.process.poll()) is not None:
                raise ExecutionError(
                    f"Spark's JVM ended with exit code {ended}; {self._log} says why"
                )
            if time.monotonic() > deadline:
                raise ExecutionError(
                    f"Spark's JVM did not start within {JVM_START_S:g} s; see {self._log}"
                )
            time.sleep(0.01)
        content = self._address.read_bytes()  # written under another name, then renamed
        atexit.unregister(self._give_up)
        self._folder.cleanup()
        port, length = struct.unpack_from(">ii", content)
        return port, content[8 : 8 + length].decode()


def java() -> Path:
    """Return the `java` that Spark takes: that of JAVA_HOME, else of PATH."""
    home = os.environ.get("JAVA_HOME")
    return Path(home) / "bin" / "java" if home else Path("java")


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
    archive = archive_place()
    if archive is None:
        return []
    if _whole(archive):
        cache.use(archive, ARCHIVES)
        return [f"-XX:SharedArchiveFile={archive}"]
    with suppress(OSError):
        archive.parent.mkdir(parents=True, exist_ok=True)
    return [f"-XX:ArchiveClassesAtExit={archive}", UNSAID]


def archive_place() -> Path | None:
    """Return where the archive for this JDK and these jars belongs; None without a JDK."""
    found = shutil.which(java())
    if found is None:
        return None
    home = Path(found).resolve().parent.parent
    files = [home / "release", home / "lib" / "modules", *sorted((spark_home() / "jars").iterdir())]
    key = sha256()
    for file in filter(Path.is_file, files):
        state = file.stat()
        key.update(f"{file} {state.st_size} {state.st_mtime_ns}\n".encode())
    return cache.place() / f"classes-{key.hexdigest()[:16]}.jsa"


def _whole(archive: Path) -> bool:
    """Tell whether a JVM wrote an archive to its end; it may be writing still, or was killed."""
    try:
        with archive.open("rb") as file:
            return any(file.read(HEADER))
    except OSError:
        return False
