"""A short soak as a user starts it: real brokers, both clients, member and broker faults."""

import re
from pathlib import Path

import pytest
import yaml

from groupquake.selftest.soak.load import experiment
from scenarios import load
from tests.groupquake.conftest import Command

PLACES = [
    ("soak", "Locust"),
    ("soak", "runner"),
    ("soak-tapped", "Locust"),
    ("soak-tapped", "runner"),
    ("soak-tapped", "tap"),
]


@pytest.mark.parametrize("tap", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_every_seed_gives_an_experiment_that_is_valid(seed: int, tap: bool, tmp_path: Path) -> None:
    file = tmp_path / "soak.yaml"
    document = experiment(300, 30, 60, seed, tap=tap)
    file.write_text(yaml.safe_dump(document))
    found = load(file)
    assert len(found.members()) == 300
    kinds = {member.client for member in found.members()}
    assert kinds == {"librdkafka", "wire"}
    faults = [fault.fault for fault in found.faults]
    assert len(faults) == 29, "one a minute, but for the last"
    hit = {fault.about.hits for fault in found.faults}
    assert {"member", "broker"} <= hit
    assert any(name.startswith("net.") for name in faults) == tap
    assert document == experiment(300, 30, 60, seed, tap=tap)


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.spark
def test_five_minutes_are_flat(process: Command) -> None:
    done = process("dev", "soak", "--minutes", 5, "--every", 30, "--seed", 1, timeout_s=900)
    rows = [re.split(r"  +", line) for line in done.out.splitlines()]
    table = {tuple(row[:3]): row for row in rows if row[0] in ("soak", "soak-tapped")}
    for run, name in PLACES:
        for kind in ("threads", "descriptors", "memory MB"):
            assert table[run, name, kind][-1] == "flat", done.out
    verdicts = [line for line in done.out.splitlines() if "groups unknown" in line]
    assert len(verdicts) == 2, done.out + done.err
    assert all("verdict pass" in line and " 0 of 4 groups unknown" in line for line in verdicts)
    assert done.code == 0


@pytest.mark.exhaustive
@pytest.mark.cluster
@pytest.mark.spark
def test_an_hour_is_flat(process: Command) -> None:
    done = process("dev", "soak", "--seed", 1, timeout_s=5_400)
    assert done.code == 0, done.out
