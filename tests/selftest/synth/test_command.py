"""`python -m selftest synth` on the command line."""

from pathlib import Path

from tests.groupquake.conftest import Command


def test_a_run_folder_is_made(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = ("--groups", 6, "--seconds", 32, "--mix", "storm")
    done = command("synth", *options, "--output", folder)
    assert done.code == 0, done.err
    assert len(list(folder.glob("brokers/*/group.log"))) == 3
    assert (folder / "experiment.yaml").is_file()


def test_bad_usage_is_one_line_and_a_folder_that_exists_is_kept(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("kept")
    for options, error in (
        (("--seconds", "1"), "1.0 is not in the range 32<=x<=999999"),
        (("--kafka", "3.9.1"), "4.0"),
        (("--output", tmp_path), "exists"),
    ):
        done = command("synth", "--output", tmp_path / "run", *options)
        assert done.code == 64
        assert error in done.err
        assert "Traceback" not in done.err
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]
