"""Runs that end at a random moment, by SIGKILL or SIGHUP: once healed, nothing is left of them."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from chaos.clusters.process import ProcessCluster
from tests.groupquake import test_heal_walk_hooks as hooks
from tests.groupquake.heal_walk import BATCHES, EXPERIMENT, IN_CONTAINERS_ALONE, heal, left_over
from tests.groupquake.test_heal_walk_hooks import Operator, theirs  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive]
ENTRIES = 9
"""About as many entries as the journal of a run of one fault has up to its healing."""


def end_at_random(
    folder: Path, kind: str, faults: Sequence[str], number: signal.Signals, seed: int, *words: str
) -> Path | None:
    """Send a signal to a run at a moment that the seed chooses; return its folder, if any."""
    moment = random.Random(seed)
    file = folder / "walk.yaml"
    listed = ", ".join(f"{{at: 0s, {fault}}}" for fault in faults)
    file.write_text(EXPERIMENT.format(faults=listed, brokers=3 if kind == "external" else 2))
    command = [
        *(sys.executable, "-m", "groupquake", "run", str(file), "--no-report", "--seed", "1"),
        *("--cluster", kind, "--runs", str(folder / "runs"), *words),
    ]
    entries, after_s = moment.randrange(ENTRIES * len(faults)), moment.uniform(0, 0.5)
    latest = folder / "runs" / "latest"
    with (
        (folder / "output.log").open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as process,
    ):
        while process.poll() is None and noted(latest) < entries:
            time.sleep(0.01)
        time.sleep(after_s)  # the moment is what is random
        process.send_signal(number)
        code = process.wait(120)
    expected = {-signal.SIGKILL, 0} if number == signal.SIGKILL else {-signal.SIGHUP, 0, 4}
    assert code in expected, (folder / "output.log").read_text()
    return latest.resolve() if latest.exists() else None


def noted(run: Path) -> int:
    journal = run / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def require_nothing_left(run: Path | None, left: Callable[[Path], list[str]]) -> None:
    if run is None or not (run / "journal.jsonl").exists():
        return
    heal(run)
    assert left(run) == []
    assert heal(run) == "nothing to heal\n"
    assert list(Path(os.environ["XDG_STATE_HOME"]).glob("groupquake/*")) == []


def seeded(kind: str, batches: Sequence[str], kills: int, hups: int) -> list[object]:
    """Return cases of a kind of cluster: each with a batch of faults, a signal and a seed."""
    numbers = [signal.SIGKILL] * kills + [signal.SIGHUP] * hups
    return [
        pytest.param(kind, batches[i % len(batches)], number, i, id=f"{kind}-{number.name}-{i}")
        for i, number in enumerate(numbers)
    ]


@pytest.mark.parametrize(
    ("kind", "batch", "number", "seed"),
    [
        *seeded("process", [one for one in BATCHES if one not in IN_CONTAINERS_ALONE], 12, 4),
        *(
            pytest.param(*case.values, id=case.id, marks=pytest.mark.docker)  # type: ignore[attr-defined]
            for case in seeded("docker", list(BATCHES), 12, 3)
        ),
    ],
)
def test_clusters_of_its_own(
    kind: str, batch: str, number: signal.Signals, seed: int, tmp_path: Path
) -> None:
    run = end_at_random(tmp_path, kind, BATCHES[batch], number, seed)
    require_nothing_left(run, left_over)


@pytest.mark.parametrize(
    ("kind", "batch", "number", "seed"), seeded("external", list(hooks.BATCHES), 8, 3)
)
def test_a_cluster_of_the_users(
    kind: str,
    batch: str,
    number: signal.Signals,
    seed: int,
    tmp_path: Path,
    theirs: tuple[ProcessCluster, Operator],  # noqa: F811
) -> None:
    cluster, operator = theirs
    words = [
        *("--bootstrap", cluster.bootstrap, "--allow-faults", hooks.names(cluster)[0]),
        *("--set", f"cluster.hooks={operator.hooks}", "--set", "cluster.logs=none"),
    ]
    run = end_at_random(tmp_path, kind, hooks.BATCHES[batch], number, seed, *words)
    require_nothing_left(run, lambda run: hooks.left_over(run, cluster))
