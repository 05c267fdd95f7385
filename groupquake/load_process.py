"""Locust as a child process: started, found by its control port, ended with the run.

Importing Locust patches the whole interpreter, so it never happens in this one.
"""

import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from chaos.errors import ChaosError
from chaos.interruptible_wait import exit_code
from chaos.members import Members
from groupquake.exits import NotSteadyError
from loadtest.dies_with_parent import tethered
from scenarios import Experiment

START_S = 60.0
END_S = 30.0


@contextmanager
def running(folder: Path, bootstrap: str, experiment: Experiment) -> Iterator[Members]:
    """Run the load inside the block; yields the way to its members. Raises NotSteadyError."""
    folder = folder.resolve()
    token = secrets.token_hex(16)
    control_file = folder / "control.json"
    log = folder / "locust.log"
    command = [
        *tethered(signal.SIGKILL), "-m", "locust", "-f", str(locustfile()),
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
    """Return what Locust is to run."""
    spec = find_spec("loadtest.locustfile")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def environment() -> dict[str, str]:
    """Pass ours on, but for what would configure Locust; our packages come first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCUST_")}
    paths = [str(locustfile().parents[1]), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)}


def _await_port(process: subprocess.Popen[bytes], control_file: Path, log: Path) -> int:
    """Wait until the load says where it takes orders."""
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
    return lines[-1] if lines else "it said nothing"


def _quit(process: subprocess.Popen[bytes], members: Members) -> None:
    """Let every member close as an application would; the caller ends what does not."""
    try:
        members.quit()
        process.wait(END_S)
    except (ChaosError, subprocess.TimeoutExpired):
        return
