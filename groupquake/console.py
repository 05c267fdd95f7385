"""The terminal: progress and errors on standard error, results on standard output.

Every argument is a line: whatever characters it holds, it does not begin another one. On a terminal
no line is wider than `WIDEST`: a longer one goes on, indented, at a word. A path stays whole, and a
command stands in a line of its own, to be copied. Elsewhere every line stays one, to be searched.
Colours are for terminals, unless NO_COLOR is set (no-color.org) or TERM is `dumb`.
"""

import json
import os
import re
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar, TextIO

import click

from groupquake.writer import Writer, write
from kafka_protocol.printable import printable

WIDEST = 100
"""Columns that a line has at most; fewer where the terminal has fewer."""
OUTPUT = "groupquake.output"
"""Where click's context has the options of `output_options`, by their names."""
_BEGIN = re.compile(r"(?:\[ *[\d.]+ s\] )? *")
_COMMAND = re.compile(r"(?:: |^)((?:groupquake|locust) .*)$")
_STYLES: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = (
    *(
        (re.compile(rf"(?:(?<=^verdict: )|^){word}(?=$|[ ,])"), {"fg": colour, "bold": True})
        for word, colour in (("pass", "green"), ("fail", "red"), ("unknown", "yellow"))
    ),
    (re.compile(r"\b(?:FAILED|NOT \w+)(?=$|:)"), {"fg": "red", "bold": True}),
    (re.compile(r"(?<=: )injected$"), {"fg": "magenta"}),
    (re.compile(r"(?<=: )healed$"), {"fg": "green"}),
    (re.compile(r"(?<=\] ).* rebalances(?=: )"), {"fg": "cyan"}),
)
"""How words look on a terminal."""


class Console:
    """Prints progress lines with the seconds since it was made.

    The options of the command say what is printed, if it has `output_options`: `quiet` is without
    progress, `verbose` has details, and with `as_json` the result is its JSON, and standard output
    is for that alone.
    """

    writer: ClassVar[Writer | None] = None
    """What writes in the place of the threads that print, as long as a run goes on."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began = time.monotonic()
        context = click.get_current_context(silent=True)
        given: dict[str, bool] = context.meta.get(OUTPUT, {}) if context else {}
        self.as_json, self.quiet = given.get("json", False), given.get("quiet", False)
        self.verbose = given.get("verbose", False)

    def progress(self, message: str, *more: str) -> None:
        """Print a progress line, and those that follow it."""
        if not self.quiet:
            _print(sys.stderr, f"[{time.monotonic() - self._began:6.1f} s] {message}", *more)

    def detail(self, message: str) -> None:
        """Print a progress line that matters where something is wrong."""
        if self.verbose:
            self.progress(message)

    def said(self, *lines: str) -> None:
        """Print lines that are no part of a result as JSON."""
        if not self.as_json:
            self.result(*lines)

    def answer(self, result: object, *lines: str) -> None:
        """Print the result of a command: its lines, or as JSON if that was asked for."""
        if self.as_json:
            self.json(result)
        else:
            self.result(*lines)

    @staticmethod
    def json(result: object) -> None:
        """Print a result as JSON, as it is on any terminal."""
        _write(sys.stdout, json_lines(result))

    @staticmethod
    def result(*lines: str) -> None:
        """Print the lines of a result."""
        _print(sys.stdout, *lines)

    @staticmethod
    def error(*problems: str) -> None:
        """Print an error, in one line, or a line for each of its problems."""
        _print(sys.stderr, *(f"groupquake: {problem}" for problem in problems), fg="red")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that can move its cursor."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def fitted(line: str, columns: int) -> Iterator[str]:
    """Yield a line in parts that fit, but for a path or a command that is longer by itself."""
    if len(line) <= columns:
        yield line
        return
    begin = _BEGIN.match(line)
    indent = " " * (len(begin[0]) if begin else 0) + "  "
    command = _COMMAND.search(line)
    text = line[: command.start(1)].rstrip() if command else line
    yield from textwrap.wrap(
        text, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    if command:
        yield indent + command[1]


def _print(stream: TextIO | None, *lines: str, **style: Any) -> None:
    """Print lines as the stream can show them; a style is that of all, else words have theirs."""
    shown = [printable(line) for line in lines]
    if stream is not None and stream.isatty():
        shown = [part for line in shown for part in fitted(line, _columns(stream))]
    if is_terminal(stream) and not os.environ.get("NO_COLOR"):
        shown = [click.style(line, **style) if style else _styled(line) for line in shown]
    _write(stream, shown)


def _columns(stream: TextIO) -> int:
    with suppress(OSError):  # the terminal is gone
        return min(os.get_terminal_size(stream.fileno()).columns or WIDEST, WIDEST)
    return WIDEST


def _write(stream: TextIO | None, lines: list[str]) -> None:
    if stream is not None and lines:
        (Console.writer.put if Console.writer else write)(stream, "\n".join(lines))


def _styled(line: str) -> str:
    for pattern, style in _STYLES:
        line = pattern.sub(click.style(r"\g<0>", **style), line)
    return line


def json_lines(result: object) -> list[str]:
    """Return the lines of a result as JSON, in ASCII."""
    return json.dumps(result, indent=2).split("\n")
