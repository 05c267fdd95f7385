"""Every experiment of the library, on brokers in containers: each must end in its verdict."""

import json
from pathlib import Path

import pytest

from chaos.clusters.docker_engine import remove_marked
from groupquake.open_runs import OpenRun
from scenarios import named, names
from tests.groupquake.conftest import Done, run_in

LIMIT_S = 900

NAMES = tuple(
    name
    for name in names()
    if not (
        named(name).verdicts
        or named(name).workload.wire_scripts
        or named(name).never_shipped
        or {"big", "by-hand"} & {*named(name).tags}
    )
)
"""All but those that show a defect, those of policies that no broker has, those with wire scripts,
the one that is broken by hand, and the big ones, which
`test_big_groups` runs. A wire script is timed to a tenth
of a second, which runs side by side do not allow. Ten runs of them are kept as evidence
(`tests/recorded/seeds`)."""

OF_BROKERS = ("broker.", "clock.", "coordinator.")
ON_BROKERS = tuple(
    name for name in NAMES if any(f.fault.startswith(OF_BROKERS) for f in named(name).faults)
)
REST = tuple(name for name in NAMES if name not in ON_BROKERS)
"""Containers differ from processes in their faults of brokers: half of those that have some are
long tests, and all others exhaustive.

Two workers of pytest-xdist take a half of those each. Three runs at once, with anything beside
them, are too many for two cores: a request that its broker logs 90 ms late may look like one that
came too late."""


@pytest.fixture(scope="class")
def gathered(
    request: pytest.FixtureRequest, docker_image: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Done, Path]]:
    """Run one after the other; return what each said, and its run folder."""
    library = tmp_path_factory.mktemp("library")
    return {name: gather(name, library / name) for name in request.cls.names}


def gather(name: str, folder: Path) -> tuple[Done, Path]:
    folder.mkdir()
    words = ("run", name, "--seed", 11, "--cluster", "docker", "--no-report")
    return run_in(folder, *words, timeout_s=LIMIT_S), (folder / "runs" / "latest").resolve()


@pytest.fixture(scope="class")
def judged(gathered: dict[str, tuple[Done, Path]], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Judge all that came to their end in one go; return what it says of them."""
    folders = [folder for done, folder in gathered.values() if done.code == 0]
    done = run_in(tmp_path_factory.mktemp("judged"), "report", *folders, timeout_s=LIMIT_S)
    assert "Traceback" not in done.err, done.err[-3000:]
    return done.out


@pytest.mark.docker
class Half:
    names: tuple[str, ...]

    def test_passes(self, name: str, gathered: dict[str, tuple[Done, Path]], judged: str) -> None:
        done, folder = gathered[name]
        assert done.code == 0, done.err[-3000:]
        assert done.out == f"not judged yet: groupquake report runs/{folder.name}\n"
        run_id = OpenRun.of(folder / "journal.jsonl").run_id
        assert run_id is not None
        assert remove_marked(run_id) == (), "it left containers behind"
        assert json.loads((folder / "environment.json").read_text())["cluster"] == "docker"
        verdict = json.loads((folder / "verdict.json").read_text())
        assert verdict["verdict"] == "pass", judged
        assert verdict["repeat_command"] == f"groupquake run {name} --seed 11 --cluster=docker"
        assert f"repeat: {verdict['repeat_command']}\n" in judged
        assert all(group["responses_checked"] > 20 for group in verdict["groups"].values())


@pytest.mark.long
@pytest.mark.parametrize("name", ON_BROKERS[::2])
class TestFirstHalfOnBrokers(Half):
    names = ON_BROKERS[::2]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ON_BROKERS[1::2])
class TestSecondHalfOnBrokers(Half):
    names = ON_BROKERS[1::2]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", REST[::2])
class TestFirstHalfOfTheRest(Half):
    names = REST[::2]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", REST[1::2])
class TestSecondHalfOfTheRest(Half):
    names = REST[1::2]
