"""Locust processes: the load of a run as a child process, and Locust's page in place of this one.

Importing Locust patches the whole interpreter, so this process never imports it.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from chaos.clusters.jars import tools
from chaos.clusters.java import find_java
from chaos.clusters.ports import require_free
from chaos.errors import ChaosError
from chaos.interruptible_wait import exit_code
from chaos.members import Members
from groupquake.exits import NotSteadyError
from loadtest.dies_with_parent import dying_with_parent
from loadtest.settings import JAVA_COMMAND
from scenarios import Experiment

START_S = 60.0
END_S = 30.0
JAVA_MEMBER_CLASS = "org.apache.kafka.tools.VerifiableConsumer"
JAVA_MEMBER_HEAP = "-Xmx96m"


def prepare_java_members(
    folder: Path, experiment: Experiment, kafka_home: Path | None, progress: Callable[[str], None]
) -> None:
    """Write the command line of Java members into a run folder, if the experiment has any.

    Raises ClusterError if there is no Java, or no jars of Kafka's tools.
    """
    if all(member.client != "java" for member in experiment.members()):
        return
    progress(f"Kafka {experiment.cluster.version}: getting the jars of its tools")
    java = find_java()
    jars = tools(experiment.cluster.version, kafka_home)
    command = [
        *(str(java), JAVA_MEMBER_HEAP, "-XX:TieredStopAtLevel=1"),
        *("-cp", jars.class_path, JAVA_MEMBER_CLASS),
    ]
    (folder / JAVA_COMMAND).write_text(json.dumps(command))


@contextmanager
def running(folder: Path, bootstrap: str, experiment: Experiment) -> Iterator[Members]:
    """Run the load inside the block; yields the control of its members. Raises NotSteadyError."""
    folder = folder.resolve()
    token = secrets.token_hex(16)
    control_file = folder / "control.json"
    log = folder / "locust.log"
    command = [
        *dying_with_parent(signal.SIGKILL), "-m", "locust", "-f", str(locustfile()),
        "--headless", "--only-summary",
        "--users", str(len(experiment.members()) + len(experiment.workload.producers)),
        "--spawn-rate", "20",
        "--bootstrap", bootstrap,
        "--experiment", str(folder / "experiment.yaml"),
        "--history", str(folder / "history.jsonl"),
        "--control-file", str(control_file),
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,  # no locust.conf and no package of a user's folder gets into the load
            env={**environment(), "GROUPQUAKE_CONTROL_TOKEN": token},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is the runner's to handle
        )
    try:
        members = Members(_await_port(process, control_file, log), token)
        yield members
        _quit(process, members)
    finally:
        process.kill()
        exit_code(process)
        control_file.unlink(missing_ok=True)


def locustfile() -> Path:
    """Return the path of the locustfile."""
    spec = find_spec("loadtest.locustfile")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def environment() -> dict[str, str]:
    """Return our environment without LOCUST_* variables, with our packages first on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCUST_")}
    paths = [str(locustfile().parents[1]), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)}


def _await_port(process: subprocess.Popen[bytes], control_file: Path, log: Path) -> int:
    """Wait until the load has written its control port."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise NotSteadyError(f"the load process ended at once: {_last_line(log)}; see {log}")
        try:
            return int(json.loads(control_file.read_text())["port"])
        except (FileNotFoundError, ValueError):
            time.sleep(0.05)
    raise NotSteadyError(f"the load process did not come up within {START_S:g} s; see {log}")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"


def _quit(process: subprocess.Popen[bytes], members: Members) -> None:
    """Close every member cleanly; the caller kills the process if this takes too long."""
    try:
        members.quit()
        process.wait(END_S)
    except (ChaosError, subprocess.TimeoutExpired):
        return


def exec_locust_page(
    port: int,
    experiment: str,
    kafka: str | None,
    coordinator: str | None,
    seed: int | None,
    run_options: Sequence[str],
) -> NoReturn:
    """Replace this process by Locust with its page on 127.0.0.1, which starts runs.

    The arguments are the initial values of the page's form; every run gets `run_options`. Raises
    ClusterError if the port is in use.
    """
    require_free([port])
    form = {"experiment": experiment, "kafka": kafka, "coordinator": coordinator, "seed": seed}
    command = [
        *(sys.executable, "-m", "locust", "-f", str(locustfile())),
        *("--web-host", "127.0.0.1", "--web-port", str(port)),
        *(f"--{name}={value}" for name, value in form.items() if value is not None),
        *(f"--run-option={option}" for option in run_options),
    ]
    print(f"open http://127.0.0.1:{port} and press Start; Ctrl-C here ends it", file=sys.stderr)
    sys.stderr.flush()
    os.execve(sys.executable, command, environment())  # noqa: S606 (a list, no shell)
