"""`run --plan` and `run --repeat`: the worst of the exit codes, and a table of what has run."""

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from groupquake.commands import run
from groupquake.commands.run_options import RunOptions
from groupquake.exits import Exit, NotSteadyError
from tests.groupquake.conftest import Command, arguments

PASS, FAIL, UNKNOWN = Exit.PASS, Exit.FAIL, Exit.UNKNOWN


def judged(folder: Path, verdict: str) -> Path:
    """Return a run folder with a verdict on one group."""
    folder.mkdir()
    content = {
        "verdict": verdict, "why": ["a line is missing"],
        "groups": {"shop": {"rebalances_observed": {"impact": 2}}},
    }  # fmt: skip
    (folder / "verdict.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("codes", "worst"),
    [((PASS, PASS), PASS), ((PASS, FAIL, UNKNOWN), FAIL), ((UNKNOWN, PASS), UNKNOWN)],
)
def test_the_exit_code_is_that_of_the_worst_run_and_a_table_ends_them(
    groupquake: Command, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    codes: Sequence[Exit], worst: Exit,
) -> None:  # fmt: skip
    words, runs = {PASS: "pass", FAIL: "fail", UNKNOWN: "unknown"}, iter(codes)

    def carry_out(options: RunOptions) -> tuple[Exit, Path]:
        code = next(runs)
        seeds.add(options.seed)
        return code, judged(tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}", words[code])

    seeds: set[int | None] = set()
    monkeypatch.setattr(run, "carry_out", carry_out)
    done = groupquake("run", small, "--repeat", len(codes))
    assert done.code == worst
    header, *lines = [line.split() for line in done.out.splitlines()[-2 * len(codes) - 1 :]]
    assert header == ["run", "verdict", "rebalances", "of", "shop"]
    assert lines == [
        *([f"run-{number}", words[code], "2"] for number, code in enumerate(codes)),
        *(f"run-{number}: a line is missing".split() for number in range(len(codes))),
    ]
    assert len(seeds - {None}) == len(seeds) == 1, "all work the same plan"


def test_an_error_ends_the_series_with_its_own_code_after_the_table(
    groupquake: Command, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def carry_out(_: RunOptions) -> tuple[Exit, Path]:
        if (tmp_path / "run").exists():
            raise NotSteadyError("a member did not join")
        return FAIL, judged(tmp_path / "run", "fail")

    monkeypatch.setattr(run, "carry_out", carry_out)
    done = groupquake("run", small, "--repeat", 3)
    assert done.code == Exit.NOT_STEADY
    *_, row, why, then = done.out.splitlines()
    assert row.split() == ["run", "fail", "2"]
    assert (why, then) == ("run: a line is missing", "run 2 of 3")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--repeat 2 --keep", "--keep is for one run; leave out --repeat"),
        ("--repeat 2 --ui", "--plan and --repeat cannot be used with --ui"),
        ("--repeat 0", "Invalid value for '--repeat'"),
        ("--plan none.json", "none.json: no such file; check the path"),
        (
            "--plan plan.json",
            "plan.json:2: experiment: is not small; give",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(
    groupquake: Command, small: Path, tmp_path: Path, words: str, why: str
) -> None:
    (tmp_path / "plan.json").write_text(groupquake("plan", "leader-restart", "--json").out)
    done = groupquake("run", small, "--no-report", *words.split())
    assert done.code == 64
    assert why in done.err.strip().splitlines()[-1]
    assert not (tmp_path / "runs").exists()


@pytest.mark.cluster
@pytest.mark.spark
def test_ctrl_c_ends_a_series_after_the_table_of_what_has_run(
    groupquake: Command, small: Path, tmp_path: Path
) -> None:
    """The second run is interrupted as it is analysed; both worked the edited plan."""
    plan = json.loads(groupquake("plan", small, "--seed", "7", "--json").out)
    plan["steps"] = plan["steps"][1:]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    words = f"run {small} --cluster=oracle --plan=plan.json --repeat=3"
    with subprocess.Popen(
        arguments(*words.split()),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        try:
            lines: list[str] = []
            for line in running.stdout or ():
                lines.append(line)
                if "run 2 of 3\n" in lines and "reading the lines" in line:
                    running.send_signal(signal.SIGINT)
            assert running.wait(60) == Exit.ABORTED
        finally:
            running.kill()
    folders = sorted((tmp_path / "runs").glob("2*"))
    assert [json.loads((one / "plan.json").read_text()) for one in folders] == [plan, plan]
    assert (
        f"repeat: groupquake run {small} --seed 7 --cluster=oracle --plan={tmp_path}/plan.json"
        in "".join(lines)
    )
    table = lines[[line.split()[:2] for line in lines].index(["run", "verdict"]) :]
    assert folders[0].name in table[1]
    assert table[2:3] == ["run 2 of 3\n"], "one run stands there"
    assert "groupquake: SIGINT: stopped" in table[-1]
