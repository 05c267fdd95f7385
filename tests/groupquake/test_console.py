"""What the terminal shows, on a pseudo-terminal and elsewhere."""

import json
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

import pytest

from chaos.waiting import until
from groupquake.console import fitted
from groupquake.run_screen import Phases, rebalances
from tests.groupquake.conftest import Command
from tests.groupquake.test_live_view import PREPARING, STABLE, UUID, WHY, Run, java

LONG = "[  12.3 s] " + "word " * 40 + "end"
RECEIVED = (
    f"Assignment received from leader dynamic-dynamic-0-{UUID} for group dynamic for generation 4."
    " The group has 2 members, 0 of which are static."
)
COMMAND = "groupquake report '/runs/with a space/20261129T021333-demo-4.3.0-763542522' --json"
PRINTS = f"""
from groupquake.console import Console
console = Console()
console.progress("f1.1 member.restart static-0: injected")
console.progress({LONG!r})
Console.result("verdict: fail, though", "  judge it: {COMMAND}")
Console.error("no such file")
"""
SHOWS = """
import sys, time
from pathlib import Path
from chaos.plan import make_plan
from groupquake.console import Console
from groupquake.run_screen import shown
from scenarios import named
folder, demo = Path(sys.argv[1]), named("demo")
with shown(folder, demo, make_plan(demo, 1), Console()):
    Console().progress("began")
    log = folder / "journal.jsonl"
    log.write_text('{"event": "phase", "phase": "impact", "at_ms": 1}\\n')
    while input() != "end":
        print(flush=True)
"""


@pytest.mark.parametrize(
    ("line", "columns", "parts"),
    [
        ("short", 100, ["short"]),
        ("  one two three", 10, ["  one two", "    three"]),
        ("[   1.0 s] one two", 16, ["[   1.0 s] one", " " * 13 + "two"]),
        ("in /a/path-that-is/longer", 10, ["in", "  /a/path-that-is/longer"]),
        ("  to judge it: groupquake report 'a b'", 20,
         ["  to judge it:", "    groupquake report 'a b'"]),
    ],
)  # fmt: skip
def test_a_line_goes_on_indented_at_a_word_and_leaves_paths_and_commands_whole(
    line: str, columns: int, parts: list[str]
) -> None:
    assert list(fitted(line, columns)) == parts


class Terminal:
    """A program on a pseudo-terminal of so many columns."""

    def __init__(
        self, program: str, *words: object, columns: int, env: Mapping[str, str] = {}
    ) -> None:
        self.ours, theirs = pty.openpty()
        self.seen = ""
        self.resize(columns)
        kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, words)],
            stdin=theirs, stdout=theirs, stderr=theirs, env=kept | {"TERM": "xterm"} | env,
        )  # fmt: skip
        os.close(theirs)

    def resize(self, columns: int) -> None:
        termios.tcsetwinsize(self.ours, (24, columns))

    def read(self, until: str) -> None:
        """Read on until a text has come."""
        while until not in self.seen:
            self.seen += os.read(self.ours, 1 << 16).decode()

    def end(self) -> str:
        """Return all that came until the program has ended."""
        try:
            while data := os.read(self.ours, 1 << 16):
                self.seen += data.decode()
        except OSError:  # EIO: nobody has the other end any more
            pass
        os.close(self.ours)
        assert self.process.wait(20) == 0, self.seen
        return self.seen


def without_codes(text: str) -> list[str]:
    """Return the lines that stand on a terminal in the end."""
    last = [re.split(r"\r?\x1b\[2K", line)[-1] for line in text.replace("\r\n", "\n").split("\n")]
    return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in last]


@pytest.mark.parametrize(("columns", "widest"), [(80, 80), (240, 100)])
def test_no_line_of_a_terminal_is_wider_than_it_or_than_100_columns(
    columns: int, widest: int
) -> None:
    lines = without_codes(Terminal(PRINTS, columns=columns).end())
    long = [line for line in lines if len(line) > widest]
    assert [line.strip() for line in long] == ([COMMAND] if len(COMMAND) + 4 > widest else [])
    assert " ".join(" ".join(lines).split()).count("word") == 40


