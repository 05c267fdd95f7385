"""A short soak as a user starts it: real brokers, both clients, member and broker faults."""

import re
from pathlib import Path

import pytest
import yaml

from groupquake.exits import Exit
from scenarios import load
from selftest.soak.load import experiment
from tests.groupquake.conftest import Command

PLACES = [
    ("soak", "Locust"),
    ("soak", "runner"),
    ("soak-tapped", "Locust"),
    ("soak-tapped", "runner"),
    ("soak-tapped", "tap"),
]


@pytest.mark.parametrize("tap", [False, True])
def test_every_seed_gives_an_experiment_that_is_valid(tap: bool, tmp_path: Path) -> None:
    for seed in range(20):
        file = tmp_path / "soak.yaml"
        document = experiment(300, 30, 60, seed, tap=tap)
        file.write_text(yaml.safe_dump(document))
        found = load(file)
        assert len(found.members()) == 300
        assert {member.client for member in found.members()} == {"librdkafka", "wire"}
        faults = [fault.fault for fault in found.faults]
        assert len(faults) == 29, "one a minute, but for the last"
        assert {"member", "broker"} <= {fault.hits for fault in found.faults}
        assert any(name.startswith("net.") for name in faults) == tap
        assert document == experiment(300, 30, 60, seed, tap=tap)


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.spark
def test_nothing_grows_in_five_minutes(process: Command) -> None:
    """A busy machine may make a verdict unknown, and a fault that lasts leaves few samples."""
    done = process("soak", "--minutes", 5, "--every", 45, "--seed", 1, timeout_s=900)
    rows = [re.split(r"  +", line) for line in done.out.splitlines()]
    table = {tuple(row[:3]): row for row in rows if row[0] in ("soak", "soak-tapped")}
    outcomes = [
        table[run, name, kind][-1]
        for run, name in PLACES
        for kind in ("threads", "descriptors", "memory MB")
    ]
    assert set(outcomes) <= {"flat", "too few samples"}, done.out
    assert outcomes.count("flat") >= len(outcomes) / 2, done.out
    assert len(re.findall(r"verdict (?:pass|unknown); ", done.out)) == 2, done.out + done.err
    assert done.code in (Exit.PASS, Exit.UNKNOWN)


@pytest.mark.exhaustive
@pytest.mark.cluster
@pytest.mark.spark
def test_an_hour_is_flat(process: Command) -> None:
    done = process("soak", "--seed", 1, timeout_s=5_400)
    assert done.code == 0, done.out
