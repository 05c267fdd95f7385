"""One run that the page started: the runner as a child, and what it tells.

The runner does everything that a run takes, as at the command line; of this process it wants the
members only. It tells what happens on standard error, as to a person, and on standard output what
the page shows beside that, one JSON object a line (`groupquake/attached.py`).
"""

import json
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import gevent
from gevent import subprocess
from gevent.event import Event

from loadtest.dies_with_parent import dying_with_parent

State = Literal["starting", "running", "healing", "closing", "comparing", "over"]
"""`healing` once somebody pressed Stop, `closing` while the members close."""

SHOWN = 300
"""How many of the latest progress lines are kept."""

TOKEN_VARIABLE = "GROUPQUAKE_CONTROL_TOKEN"  # noqa: S105 (where it is, not what it is)
STOP = signal.SIGUSR1
"""What the runner takes for: end the plan now, and judge what happened so far."""

ABORTED, CRASHED = 4, 70
"""How `groupquake` ends after a signal, and after what should not happen."""


class Run:
    """Starts the runner at once; `over` is called when it has ended."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        port: int,
        token: str,
        over: Callable[["Run"], object],
    ) -> None:
        self.name = name
        self.state: State = "starting"
        self.lines: deque[str] = deque(maxlen=SHOWN)
        self.tables: dict[str, list[dict[str, str]]] = {}
        self.folder: Path | None = None
        self.verdict: dict[str, Any] | None = None
        self.error_line = ""
        self.closing = Event()
        self._process = subprocess.Popen(
            [
                *dying_with_parent(signal.SIGTERM),
                "-m",
                "groupquake",
                "run",
                *arguments,
                f"--attach={port}",
            ],
            env={**os.environ, TOKEN_VARIABLE: token},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours to handle: we end it, and wait
        )
        self._done = gevent.spawn(self._follow, over)

    @property
    def goes_on(self) -> bool:
        """Whether there is more to come."""
        return self.state != "over"

    @property
    def result(self) -> str | None:
        """The verdict, `not judged`, or None as long as the run goes on."""
        if self.goes_on:
            return None
        return "not judged" if self.verdict is None else self.verdict["verdict"]

    @property
    def headline(self) -> list[str]:
        """What the verdict says of each group."""
        return [] if self.verdict is None else list(self.verdict["headline"])

    @property
    def why(self) -> list[str]:
        """What stands behind a verdict other than `pass`, or why there is none."""
        if self.verdict is None:
            return [self.error_line] if self.error_line else []
        found = [
            f"{item['kind']} in {item['group']} ({item['log']['file']}:{item['log']['line']})"
            for item in self.verdict["findings"]
            if item["root"]
        ]
        unmet = [
            f"{item['group']}, {item['phase']}: expected {item['expected']} {item['what']},"
            f" observed {item['observed']}"
            for item in self.verdict["expectations_unmet"]
        ]
        return found + unmet + [f"left open: {doubt}" for doubt in self.verdict["unknown_because"]]

    def stop(self) -> None:
        """Let the runner end the plan now; wait until the members may close."""
        self.state = "healing"
        self._send(STOP)
        self.closing.wait()

    def end(self) -> int:
        """Let the runner heal and stop everything; return its exit code once it has ended."""
        self._send(signal.SIGTERM)
        self._done.join()
        code = int(self._process.returncode)
        if code < 0:  # by SIGTERM before it could handle one, it had not begun
            return ABORTED if code == -signal.SIGTERM else CRASHED
        return code

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def _follow(self, over: Callable[["Run"], object]) -> None:
        gevent.joinall(
            [
                gevent.spawn(self._read, self._process.stderr, self._take_progress),
                gevent.spawn(self._read, self._process.stdout, self._take_news),
            ]
        )
        self._conclude(self._process.wait())
        self.closing.set()
        over(self)

    def _read(self, pipe: Any, take: Callable[[str], None]) -> None:
        with pipe:
            for line in pipe:
                take(line.decode(errors="replace").rstrip())

    def _take_progress(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)
        self.lines.append(line)

    def _take_news(self, line: str) -> None:
        if not line.startswith("{"):
            self._take_progress(line)
            return
        news = json.loads(line)
        self.tables |= news.get("tables", {})
        if "folder" in news:
            self.folder = Path(news["folder"])

    def _conclude(self, code: int) -> None:
        self.state = "over"
        try:
            self.verdict = json.loads(self.report("verdict.json").read_text("utf-8"))
        except (OSError, ValueError):
            told = [line for line in self.lines if line.startswith("groupquake: ")]
            self.error_line = told[-1] if told else f"the runner ended with code {code}"

    def report(self, name: str) -> Path:
        """Return where a file of the run folder is. Raises FileNotFoundError without a folder."""
        if self.folder is None:
            raise FileNotFoundError(name)
        return self.folder / name
