"""`groupquake simulate`, and what `validate` and `plan` say of an experiment."""

import json
from pathlib import Path

import pytest

from tests.groupquake.conftest import Command
from tests.groupquake.simulate.test_forecast import bounce, expecting

WRONG = "but 6 are due: each member is away 10s, its session ends after 6s"


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    """Return a file that expects what cannot come out."""
    file = tmp_path / "wrong.yaml"
    file.write_text(expecting(0, bounce(down_for="10s")).dump())
    return str(file)


def test_simulate_shows_a_table(groupquake: Command, wrong: str) -> None:
    """Rebalances by group, phase and reason; what cannot come out."""
    done = groupquake("simulate", wrong)
    assert done.code == 0
    assert ["shop", "impact", "session_expired", "3"] in [
        line.split() for line in done.out.splitlines()
    ]
    assert WRONG in done.out


def test_simulate_as_json(groupquake: Command, wrong: str) -> None:
    """Intervals are pairs."""
    shown = json.loads(groupquake("simulate", wrong, "--json", "--seed", "3").out)
    assert shown["groups"]["shop"]["rebalances"]["impact"]["total"] == [6, 6]
    assert len(shown["impossible"]) == 1


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_a_wrong_expectation_is_a_warning(groupquake: Command, wrong: str, command: str) -> None:
    """The file is valid all the same."""
    done = groupquake(command, wrong)
    assert done.code == 0
    assert WRONG in done.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--profile", "none"], "no such rules"),
        (["--kafka", "9.9.9"], "9.9.9"),
        (["--set", "phases.impact=never"], "never"),
        (["--set", "cluster.config.broker.session.timeout.ms=abc"], "write a number from 1 on"),
        (["--set", "cluster.config.offsets.topic.num.partitions=0"], "write a number from 1 on"),
        (["--set", "cluster.kind=external", "--set", "cluster.bootstrap=localhost:1"], "external"),
    ],
)
def test_bad_input_is_one_line(groupquake: Command, options: list[str], says: str) -> None:
    """With exit code 64."""
    done = groupquake("simulate", "demo", *options)
    assert done.code == 64
    [line] = done.err.splitlines()
    assert says in line
