"""Huge numbers, lists and files on the command line: one clear line, exit code 64, and no wait."""

import os
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import click
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from groupquake.cli import Lazy, cli
from scenarios import named, names
from scenarios.durations import parse_signed_ms
from tests.groupquake.conftest import Command, Done

DOCTOR = ("doctor", "--bootstrap", "127.0.0.1:1", "--client-properties")
OPENING = (
    ("validate",),
    ("plan",),
    ("run",),
    ("nightly", "--check"),
    ("oracle", "replay"),
    DOCTOR,
    ("group", "remove-members", "g", "--all", "--bootstrap", "127.0.0.1:1", "--config"),
)
"""The commands that open a file, which is their last word."""


def refusal(done: Done) -> str:
    """Return the last line of a refusal."""
    assert done.code == 64, done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    return done.err.strip().splitlines()[-1]


def commands(command: click.Command) -> Iterator[click.Command]:
    whole = command.loaded() if isinstance(command, Lazy) else command
    yield whole
    for inside in whole.commands.values() if isinstance(whole, click.Group) else ():
        yield from commands(inside)


def test_no_number_of_the_command_line_is_without_bound() -> None:
    numbers = (click.types.IntParamType, click.types.FloatParamType)
    found = [one for command in commands(cli) for one in command.params]
    ranges = [one for one in found if isinstance(one.type, numbers)]
    assert len(ranges) > 10
    assert [one.name for one in ranges if getattr(one.type, "max", None) is None] == []


NUMBERS_IN = (
    ("plan", "demo", "--seed={}"),
    ("run", "demo", "--processes={}"),
    ("run", "demo", "--ports={}"),
    ("run", "demo", "--expect-workers=1", "--listen=127.0.0.1:{}"),
    ("doctor", "--bootstrap=127.0.0.1:{}"),
    ("oracle", "replay", "-", "--effort={}"),
    ("dev", "fuzz", "--at=127.0.0.1:{}"),
)


def test_a_number_of_the_command_line_is_too_large(groupquake: Command) -> None:
    for *others, last in NUMBERS_IN:
        for huge in ("9" * 5000, "99999999999", "-1"):
            refusal(groupquake(*others, last.format(huge)))


def test_only_regular_files_of_some_size_are_read(groupquake: Command, tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.yaml" for name in ("fifo", "device", "loop", "dir", "huge")}
    os.mkfifo(files["fifo"])
    files["device"].symlink_to("/dev/zero")
    files["loop"].symlink_to(files["loop"])
    files["dir"].mkdir()
    with files["huge"].open("wb") as sparse:
        sparse.truncate(1 << 40)
    for words in OPENING:
        for name, file in files.items():
            line = refusal(groupquake(*words, file))
            assert str(file) in line
            assert name != "huge" or re.search(r"larger than 1 MiB|longer than 64 MiB", line)


def test_a_secret_is_read_from_a_regular_file(groupquake: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "secret")
    file = tmp_path / "client.properties"
    file.write_text(f"sasl.password=${{file:{tmp_path / 'secret'}}}\n")
    line = refusal(groupquake(*DOCTOR, file))
    assert line.endswith("secret: cannot be read; name a text file")


def test_a_suite_of_too_many_runs(groupquake: Command, tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    seeds = ", ".join(map(str, range(1_000)))
    file.write_text(
        f"name: x\nexperiments: [{'demo, ' * 1_000}]\non: [{{kafka: 4.3.0}}]\nseeds: [{seeds}]\n"
    )
    line = refusal(groupquake("nightly", "--check", file))
    assert line.endswith("makes 1000000 runs, and 100000 is the most; leave some out")


def numeric(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield where numbers and durations stand in a document."""
    match node:
        case dict():
            for key, inside in node.items():
                yield from numeric(inside, (*path, key))
        case list():
            for i, inside in enumerate(node):
                yield from numeric(inside, (*path, i))
        case bool():
            return
        case int() | float():
            yield path
        case str() if re.fullmatch("[+-]?[0-9]+(ms|s|m|h)", node) and parse_signed_ms(node) >= 0:
            yield path


DOCUMENTS = [yaml.safe_load(named(name).dump()) for name in names()]
NUMBERS = [(number, path) for number, one in enumerate(DOCUMENTS) for path in numeric(one)]
LISTS = [
    (number, (key,)) for number, one in enumerate(DOCUMENTS) for key in ("faults", "expect", "tags")
]
DIGITS = st.integers(1, 400).map(lambda count: "9" * count)
WORDS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(lambda value: yaml.safe_dump(value).split("\n")[0]),
    st.tuples(st.sampled_from(["", "-", "+"]), DIGITS, st.sampled_from(["ms", "s", "m", "h"])).map(
        "".join
    ),
    DIGITS,
    st.sampled_from([".nan", ".inf", "1e400h", "true", "'7'", "null", "[]", "{}", "0x" + "f" * 99]),
)


def with_word(document: Any, path: tuple[str | int, ...], word: str) -> str:
    """Return a document as YAML, with a word in place of what stands at a path."""
    *parents, last = path
    here = text = deepcopy(document)
    for part in parents:
        here = here[part]
    here[last] = "@@@"
    return yaml.safe_dump(text, sort_keys=False, width=10**9).replace("'@@@'", word)


SLOW = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@SLOW
@given(st.sampled_from(NUMBERS), WORDS, st.sampled_from(["validate", "plan"]))
@example(NUMBERS[0], "9" * 5000, "plan")
def test_any_word_at_the_place_of_a_number(
    groupquake: Command,
    tmp_path: Path,
    place: tuple[int, tuple[str | int, ...]],
    word: str,
    command: str,
) -> None:
    document, path = place
    file = tmp_path / "x.yaml"
    file.write_text(with_word(DOCUMENTS[document], path, word))
    done = groupquake(command, file)
    assert done.code in (0, 64), done.err
    if done.code == 64:
        assert len(done.err.splitlines()) <= 21
    before = DOCUMENTS[document]
    for part in path:
        before = before[part]
    unit = "(ms|s|m|h)" if isinstance(before, str) else ""
    if re.fullmatch(f"9{{20,}}{unit}", word):
        assert done.code == 64
        assert re.search("write [0-9]+h? or less|more than 100 digits", done.err)


@SLOW
@given(
    st.sampled_from(LISTS),
    st.sampled_from(["x", "[]", "{}", "1", "{fault: x}", "{group: x}", "null"]),
    st.sampled_from([1, 20, 22, 1_001]),
    st.sampled_from(["validate", "plan"]),
)
@example(LISTS[0], "x", 250_000, "validate")
def test_any_list_of_bad_items(
    groupquake: Command,
    tmp_path: Path,
    place: tuple[int, tuple[str | int, ...]],
    item: str,
    count: int,
    command: str,
) -> None:
    document, path = place
    file = tmp_path / "x.yaml"
    file.write_text(with_word(DOCUMENTS[document], path, f"[{', '.join([item] * count)}]"))
    done = groupquake(command, file)
    assert done.code in (0, 64), done.err
    if done.code == 64:
        assert len(done.err.splitlines()) <= 21
