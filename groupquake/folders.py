"""The run folder: made before anything starts, so that all evidence is on disk."""

import itertools
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from click import UsageError

from chaos.plan import Plan
from groupquake import __version__, room
from scenarios import Experiment


def create(
    runs: Path,
    experiment: Experiment,
    plan: Plan,
    seed: int,
    cluster: str,
    command: Sequence[str],
    outside: Mapping[str, Any] = {},
) -> Path:
    """Make a new run folder; point the link `latest` to it. Raises UsageError if that fails.

    In it are the experiment, its plan, the environment, and the command that repeats the run.
    `outside` is what only a run on a cluster of the user's has in its environment.
    """
    environment = {
        "groupquake_version": __version__,
        "kafka_version": experiment.cluster.version,
        "coordinator": experiment.coordinator,
        "cluster": cluster,
        "broker_config": dict(experiment.cluster.config),
        "seed": seed,
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "git": git_state(),
        "client_history": bool(experiment.members()),
        "machine_samples": True,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "repeat_command": shlex.join(command),
        **outside,
    }
    try:
        folder = make(runs, f"{experiment.name}-{experiment.cluster.version}-{seed}")
        (folder / "experiment.yaml").write_text(experiment.dump(), encoding="utf-8")
        _write(folder / "plan.json", plan.as_dict())
        _write(folder / "environment.json", environment)
    except OSError as error:
        raise UsageError(
            f"{runs}: no run folder can be made there ({error.strerror}); give another with --runs"
        ) from error
    return folder


def make(parent: Path, name: str) -> Path:
    """Make a new folder, named by time and `name`; point the link `latest` to it."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    parent.mkdir(parents=True, exist_ok=True)
    room.require(parent, room.TO_BEGIN_MB)
    folder = unused(parent, f"{now}-{name}")
    link = parent / f".latest-{os.getpid()}"
    link.symlink_to(folder.name)
    link.replace(parent / "latest")
    return folder


def unused(parent: Path, stem: str) -> Path:
    """Make a folder; add a number to the name if the folder exists."""
    for number in itertools.count(1):
        folder = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("itertools.count does not end")


def _write(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def git_state() -> str | None:
    """Return commit and dirty mark of the source tree, or None outside a checkout."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def command_of(name: str, seed: int, options: Sequence[str]) -> list[str]:
    """Return the command that repeats a run."""
    program = Path(sys.argv[0]).name
    return [
        program if program == "groupquake" else "groupquake",
        "run",
        name,
        "--seed",
        str(seed),
        *options,
    ]
