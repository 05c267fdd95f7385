"""`groupquake watch` as its users call it."""

import signal
import subprocess
from pathlib import Path

import pytest

from chaos.waiting import until
from tests.groupquake.conftest import Command, arguments
from tests.groupquake.watch.outputs_here import preparing

STORM = "".join(f"{preparing(2 * n, n)}\n" for n in range(5))


def test_standard_input_is_counted_to_its_end(tmp_path: Path) -> None:
    done = subprocess.run(
        arguments("watch", "-"), cwd=tmp_path, input=STORM, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    storm, *_, row = done.stdout.splitlines()
    assert storm.endswith(" g: a storm, 5 rebalances within 8.0 s by app")
    assert row.split() == ["g", "leave", "5", "app", "5", "5", "4", "now", "1"]


def test_a_command_is_followed_until_ctrl_c_and_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "some.log").write_text(STORM)
    command = "cat some.log; echo $$ > pid; sleep 1000"
    with subprocess.Popen(
        arguments("watch", "--command", command), cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as watch:
        assert watch.stdout is not None
        lines = iter(watch.stdout.readline, "")
        assert "g: a storm, 5 rebalances within 8.0 s by app" in next(
            line for line in lines if "storm" in line
        )
        pid = int((tmp_path / "pid").read_text())
        watch.send_signal(signal.SIGINT)
        *_, row = lines
        assert row.split() == ["g", "leave", "5", "app", "5", "5", "4", "now", "1"]
        assert watch.wait(60) == 0
    assert until(lambda: not Path(f"/proc/{pid}").exists(), 10)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to watch"),
        (["folder"], "is a directory"),
        (["x.log", "--webhook", "x"], "is no URL"),
        (["x.log", "--metrics", "high"], "give PORT or HOST:PORT"),
        (["x.log", "--metrics", "192.0.2.1:9"], "--metrics 192.0.2.1:9"),
        (["x.log.gz"], "nothing to watch"),
        (["x.log", "--state", "not-a-state"], "give a file that `watch` wrote"),
        (["x.log", "--state", "nowhere/state"], "No such file"),
        (["x.log", "--pattern", "%d"], "has no message: %m"),
    ],
)
def test_bad_input_costs_one_line(
    words: list[str], said: str, groupquake: Command, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "not-a-state").write_text("no")
    done = groupquake("watch", *words)
    assert done.code == 64
    assert said in done.err.splitlines()[-1]
