"""Every command in README and docs is one that groupquake, make or Python takes."""

import importlib.util
import re
from functools import partial
from pathlib import Path

import click
import pytest

from groupquake.cli import Lazy, cli
from tests.docs.commands import ROOT, Shown, commands_of, shown

SHOWN = shown()
RUN_BY = {
    "groupquake list": "tests/docs/test_commands.py",
    "groupquake plan": "tests/docs/test_commands.py",
    "groupquake validate": "tests/docs/test_commands.py",
    "groupquake run": "tests/groupquake/test_whole_run.py",
    "groupquake compare": "tests/groupquake/commands/test_many_runs.py",
    "groupquake report": "tests/groupquake/test_whole_run.py",
    "groupquake nightly": "tests/groupquake/nightly/test_night.py",
    "groupquake heal": "tests/groupquake/test_whole_run.py",
    "groupquake doctor": "tests/groupquake/commands/test_doctor.py",
    "groupquake group remove-members": "tests/groupquake/commands/test_group.py",
    "groupquake oracle replay": "tests/groupquake/commands/test_oracle.py",
    "groupquake oracle serve": "tests/groupquake/test_oracle_cluster.py",
    "groupquake clients list": "tests/groupquake/test_trial.py",
    "groupquake clients build": "tests/groupquake/test_trial_run.py",
    "groupquake trial": "tests/groupquake/test_trial_run.py",
    "groupquake dev fuzz": "tests/groupquake/fuzz/test_real_broker.py",
    "groupquake dev spark-archive": "tests/reports/ingest/test_archive.py",
    "groupquake dev image": "tests/chaos/clusters/test_docker.py",
    "locust": "tests/loadtest/test_ui_page.py",
}
"""Which test runs a command for real."""
HARMLESS = ("list", "plan", "validate")
BARE = (("plan",), ("validate",))


def of(program: str) -> list[Shown]:
    return [one for one in SHOWN if one.words[0] == program]


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
    assert len(of("groupquake")) >= 20
    for one in of("groupquake"):
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
    for one in of("make"):
        target = next(word for word in one.words[1:] if "=" not in word)
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), one
    for one in of("python"):
        assert importlib.util.find_spec(one.words[2]), one


def test_an_unknown_command_in_a_page_is_found() -> None:
    ((*words,),) = commands_of("```\ngroupquake pla NAME\n```")
    with pytest.raises(KeyError):
        leaf(tuple(words))
    ((*words,),) = commands_of("`groupquake plan NAME --sede 7`")
    command, arguments = leaf(tuple(words))
    with pytest.raises(click.UsageError):
        partial(command.make_context, "plan", arguments)()
