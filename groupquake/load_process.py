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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import click

import loadtest
from chaos.clusters.commands import marked
from chaos.clusters.ports import require_free
from chaos.errors import ChaosError
from chaos.members import Members
from chaos.waiting import exit_code
from groupquake.exits import NotSteadyError
from groupquake.load_workers import ALONE, Workers
from loadtest.configs import closing_s, spawn_rate
from loadtest.dies_with_parent import dying_with_parent
from loadtest.members.settings import RUN_FOLDER, TOKEN_VARIABLE
from scenarios import Experiment
from scenarios.client_properties import ENVIRONMENT, TLS_ENDS_AT_TAP
from scenarios.clients import kind_of

_OTEL_TAGS = "OTEL_RESOURCE_ATTRIBUTES"
_OTEL_DEFAULTS = {
    "OTEL_SERVICE_NAME": "groupquake",
    # gRPC's own threads know nothing of gevent, and would hold up all members
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_METRIC_EXPORT_INTERVAL": "5000",
}
"""What suits a run of a minute, where the user's variables of OpenTelemetry do not say it."""


@contextmanager
def running(
    folder: Path,
    bootstrap: str,
    experiment: Experiment,
    security: Mapping[str, str] = {},
    *,
    otel: bool = False,
    workers: Workers = ALONE,
) -> Iterator[Members]:
    """Run the load inside the block; yields the control of its members. Raises NotSteadyError.

    `security` are variables of its environment: where its client properties are. With `otel` it
    exports by OpenTelemetry. It has `workers`, or runs all members itself.
    """
    folder = folder.resolve()
    token = secrets.token_hex(16)
    control_file = folder / "control.json"
    log = folder / "locust.log"
    arguments = [
        "locust", "-f", str(locustfile()),
        "--headless", "--only-summary",
        "--users", str(len(experiment.members()) + len(experiment.workload.producers)),
        "--spawn-rate", str(spawn_rate(kind_of(member.client) for member in experiment.members())),
        "--bootstrap", bootstrap,
        "--experiment", str(folder / "experiment.yaml"),
        "--history", str(folder / "history.jsonl"),
        "--control-file", str(control_file),
        *(("--otel",) if otel else ()),
        *workers.options,
    ]  # fmt: skip
    exported = otel_variables(folder.name, experiment.name) if otel else {}
    variables = {**exported, **security, TOKEN_VARIABLE: token, RUN_FOLDER: str(folder)}
    try:
        with child(arguments, log, variables) as process:
            workers.announce(str(locustfile()))
            members = Members(_await_port(process, control_file, log, workers.start_s), token)
            within_s = workers.quit_s
            try:
                yield members
                within_s = closing_s(len(experiment.members()))
            finally:
                # close every member cleanly; the process is killed if this takes too long
                with suppress(ChaosError, subprocess.TimeoutExpired):
                    if within_s:
                        members.quit()
                        process.wait(within_s)
    finally:
        end_members(folder)
        control_file.unlink(missing_ok=True)


@contextmanager
def child(
    arguments: Sequence[str], log: Path, variables: Mapping[str, str] = {}
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module of Python in the folder of its log; it is killed after the block, or with us."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*dying_with_parent(signal.SIGKILL), "-m", *arguments],
            cwd=log.parent,  # no locust.conf and no package of a user's folder gets into it
            env={**environment(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is the runner's to handle
        )
    try:
        yield process
    finally:
        process.kill()
        exit_code(process)


def end_members(folder: Path) -> tuple[int, ...]:
    """SIGKILL the load of a run, its members and what these started; return the process ids.

    They are known by a variable of their environment. Members end with the load, but for programs
    that other programs started for them.
    """
    mark = f"{RUN_FOLDER}={folder.resolve()}"
    killed = []
    for pid, variable in marked(mark):
        with suppress(OSError):
            if variable == mark:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
    return tuple(killed)


def security_of(experiment: Experiment, *, tap: bool) -> dict[str, str]:
    """Return the variables that tell a load where its client properties are."""
    file = experiment.cluster.client_properties
    if file is None:
        return {}
    ends = {TLS_ENDS_AT_TAP: "1"} if tap else {}
    return {ENVIRONMENT: str(Path(file).resolve()), **ends}


def locustfile() -> Path:
    """Return the path of the locustfile."""
    return Path(loadtest.__file__).with_name("locustfile.py")


def environment() -> dict[str, str]:
    """Return our environment without LOCUST_* variables, with our packages first on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCUST_")}
    paths = [str(locustfile().parents[1]), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)}


def _await_port(
    process: subprocess.Popen[bytes], control_file: Path, log: Path, start_s: float
) -> int:
    """Wait until the load has written its control port."""
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise NotSteadyError(f"the load process ended at once: {_last_line(log)}; see {log}")
        try:
            return int(json.loads(control_file.read_text())["port"])
        except (FileNotFoundError, ValueError):
            time.sleep(0.05)
    raise NotSteadyError(f"the load process did not come up within {start_s:g} s; see {log}")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"


def require_otel() -> None:
    """Raise UsageError if OpenTelemetry's SDK is not installed."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise click.UsageError(
            "--otel needs OpenTelemetry's SDK; install it: pip install '.[otel]' in a checkout of"
            " groupquake"
        )


def otel_variables(run: str | None = None, experiment: str | None = None) -> Mapping[str, str]:
    """Return variables for the environment of the load, beside those that the user has set."""
    unset = {name: value for name, value in _OTEL_DEFAULTS.items() if name not in os.environ}
    if run is None:
        return unset
    tags = [f"groupquake.run={run}", f"groupquake.experiment={experiment}"]
    return {**unset, _OTEL_TAGS: ",".join(filter(None, [os.environ.get(_OTEL_TAGS), *tags]))}


def exec_locust_page(
    port: int,
    form: Mapping[str, Any],
    run_options: Sequence[str],
    security: Mapping[str, str],
    *,
    otel: bool,
    in_browser: bool,
) -> NoReturn:
    """Replace this process by Locust with its page on 127.0.0.1, which starts runs.

    `form` has the initial values of the page's form; every run gets `run_options`.
    `security` is as in `running`; `in_browser` opens the live page. Raises ClusterError if the port
    is in use.
    """
    require_free([port])
    command = [
        *(sys.executable, "-m", "locust", "-f", str(locustfile())),
        *("--web-host", "127.0.0.1", "--web-port", str(port)),
        *(f"--{name}={value}" for name, value in form.items() if value is not None),
        *(f"--run-option={option}" for option in run_options),
        *(("--otel",) if otel else ()),
        *(("--open-page",) if in_browser else ()),
    ]
    page = f"http://127.0.0.1:{port}/"
    line = f"open {page}groupquake/ to see runs, and {page} to start them; Ctrl-C here ends it"
    print(line, file=sys.stderr, flush=True)
    exported = otel_variables() if otel else {}
    os.execve(sys.executable, command, {**environment(), **exported, **security})  # noqa: S606 (a list, no shell)
