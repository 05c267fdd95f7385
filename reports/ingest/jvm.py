"""The JVM of a Spark session on this machine, started at once and without `spark-submit`.

`spark-submit` starts a shell and a JVM to compose a command, and then the JVM of that command. Here
the command is composed in Python: PySpark's gateway, with the options that Spark's own launcher
gives it. This module imports the standard library alone, so that the JVM starts before PySpark is
imported.

What it gains: a session is open after 6.3 s where PySpark's own way takes 7.7 s (median of pairs,
each with an archive of classes, two cores at a load of 15), and a JVM beside brokers has less
priority than they.
"""

import os
import struct
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

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

NICENESS = 10
"""Of a JVM that starts while brokers run."""
START_S = 60.0


class JvmError(Exception):
    """Spark's JVM did not start."""


class Jvm:
    """A JVM that starts; it ends with this process, or when `close` is called."""

    def __init__(self, options: Sequence[str], log: Path, *, niced: bool = False) -> None:
        """Start the JVM with `options` and return at once; its output goes to `log`.

        Raises JvmError.
        """
        self._folder = tempfile.TemporaryDirectory(
            prefix="groupquake-jvm-", ignore_cleanup_errors=True
        )
        self._address = Path(self._folder.name) / "address"
        nice = ["nice", "-n", str(NICENESS)] if niced else []
        try:
            with append_regular(log) as output:
                self._process = subprocess.Popen(
                    [*nice, *command(options)],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    env=_environment() | {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._address)},
                    process_group=0,  # Ctrl-C is not the JVM's to handle
                )
        except OSError as error:
            self._folder.cleanup()
            raise JvmError(f"Spark's JVM cannot be started: {error}") from error
        self._unless_open = weakref.finalize(self, _kill, self._process)
        """Kills the JVM: without the folder of its address it would stay for ever. This process may
        end, and remove the folder, while the JVM starts."""

    def address(self) -> tuple[int, str]:
        """Wait for the gateway; return its port and its secret. Raises JvmError."""
        deadline = time.monotonic() + START_S
        while not self._address.exists():
            ended = self._process.poll()
            if ended is not None or time.monotonic() > deadline:
                self.close()
                did = f"did not start within {START_S:g} s"
                raise JvmError(
                    f"Spark's JVM {did if ended is None else f'ended with exit code {ended}'}"
                )
            time.sleep(0.01)
        self._unless_open.detach()
        content = self._address.read_bytes()  # written under another name, then renamed
        self._folder.cleanup()
        port, length = struct.unpack_from(">ii", content)
        return port, content[8 : 8 + length].decode()

    def close(self) -> None:
        """Let the JVM end: it stops its session and removes its files, without being waited for.

        One that has not given its address yet is killed: it has no session.
        """
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._unless_open()
        self._folder.cleanup()

    def wait(self, seconds: float) -> int:
        """Wait until the JVM has ended; return its exit code."""
        return self._process.wait(seconds)


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()


def command(options: Sequence[str]) -> list[str]:
    """Return the command line of a gateway, given the JVM's own options."""
    home = spark_home()
    class_path = f"{home / 'conf'}{os.pathsep}{home / 'jars'}/*"
    return [str(java()), *options, *MODULES, "-cp", class_path, GATEWAY]


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


def _environment() -> dict[str, str]:
    return os.environ | {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONNECT_MODE": "0",
    }
