"""Every command in README and docs is one that groupquake, make or Python takes."""

import importlib.util
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from groupquake.cli import Lazy, cli

ROOT = Path(__file__).parents[2]
STARTS = ("groupquake ", "make ", "locust ", "python -m ")
INLINE = re.compile(r"`((?:groupquake|make|locust|python -m) [^`]+)`")
PLACEHOLDERS = {
    "NAME": "demo",
    "RUN": "runs/latest",
    "FILE": "scenarios/library/demo.yaml",
    "VERSION": "4.3.0",
    "G": "group",
    "HOST:PORT": "127.0.0.1:9092",
    "T": "topic",
    "DIR": "nights",
    "KAFKA_HOME": "runs",
    "N": "7",
    "mine.yaml": "scenarios/library/demo.yaml",
}
RUN_BY = {
    "groupquake list": "tests/docs/test_commands.py",
    "groupquake show": "tests/docs/test_commands.py",
    "groupquake new": "tests/groupquake/commands/test_new.py",
    "groupquake open": "tests/groupquake/commands/test_experiments.py",
    "groupquake plan": "tests/docs/test_commands.py",
    "groupquake validate": "tests/docs/test_commands.py",
    "groupquake run": "tests/groupquake/whole_run/test_verdict.py",
    "groupquake simulate": "tests/groupquake/simulate/test_command.py",
    "groupquake compare": "tests/groupquake/commands/test_many_runs.py",
    "groupquake report": "tests/groupquake/whole_run/test_verdict.py",
    "groupquake nightly": "tests/groupquake/nightly/test_night.py",
    "groupquake heal": "tests/groupquake/test_heal_walk.py",
    "groupquake doctor": "tests/groupquake/commands/test_doctor.py",
    "groupquake group remove-members": "tests/groupquake/commands/test_group.py",
    "groupquake oracle replay": "tests/groupquake/commands/test_oracle.py",
    "groupquake oracle serve": "tests/groupquake/test_oracle_cluster.py",
    "groupquake clients list": "tests/groupquake/test_trial.py",
    "groupquake clients build": "tests/groupquake/test_trial_run.py",
    "groupquake clients errors": "tests/groupquake/test_trial_run.py",
    "groupquake shrink": "tests/groupquake/shrink/test_command.py",
    "groupquake watch": "tests/groupquake/watch/test_live_cluster.py",
    "groupquake trial": "tests/groupquake/test_trial_run.py",
    "groupquake dev fuzz": "tests/groupquake/fuzz/test_real_broker.py",
    "groupquake dev spark-archive": "tests/reports/ingest/test_archive.py",
    "groupquake dev image": "tests/chaos/clusters/test_docker.py",
    "locust": "tests/loadtest/test_ui_page.py",
}
"""Which test runs a command for real."""
HARMLESS = ("list", "show", "plan", "validate")
BARE = (("plan",), ("show",), ("validate",))


@dataclass(frozen=True)
class Shown:
    """A command, and the page that shows it."""

    page: str
    words: tuple[str, ...]

    @property
    def path(self) -> str:
        """The command and its subcommands, such as `groupquake dev fuzz`."""
        names = [word for word in self.words[:3] if re.fullmatch(r"[a-z-]+", word)]
        return " ".join(names)


def shown(program: str) -> list[Shown]:
    """List the commands of a program on all pages, each once, without their comments."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [
        Shown(str(page.relative_to(ROOT)), words)
        for page in pages
        for words in commands_of(page.read_text("utf-8"))
        if words[0] == program
    ]
    return list({one.words: one for one in found}.values())


def commands_of(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the commands in a page's code blocks and inline code."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced and line.startswith(STARTS):
            yield from _alternatives(re.split(r" {2,}|\s#", line)[0])
        elif not fenced:
            for command in INLINE.findall(line):
                yield from _alternatives(command)


def _alternatives(command: str) -> Iterator[tuple[str, ...]]:
    """Split `dev fuzz | image build` into three commands, and name the placeholders."""
    first, *others = command.split(" | ")
    words = shlex.split(first.replace("…", ""))
    last = re.search(r" ([a-z]+(?: build)?)$", first)
    yield tuple(PLACEHOLDERS.get(word, word) for word in words)
    for other in others:
        assert last, f"`{command}`: what do the alternatives stand for?"
        yield tuple(PLACEHOLDERS.get(w, w) for w in (*words[:-1], *other.split()))


def leaf(words: tuple[str, ...]) -> tuple[click.Command, list[str]]:
    """Return the command that the words name, and its arguments."""
    command: click.Command = cli
    rest = list(words[1:])
    while isinstance(command, click.Group) and rest:
        found = command.commands[rest.pop(0)]
        command = found.loaded() if isinstance(found, Lazy) else found
    return command, rest


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the experiments of the library and a run, as commands name them."""
    (tmp_path / "runs" / "latest").mkdir(parents=True)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("checkout")
def test_groupquake_takes_what_pages_show_and_a_test_runs_it() -> None:
    commands = shown("groupquake")
    assert len(commands) >= 20
    for one in commands:
        command, arguments = leaf(one.words)
        if arguments:  # without any, the text speaks of the command itself
            command.make_context(one.path, [*arguments])  # checks every option and argument
        if not isinstance(command, click.Group):
            known = [path for path in RUN_BY if one.path.startswith(path)]
            assert known, f"{one.page}: no test runs `{one.path}`"
        if one.words[1] in HARMLESS and one.words[1:] not in BARE:
            assert not command.main(arguments, one.path, standalone_mode=False), one
    for path in set(RUN_BY.values()):
        assert "def test_" in (ROOT / path).read_text("utf-8")


def test_the_makefile_and_python_have_what_pages_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for one in shown("make"):
        target = next(word for word in one.words[1:] if "=" not in word)
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), one
    for one in shown("python"):
        assert importlib.util.find_spec(one.words[2]), one


def test_an_unknown_command_in_a_page_is_found() -> None:
    ((*words,),) = commands_of("```\ngroupquake pla NAME\n```")
    with pytest.raises(KeyError):
        leaf(tuple(words))
    ((*words,),) = commands_of("`groupquake plan NAME --sede 7`")
    command, arguments = leaf(tuple(words))
    with pytest.raises(click.UsageError):
        command.make_context("plan", arguments)


def test_each_command_has_an_example_and_those_without_a_cluster_were_run() -> None:
    """That the page is as they print now is for `test_no_generated_page_is_stale`."""
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    sections = re.findall(
        r"^## (groupquake[^\n]*)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL
    )
    leaves = [(path, text) for path, text in sections if "COMMAND [ARGS]" not in text]
    assert [path for path, text in leaves if f"$ {path}" not in text] == []
    assert "/home/you/runs/latest/report.html" in page