@pytest.mark.parametrize(
    ("env", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals_that_want_them(
    env: Mapping[str, str], is_coloured: bool
) -> None:
    seen = Terminal(PRINTS, columns=80, env=env).end()
    for word in ("injected", "fail", "groupquake: no such file"):
        assert (re.search(rf"\x1b\[[0-9;]+m(?:\x1b\[1m)?{word}\x1b\[0m", seen) is not None) == (
            is_coloured
        )
    assert ("\x1b" in seen) == is_coloured


def test_what_is_no_terminal_gets_every_line_whole_and_plain() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRINTS], capture_output=True, text=True, check=True
    )
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout.splitlines() == ["verdict: fail, though", f"  judge it: {COMMAND}"]
    assert LONG in done.stderr.splitlines()[1]


def test_a_bar_stands_below_the_lines_follows_the_phase_and_leaves_no_trace(
    tmp_path: Path,
) -> None:
    terminal = Terminal(SHOWS, tmp_path, columns=80)
    terminal.read("starting")
    terminal.read("impact")
    terminal.resize(40)
    os.write(terminal.ours, b"go on\nend\n")
    seen = terminal.end()
    assert re.search(r"about \d+ s left", seen)
    lines = without_codes(seen)
    assert "began" in "".join(lines)
    assert not lines[-1], "the line of the bar is empty"
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l"), "the cursor is back"


HELD_UP = """
import sys, threading
from groupquake.console import Console
from groupquake.writer import Writer
class Bar:
    def draw(self): sys.stderr.write("b" * 10_000)
    def above(self, text): sys.stderr.write(text + "\\n"), sys.stderr.flush()
    def end(self): pass
with Writer(Bar()) as Console.writer:
    for number in range(2_000):
        Console().progress(f"line {number}")
    open(sys.argv[1], "w").close()
"""


def test_who_prints_waits_for_no_terminal_and_all_lines_come_in_order(tmp_path: Path) -> None:
    """A pseudo-terminal takes some kilobytes that nobody reads."""
    went_on = tmp_path / "went on"
    terminal = Terminal(HELD_UP, went_on, columns=80)
    assert until(went_on.exists, 20)
    lines = re.findall(r"line (\d+)", terminal.end())
    assert lines == [str(number) for number in range(2_000)]


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, None])
def test_no_bar_in_pipes_and_on_terminals_that_cannot_move(
    tmp_path: Path, env: Mapping[str, str] | None
) -> None:
    if env is None:
        command = [sys.executable, "-c", SHOWS, str(tmp_path)]
        done = subprocess.run(command, input="end\n", capture_output=True, text=True, check=True)
        seen = done.stdout + done.stderr
    else:
        terminal = Terminal(SHOWS, tmp_path, columns=80, env=env)
        os.write(terminal.ours, b"end\n")
        seen = terminal.end()
    assert "began" in seen
    assert "starting" not in seen
    assert "\x1b" not in seen


def test_the_time_left_is_that_of_the_phases_to_come() -> None:
    phases = Phases({"cluster": 5.0, "impact": 20.0, "end": 30.0})
    assert phases.left_s == pytest.approx(55, abs=1)
    phases.begin("impact")
    assert phases.left_s == pytest.approx(50, abs=1)
    phases.begin("something of a later version")
    phases.begin("end")
    assert phases.left_s == pytest.approx(30, abs=1)


def test_a_rebalance_is_a_line_once_it_is_over_in_words(tmp_path: Path) -> None:
    run = Run(tmp_path)
    over = rebalances(tmp_path, ["dynamic"])
    run.log(java(200, f"{PREPARING} (reason: {WHY})."), java(700, STABLE))
    assert list(over()) == []
    run.log(java(800, RECEIVED))
    assert list(over()) == ["dynamic rebalances: dynamic-dynamic-1 joined (generation 4, 0.600 s)"]
    left = f"explicit `LeaveGroup` request for (dynamic-dynamic-1-{UUID}) members."
    run.log(
        java(900, f"{PREPARING.replace('3', '4')} (reason: {left})."),
        java(950, "Group dynamic with generation 5 is now empty."),
    )
    assert list(over()) == ["dynamic rebalances: dynamic-dynamic-1 left (generation 5, 0.050 s)"]


def test_json_is_all_of_standard_output_and_quiet_leaves_errors_alone(
    groupquake: Command, small: Path, tmp_path: Path
) -> None:
    words = ("simulate", small, "--page", tmp_path / "page.html")
    loud, quiet = groupquake(*words), groupquake(*words, "--json", "--quiet")
    assert "page.html" in loud.err
    assert quiet.err == ""
    assert json.loads(quiet.out)
    assert groupquake("simulate", "no-such-one", "-q").err.startswith("groupquake: ")
