"""The disk of the run folder is full: at the start, or while faults are open."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.journal import read
from tests.chaos.fakes import until
from tests.full_disk import fill, needs_root, small_disk
from tests.groupquake.conftest import Command, arguments
from tests.groupquake.heal_walk import open_or_running

pytestmark = needs_root

OPEN = """\
faults:
  - {fault: member.pause, target: {names: [clerk-0]}, at: 1s, down_for: 5m}
  - {fault: broker.kill, target: {brokers: [1]}, at: 2s, down_for: 5m}
phases: {impact: 6m, recovery: 1s}
"""


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", request.param) as folder:
        yield folder


@pytest.mark.cluster
@pytest.mark.parametrize("disk", ["size=256m"], indirect=True)
def test_a_run_says_so_at_once_and_heals_what_is_open(
    groupquake: Command, small: Path, disk: Path
) -> None:
    """The process of a member is frozen, and no broker can start there any more."""
    text = small.read_text().replace('"clerk-{n}"', '"clerk-{n}", client: librdkafka-process')
    small.write_text(text.partition("steady_state:")[0] + OPEN)
    command = arguments("run", small, "--seed", 1, "--runs", disk)
    with subprocess.Popen(command, cwd=small.parent, stderr=subprocess.PIPE, text=True) as process:
        journal = disk / "latest" / "journal.jsonl"
        until(lambda: journal.exists() and journal.read_text().count('"injected"') == 2, 240)
        fill(disk)
        _, err = process.communicate(timeout=60)
    run = (disk / "latest").resolve()
    assert process.returncode == 4, err
    assert "Traceback" not in err
    said = [line.partition("] ")[2] for line in err.splitlines() if "evidence: " in line]
    assert said[0].startswith(f"evidence: no space left on {disk}/{run.name} (")
    assert said[0].endswith("; free 32 MB or give another --runs: healing and stopping")
    assert "stopped, all faults healed" in err.splitlines()[-1]
    assert open_or_running(run) == []
    healed = groupquake("heal", run)
    assert (healed.code, healed.out) == (0, "nothing to heal\n"), "the disk is full still"
    steady, *_ = (
        entry for entry in read(run / "journal.jsonl") if entry["event"] == "steady_state"
    )
    assert {probe["observed"] for probe in steady["probes"]} == {2, "Stable", "some"}


@pytest.mark.parametrize(
    ("disk", "why"),
    [
        ("size=8m", "8 MB are free, and 32 MB needed"),
        ("size=64m,nr_inodes=4", "No space left on device"),
    ],
    indirect=["disk"],
)
def test_no_run_begins_without_room(why: str, groupquake: Command, small: Path, disk: Path) -> None:
    done = groupquake("run", small, "--no-report", "--runs", disk)
    assert done.code == 64
    refused = f"{disk}: no run folder can be made there ({why}); give another with --runs"
    assert done.err.splitlines()[-1].endswith(refused)
