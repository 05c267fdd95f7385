"""Writes to standard output and standard error, at once or in a thread of its own.

A terminal whose output is stopped (Ctrl-S), or that nobody reads, holds up the thread that writes
to it; so does a pipe. A run must not wait there: it has faults to heal, and signals to obey.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event
from typing import TYPE_CHECKING, TextIO

from groupquake.background import Background
from groupquake.timing import LAST_LINES_S, SCREEN_S

if TYPE_CHECKING:
    from groupquake.run_screen import RunBar


def write(stream: TextIO, text: str) -> None:
    """Write lines; that a terminal or a reader is gone must not end the healing."""
    try:
        print(text, file=stream, flush=True)
    except OSError:
        # what is buffered would fail once more as the interpreter ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Writer(Background):
    """Writes what is put, in that order, and draws the bar while nothing else is to be written.

    Standard error is a terminal if there is a bar. A line for standard output ends the bar. The
    block ends when all is written.
    """

    thread_name = "writer"

    def __init__(self, bar: "RunBar | None") -> None:
        self._bar = bar
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def __exit__(self, *raised: object) -> None:
        """Write what is left, and end the thread."""
        self._jobs.put(self._end_bar)
        self._jobs.put(None)
        super().__exit__(*raised)

    def put(self, stream: TextIO, text: str) -> None:
        """Have lines written; to be called from any thread, and from a signal handler."""
        self._jobs.put(partial(self._write, stream, text))

    def flush(self) -> None:
        """Wait until all is written and the bar is gone; not for long, since nobody may read."""
        written = Event()
        self._jobs.put(self._end_bar)
        self._jobs.put(written.set)
        written.wait(LAST_LINES_S)

    def _run(self) -> None:
        for job in iter(self._next, None):
            with suppress(OSError):  # the terminal is gone
                job()

    def _next(self) -> Callable[[], None] | None:
        try:
            return self._jobs.get(timeout=SCREEN_S)
        except Empty:
            return self._draw

    def _draw(self) -> None:
        if self._bar is not None:
            self._bar.draw()

    def _write(self, stream: TextIO, text: str) -> None:
        if self._bar is not None and stream is sys.stderr:
            self._bar.above(text)
        else:
            self._end_bar()
            write(stream, text)

    def _end_bar(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.end()
