"""The run folder: made before anything starts, so that all evidence is on disk."""

import errno
import itertools
import json
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from chaos.clusters.java import java_version
from chaos.plan import Plan
from groupquake import __version__
from groupquake.clients.adapters import Adapter
from groupquake.exits import writing
from scenarios import Experiment
from scenarios.clients import ADAPTERS, kind_of

OF_PACKAGE = ("librdkafka", "librdkafka-process")
"""The clients that are librdkafka as its Python package brings it, whose versions go together."""
TO_BEGIN_MB = 32
TO_GO_ON_MB = 16
"""The room that a run must have where its folder is, to begin and to go on: what one with
thousands of members writes in some seconds. It ends before the file system is full."""


def require_room(folder: Path, least_mb: int) -> None:
    """Raise OSError, which says the figures, if less is free where a folder is."""
    free_mb = shutil.disk_usage(folder).free / 2**20
    if free_mb < least_mb:
        raise OSError(errno.ENOSPC, f"{free_mb:.0f} MB are free, and {least_mb} MB needed")


def create(
    runs: Path,
    experiment: Experiment,
    plan: Plan,
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
        "seed": plan.seed,
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "machine": machine(),
        "clients": client_versions(experiment),
        "git": git_state(),
        "client_history": bool(experiment.members()),
        "machine_samples": True,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "repeat_command": shlex.join(command),
        **outside,
    }
    with writing(f"{runs}: no run folder can be made there", "; give another with --runs"):
        folder = make(runs, f"{experiment.name}-{experiment.cluster.version}-{plan.seed}")
        (folder / "experiment.yaml").write_text(experiment.dump(), encoding="utf-8")
        for name, content in (("plan", plan.as_dict()), ("environment", environment)):
            text = json.dumps(content, indent=2) + "\n"
            (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def machine() -> dict[str, Any]:
    """Return what may explain how fast a run was; no name of the machine, and no path on it."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpus": os.cpu_count(),
        "memory_gib": round(memory_bytes / 2**30, 1),
        "java": java_version(),
    }


def client_versions(experiment: Experiment) -> dict[str, str | None]:
    """Return the version of each client library of the members; None where none is known."""
    known = {kind_of(one.client) for one in experiment.members()}
    return {
        name: version("confluent-kafka") if name in OF_PACKAGE
        else Adapter.named(name).version if name in ADAPTERS
        else None
        for name in sorted(known)
    }  # fmt: skip


def make(parent: Path, name: str) -> Path:
    """Make a new folder, named by time and `name`; point the link `latest` to it."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    parent.mkdir(parents=True, exist_ok=True)
    require_room(parent, TO_BEGIN_MB)
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
