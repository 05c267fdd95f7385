"""`python -m selftest synth` on the command line."""

import json
from pathlib import Path

import pytest

from tests.groupquake.conftest import Command


def test_a_run_folder_is_made(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = ("--groups", 6, "--seconds", 32, "--mix", "storm", "--plant", 2)
    done = command("synth", *options, "--output", folder)
    assert done.code == 0, done.err
    assert len(list(folder.glob("brokers/*/group.log"))) == 3
    assert (folder / "experiment.yaml").is_file()
    planted = [json.loads(line) for line in (folder / "planted.jsonl").read_text().splitlines()]
    assert len({entry["group"] for entry in planted}) == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--seconds", "1"), "1.0 is not in the range 32<=x<=999999"),
        (("--kafka", "3.9.1"), "4.0"),
        (("--groups", "3", "--plant", "4"), "there is one in a group"),
    ],
)
def test_bad_usage_is_one_line(
    command: Command, options: tuple[str, ...], error: str, tmp_path: Path
) -> None:
    done = command("synth", "--output", tmp_path / "run", *options)
    assert done.code == 64
    assert error in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "run").exists()


def test_a_folder_that_exists_is_kept(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    done = command("synth", "--groups", 2, "--output", tmp_path)
    assert done.code == 64
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
