"""The command line as a user meets it: in the test's process, or in one of its own."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import pytest

from groupquake import cli
from groupquake.signals import SIGNALS
from tests.secured import Secured

SMALL = """\
name: small
description: Two static and two dynamic members; one of each restarts.
cluster:
  brokers: 1
  config: {group.initial.rebalance.delay.ms: 300}
workload:
  topics: [{name: orders, partitions: 4}]
  producers: [{topic: orders, rate: 20}]
  groups:
    - name: static
      topics: [orders]
      session_timeout: 8s
      heartbeat_interval: 250ms
      max_poll_interval: 10s
      commit_interval: 500ms
      members: [{kind: static, count: 2, instance_id: "clerk-{n}"}]
    - name: dynamic
      topics: [orders]
      session_timeout: 8s
      heartbeat_interval: 250ms
      max_poll_interval: 10s
      commit_interval: 500ms
      members: [{kind: dynamic, count: 2}]
steady_state:
  within: 30s
  probes:
    - {name: all static in, probe: group.members, group: static, tolerance: 2}
    - {name: static settled, probe: group.state, group: static, tolerance: Stable}
    - {name: all dynamic in, probe: group.members, group: dynamic, tolerance: 2}
    - {name: dynamic settled, probe: group.state, group: dynamic, tolerance: Stable}
faults:
  - {fault: member.restart, target: {leader-member-of: static}, at: 500ms, down_for: 1s}
  - {fault: group.bounce, target: all, group: dynamic, at: 500ms, down_for: 1s, every: 3s}
phases: {impact: 7s, recovery: 1s}
expect:
  - {group: static, phase: impact, rebalances: 0}
  - {group: dynamic, phase: impact, rebalances: {min: 3, max: 4}}
"""


@dataclass(frozen=True)
class Done:
    """A command line that ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One broker a worker with TLS, SASL and ACLs; every test leaves no names and rights there."""
    with Secured(tmp_path_factory.mktemp("secured")) as cluster:
        cluster.prepare()
        yield cluster


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the file of a small experiment."""
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return file


def arguments(*words: object, program: str = "groupquake") -> list[str]:
    return [sys.executable, "-m", program, *map(str, words)]


def state_in(folder: Path) -> dict[str, str]:
    """Return an environment with a state of its own: what a run of several tests needs."""
    return {**os.environ, "XDG_STATE_HOME": str(folder / "state")}


def run_in(
    folder: Path,
    *words: object,
    program: str = "groupquake",
    env: Mapping[str, str] | None = None,
    timeout_s: float = 240,
) -> Done:
    """Run a command line in a folder."""
    done = subprocess.run(
        arguments(*words, program=program),
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def process(tmp_path: Path) -> Command:
    """Run a command line in an empty folder, in a process of its own."""
    return partial(run_in, tmp_path)


def run_here(
    command: click.Command, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Return what runs a command line in a folder, in this process."""

    def run(*words: object, env: Mapping[str, str] | None = None) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
            patched.chdir(folder)
            patched.setattr(SIGNALS, "install", lambda: None)
            for variable, value in (env or {}).items():
                patched.setenv(variable, value)
            code = cli.code_of([str(word) for word in words], command, name)
        return Done(int(code), out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def groupquake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line in an empty folder, in this process.

    It saves the start of a process. Signals stay pytest's. `--ui` replaces the process: use
    `process` for it, and where the end of the process is what is tested.
    """
    return run_here(cli.cli, "groupquake", tmp_path, monkeypatch)


def running(mark: str) -> Sequence[str]:
    """List the command lines of processes that hold a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if mark in line and int(folder.name) != os.getpid():
            found.append(line.replace("\0", " "))
    return found
