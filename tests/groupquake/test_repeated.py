"""`run --plan` and `run --repeat`: the worst of the exit codes, and a table of what has run."""

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaos.clusters import ClusterError
from groupquake.exits import Exit
from groupquake.repeated import Series
from tests.groupquake.conftest import Command, arguments

PASS, FAIL, UNKNOWN = Exit.PASS, Exit.FAIL, Exit.UNKNOWN


def judged(folder: Path, verdict: str, rebalances: int) -> Path:
    """Return a run folder with a verdict on one group."""
    folder.mkdir()
    content = {
        "verdict": verdict, "unknown_because": ["a line is missing"], "findings": [],
        "groups": {"shop": {"rebalances_observed": {"impact": rebalances}}},
        "expectations_unmet": [],
    }  # fmt: skip
    (folder / "verdict.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ((PASS, PASS), PASS),
        ((PASS, FAIL, UNKNOWN), FAIL),
        ((UNKNOWN, PASS), UNKNOWN),
        ((None, PASS), Exit.NOT_STEADY),
        ((None, UNKNOWN), UNKNOWN),
    ],
)
def test_the_exit_code_is_that_of_the_worst_run(
    tmp_path: Path, codes: Sequence[Exit | None], worst: Exit, capsys: pytest.CaptureFixture[str]
) -> None:
    series = Series()
    words = {PASS: "pass", FAIL: "fail", UNKNOWN: "unknown", None: "not run"}
    for number, code in enumerate(codes):

        def run(number: int = number, code: Exit | None = code) -> tuple[Exit, Path]:
            if code is None:
                raise ClusterError("no broker started")
            return code, judged(tmp_path / f"run-{number}", words[code], number)

        series.add(run)
    assert series.worst == worst
    series.show()
    *_, header = [line for line in capsys.readouterr().out.splitlines() if " verdict" in line]
    assert "rebalances of shop" in header
    assert [row["verdict"] for row in series.rows] == [words[code] for code in codes]
    assert len(series.folders) == sum(code is not None for code in codes)


def test_what_a_run_raises_ends_the_series(tmp_path: Path) -> None:
    def run() -> tuple[Exit, Path]:
        raise ValueError("a defect")

    series = Series()
    series.add(lambda: (PASS, judged(tmp_path / "run", "pass", 0)))
    with pytest.raises(ValueError, match="a defect"):
        series.add(run)
    assert len(series.rows) == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--plan plan.json --seed 3", "a plan has its seed; leave out --seed, or --plan"),
        ("--repeat 2 --keep", "--keep is for one run; leave out --repeat"),
        ("--repeat 2 --ui", "--plan and --repeat cannot be used with --ui"),
        ("--repeat 0", "Invalid value for '--repeat'"),
        ("--plan none.json", "none.json: no such file; check the path"),
        ("--plan plan.json", "plan.json:2: experiment: this is a plan of leader-restart, not of "),
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
def test_ctrl_c_ends_a_series_with_the_table_of_what_has_run(
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
        f"repeat: groupquake run {small} --cluster=oracle --plan={tmp_path}/plan.json"
        in "".join(lines)
    )
    table = lines[next(i for i, line in enumerate(lines) if "rebalances of static" in line) :]
    assert folders[0].name in table[1]
    assert "groupquake: SIGINT: stopped" in table[2], "one run stands there"
