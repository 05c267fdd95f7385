"""A standalone Spark cluster of processes on this machine, as PySpark's package brings it.

The workers are as bare as a cluster's: each has a folder of its own to work in, neither this
project nor a package of its environment on Python's path, and a Python without packages.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.request import urlopen

import pyspark

HOST = "127.0.0.1"
SPARK_HOME = Path(pyspark.__file__).parent
BARE_PYTHON = Path(sys.base_prefix) / "bin"
"""The folder of the interpreter that the environment was made with: it has no packages of ours."""
WITHIN_S = 60
T = TypeVar("T")


def awaited(what: str, look: Callable[[], T | None], within_s: float = WITHIN_S) -> T:
    """Return what `look` finds as soon as it finds something; fail after `within_s`."""
    until = time.monotonic() + within_s
    while (found := look()) is None:
        assert time.monotonic() < until, f"{what}: not within {within_s:g} s"
        time.sleep(0.05)
    return found


def read_json(url: str) -> Any:
    """Read what a Spark page says as JSON."""
    with urlopen(url, timeout=10) as answer:
        return json.load(answer)


@dataclass
class Daemon:
    """A process of Spark's own, in a folder of its own; what it logs is in `log`."""

    folder: Path
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        self.log = self.folder / "log"
        kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
        java = Path(os.environ["JAVA_HOME"]) / "bin" if "JAVA_HOME" in os.environ else None
        places = [BARE_PYTHON, *([java] if java else []), "/usr/local/bin", "/usr/bin", "/bin"]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [SPARK_HOME / "bin" / self.command[0], *self.command[1:]],
                cwd=self.folder,
                env={
                    **kept,
                    "PATH": ":".join(map(str, places)),
                    "PYTHONNOUSERSITE": "1",
                    "SPARK_HOME": str(SPARK_HOME),
                    "SPARK_CONF_DIR": str(self.folder / "conf"),
                    "SPARK_LOCAL_IP": HOST,
                    "SPARK_PUBLIC_DNS": HOST,
                    "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
                    "SPARK_LOCAL_DIRS": str(self.folder / "local"),
                    "SPARK_DAEMON_MEMORY": "256m",
                    **self.env,
                },
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it -9, with the processes that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def says(self, pattern: str) -> str:
        """Wait until its log matches a pattern, and return the pattern's group."""

        def look() -> str | None:
            text = self.log.read_text(errors="replace")
            assert self.process.poll() is None, f"{self.command} ended:\n{text[-2000:]}"
            found = re.search(pattern, text)
            return found[1] if found else None

        return awaited(f"{pattern!r} in {self.log}", look)


class Worker(Daemon):
    """A worker with one core; its executors work in folders below its own."""

    def __init__(self, folder: Path, master: str) -> None:
        options = ["--host", HOST, "--port", "0", "--webui-port", "0", "--cores", "1"]
        super().__init__(
            folder,
            ["spark-class", "org.apache.spark.deploy.worker.Worker", *options, "--memory", "2g",
             "--work-dir", str(folder / "work"), master],
        )  # fmt: skip

    @property
    def page(self) -> str:
        """The address of its page."""
        return self.says(r"WorkerWebUI.*(http://127\.0\.0\.1:\d+)")

    @property
    def executors(self) -> list[dict[str, Any]]:
        """The executors that it runs, as its page says."""
        running: list[dict[str, Any]] = read_json(f"{self.page}/json/")["executors"]
        return running


class Standalone:
    """A master and its workers; `with` starts and ends them."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        options = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        self.folder = folder
        self.process = Daemon(
            folder / "master", ["spark-class", "org.apache.spark.deploy.master.Master", *options]
        )
        self.workers: list[Worker] = []
        self._count = workers
        self._started_workers = 0
        self._started = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as started:
            self._started = started
            self._start()
            self._started = started.pop_all()
        return self

    def _start(self) -> None:
        self._started.enter_context(self.process)
        self.master = self.process.says(r"(spark://127\.0\.0\.1:\d+)")
        self.page = self.process.says(r"MasterWebUI.*(http://127\.0\.0\.1:\d+)")
        for _ in range(self._count):
            self.add_worker()
        awaited("all workers at the master", lambda: self.alive == self._count or None)

    def __exit__(self, *_: object) -> None:
        self._started.close()

    def add_worker(self) -> Worker:
        """Start one more worker."""
        self._started_workers += 1
        worker = Worker(self.folder / f"worker-{self._started_workers}", self.master)
        self.workers.append(self._started.enter_context(worker))
        return worker

    def replace_dead(self) -> None:
        """Start a worker for each that was killed, and wait until the master has them."""
        dead = [worker for worker in self.workers if worker.process.poll() is not None]
        for worker in dead:
            self.workers.remove(worker)
            self.add_worker()
        for worker in self.workers:
            worker.says("(Successfully registered with master)")

    @property
    def state(self) -> dict[str, Any]:
        """What the master's page says: `workers`, `activeapps`, …"""
        state: dict[str, Any] = read_json(f"{self.page}/json/")
        return state

    @property
    def alive(self) -> int:
        """How many workers the master holds for alive."""
        return sum(worker["state"] == "ALIVE" for worker in self.state["workers"])


class ConnectServer(Daemon):
    """A Spark Connect server whose sessions work on a cluster; `remote` is its address."""

    def __init__(self, folder: Path, master: str, conf: Mapping[str, str]) -> None:
        options = {
            "spark.driver.host": HOST,
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": "0",
            "spark.ui.enabled": "false",
            **conf,
        }
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        super().__init__(
            folder,
            ["spark-class", "org.apache.spark.deploy.SparkSubmit", "--class", server,
             "--master", master, *conf_options(options), "spark-internal"],
            {"SPARK_DAEMON_MEMORY": "1g"},
        )  # fmt: skip

    @property
    def remote(self) -> str:
        """Its address, once it can be reached."""
        port = self.says(r"Spark Connect server started at: \S*?:(\d+)")
        return f"sc://{HOST}:{port}"


def conf_options(conf: Mapping[str, str]) -> list[str]:
    """Return settings as options of `spark-submit` and of `groupquake report`."""
    return [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
