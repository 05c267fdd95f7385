"""Every experiment of the library, on brokers in containers: each must end in its verdict."""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from chaos.clusters.docker_engine import remove_marked
from scenarios import names
from tests.groupquake.conftest import Done, run_in

AT_ONCE = 3
"""A run waits for half of its time: three side by side keep two cores busy."""

LIMIT_S = 900


def run(name: str, folder: Path) -> tuple[Done, Path]:
    """Run an experiment to its verdict; return what it said, and the run folder."""
    folder.mkdir()
    words = ("run", name, "--seed", 11, "--cluster", "docker")
    return run_in(folder, *words, timeout_s=LIMIT_S), folder / "runs" / "latest"


@pytest.fixture(scope="module")
def runs(
    docker_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[tuple[Done, Path]]]]:
    """Begin all of them; each test awaits its own."""
    folder = tmp_path_factory.mktemp("library")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(run, name, folder / name) for name in names()}
        pool.shutdown(cancel_futures=True)


@pytest.mark.docker
@pytest.mark.parametrize("name", names())
def test_passes(name: str, runs: dict[str, Future[tuple[Done, Path]]]) -> None:
    done, folder = runs[name].result()
    assert done.code == 0, done.out[-3000:] + done.err[-3000:]
    assert "verdict: pass" in done.out
    assert f"repeat: groupquake run {name} --seed 11 --cluster=docker" in done.out
    assert json.loads((folder / "environment.json").read_text())["cluster"] == "docker"
    verdict = json.loads((folder / "verdict.json").read_text())
    assert all(group["responses_checked"] > 20 for group in verdict["groups"].values())
    run_id = json.loads((folder / "brokers" / "processes.json").read_text())["run_id"]
    assert remove_marked(run_id) == (), "it left containers behind"
