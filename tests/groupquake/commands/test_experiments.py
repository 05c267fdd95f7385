"""`groupquake list`, `show`, `open`, and what the shell completes."""

import json
import os
import re
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest

from scenarios import named, names
from scenarios.listing import LIBRARY, TOPICS
from tests.groupquake.conftest import Command
from tests.groupquake.test_imports import HEAVY


def test_the_library_is_listed_by_topic_with_durations(groupquake: Command) -> None:
    lines = groupquake("list").out.splitlines()
    assert max(map(len, lines)) < 100
    rows = [found for line in lines if (found := re.match(r"  (\S+) +~\d+ (s|min)  \S", line))]
    assert sorted(found[1] for found in rows) == list(names())
    assert [line for line in lines if line in TOPICS.values()] == list(TOPICS.values())
    found = json.loads(groupquake("list", "--json").out)
    demo = found["demo"]
    assert demo["description"] == " ".join(named("demo").description.split())
    assert 23_000 < demo["usual_ms"] < 120_000  # its phases, and a minute and a half at most
    assert {one["topic"] for one in found.values()} == set(TOPICS)


def test_an_experiment_is_shown(groupquake: Command, small: Path) -> None:
    text = groupquake("show", "stale-pending-sync").out
    for part in (
        "session 8s", "stale_sync", "member.restart, static-1, for 2s",
        "0 rebalances of static in impact", "from 3.0.0 on: fail", "~60 s",
    ):  # fmt: skip
        assert part in text, part
    assert "2 static clerk-{n}" in groupquake("show", small).out
    file = groupquake("show", "demo", "--file").out
    assert file == (LIBRARY / "demo.yaml").read_text()
    wrong = groupquake("show", "dmo")
    assert (wrong.code, "did you mean 'demo'?" in wrong.err) == (64, True)
    for name in names():
        shown = groupquake("show", name).out.splitlines()
        assert max(map(len, shown[:-1])) < 100, name


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    for page in ("runs/a/report.html", "incident/incident.html", "nights/index.html"):
        file = tmp_path / page
        file.parent.mkdir(parents=True)
        file.touch()
    (tmp_path / "runs" / "latest").symlink_to("a")
    (tmp_path / "nights" / "n").mkdir()
    (tmp_path / "nights" / "n" / "night.json").touch()
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.usefixtures("pages")
def test_a_page_is_opened(groupquake: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    for words, page in (
        ((), "runs/a/report.html"),
        (("runs/a",), "runs/a/report.html"),
        (("incident",), "incident/incident.html"),
        (("nights",), "nights/index.html"),
        (("nights/n",), "nights/index.html"),
        (("runs/a/report.html",), "runs/a/report.html"),
    ):
        done = groupquake("open", *words, env={"DISPLAY": ":1"})
        assert (done.code, done.err) == (0, "")
        assert opened[-1].endswith(page), words
        assert done.out.strip() == opened[-1]


def test_without_a_browser_or_a_report_one_line_says_so(
    groupquake: Command, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    done = groupquake("open")
    assert (done.code, done.out) == (0, f"file://{pages}/runs/a/report.html\n")
    assert "no browser" in done.err
    assert "`groupquake report empty` makes one" in groupquake("open", "empty").err
    assert "check the path" in groupquake("open", "nowhere").err
    (pages / "runs" / "latest").unlink()
    none = groupquake("open")
    assert (none.code, "`groupquake run demo` makes one" in none.err) == (64, True)


PROGRAM = """
import json, sys
from groupquake.cli import main
try:
    main([])
finally:
    print(json.dumps(list(sys.modules)), file=sys.stderr)
"""


def completed(folder: Path, words: str) -> tuple[list[str], set[str]]:
    """Return what bash would offer for the last word, and the modules that it cost."""
    env = {"_GROUPQUAKE_COMPLETE": "bash_complete", "COMP_WORDS": f"groupquake {words}"}
    env["COMP_CWORD"] = str(len(words.split(" ")))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, env={**os.environ, **env},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    plain = [line[6:] for line in done.stdout.splitlines() if line.startswith("plain,")]
    return plain, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("run rolling", ["rolling-bounce", "rolling-brokers"]),
        ("show demo big", ["big-group", "big-groups"]),
        ("plan --kafka 4.", ["4.4.0", "4.3.0", "4.2.0", "4.1.0", "4.0.0"]),
        ("report runs/", ["runs/latest", "runs/2-b", "runs/1-a"]),
        ("open ", ["runs/latest", "runs/2-b", "runs/1-a", "nights/3-c"]),
        ("sho", ["show"]),
    ],
)
def test_the_shell_completes_without_heavy_imports(
    tmp_path: Path, words: str, offered: list[str]
) -> None:
    for run in ("1-a", "2-b"):
        (tmp_path / "runs" / run).mkdir(parents=True)
        (tmp_path / "runs" / run / "environment.json").touch()
    (tmp_path / "runs" / "latest").symlink_to("2-b")
    (tmp_path / "nights" / "3-c").mkdir(parents=True)
    (tmp_path / "nights" / "3-c" / "night.json").touch()
    found, modules = completed(tmp_path, words)
    assert found == offered
    assert {*HEAVY, "pydantic", "yaml", "groupquake.commands.run"} & modules == set()


def test_the_shell_completes_options_and_their_values(tmp_path: Path) -> None:
    assert completed(tmp_path, "show --f")[0] == ["--file"]
    assert completed(tmp_path, "plan --coordinator ")[0] == ["scala", "java"]
