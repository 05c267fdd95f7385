"""One run that the page started: the runner as a child process, and what it reports.

The runner does the whole run, as at the command line, with the members of this process. It writes
progress lines to standard error and, for the page, JSON objects to standard output, one a line
(`groupquake/live/attached.py`). It takes commands from standard input
(`groupquake/live/by_hand.py`).
"""

import itertools
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import gevent
import msgspec
from gevent import subprocess
from gevent.event import AsyncResult, Event
from gevent.lock import RLock

from loadtest.dies_with_parent import dying_with_parent
from loadtest.errors import LoadtestError
from loadtest.members.settings import TOKEN_VARIABLE
from loadtest.page.events import Live
from loadtest.page.form import Choice
from loadtest.timing import COMMAND_S

State = Literal["starting", "running", "healing", "closing", "comparing", "over"]
"""`healing` begins when Stop is pressed; in `closing` the members close."""

SHOWN = 300
"""How many of the latest progress lines are kept."""

STOP = signal.SIGUSR1
"""Makes the runner end its plan, heal, and judge the run so far."""

OVER = "the run is over; start another one"
ABORTED, CRASHED = 4, 70
"""Exit codes of `groupquake`: ended by a signal, internal error."""


class Run:
    """Starts the runner; `over` is called when it has ended."""

    def __init__(
        self, chosen: Choice, *, port: int, token: str, over: Callable[[], object]
    ) -> None:
        self.name = chosen.experiment.name
        self.state: State = "starting"
        self.lines: deque[str] = deque(filter(None, [chosen.remark]), maxlen=SHOWN)
        self.feed = Live()
        self.folder: Path | None = None
        self.verdict: dict[str, Any] | None = None
        self.errors: list[str] = []
        """Why there is no verdict, once the run is over."""
        self.closing = Event()
        self._asks = itertools.count(1)
        self._asked: dict[int, AsyncResult[dict[str, Any]]] = {}
        self._writing = RLock()
        self._process = subprocess.Popen(
            [
                *dying_with_parent(signal.SIGTERM),
                "-m",
                "groupquake",
                "run",
                *chosen.arguments,
                f"--attach={port}",
            ],
            env={**os.environ, TOKEN_VARIABLE: token},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # we handle Ctrl-C: we end the runner, and wait
        )
        self._done = gevent.spawn(self._follow, over)

    @property
    def goes_on(self) -> bool:
        """Whether the run is in progress."""
        return self.state != "over"

    def shown(self) -> dict[str, Any]:
        """Return what the page shows of it.

        `result` is the verdict, `not judged`, or None while it is in progress; `headline` has a
        line about each group, `why` the reasons of a verdict other than `pass`, or why there is
        none, and `causes` how many rebalances of each group had which cause.
        """
        found = self.verdict or {"verdict": "not judged", "headline": [], "why": self.errors}
        groups = found.get("groups", {})
        return {
            "name": self.name,
            "state": self.state,
            "result": None if self.goes_on else found["verdict"],
            "judged": self.verdict is not None,
            "headline": found["headline"],
            "why": found["why"],
            "causes": {name: of["rebalances_by_cause"] for name, of in groups.items()},
            "folder": str(self.folder or ""),
            "lines": list(self.lines),
        }

    def ask(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Return the runner's answer to a command. Raises LoadtestError if there is none."""
        number, answer = next(self._asks), AsyncResult()
        self._asked[number] = answer
        line = json.dumps({"ask": number, **command}).encode() + b"\n"
        try:
            with self._writing:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            found: dict[str, Any] = answer.get(timeout=COMMAND_S)
        except (OSError, ValueError) as error:
            raise LoadtestError(OVER) from error
        except gevent.Timeout as error:
            raise LoadtestError(f"the runner did not answer within {COMMAND_S:g} s") from error
        finally:
            del self._asked[number]
        return found

    def stop(self) -> None:
        """Make the runner end its plan; return when the members may close."""
        self.state = "healing"
        self._send(STOP)
        self.closing.wait()

    def end(self) -> int:
        """Make the runner heal and stop everything; return its exit code when it has ended."""
        self._send(signal.SIGTERM)
        self._done.join()
        code = int(self._process.returncode)
        if code < 0:  # SIGTERM ended it before it had installed its handler
            return ABORTED if code == -signal.SIGTERM else CRASHED
        return code

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def _follow(self, over: Callable[[], object]) -> None:
        gevent.joinall(
            [
                gevent.spawn(self._read, self._process.stderr, self._take_progress),
                gevent.spawn(self._read, self._process.stdout, self._take_news),
            ]
        )
        self._conclude(self._process.wait())
        self.closing.set()
        over()

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
        news = msgspec.json.decode(line)
        if (answer := news.get("answer")) and answer["ask"] in self._asked:
            self._asked[answer["ask"]].set(answer)
        if "patch" in news:
            self.feed.take(news["patch"])
        if "folder" in news:
            self.folder = Path(news["folder"])

    def _conclude(self, code: int) -> None:
        self.state = "over"
        for answer in self._asked.values():
            answer.set({"refused": OVER})
        try:
            self.verdict = json.loads(self.report("verdict.json").read_text("utf-8"))
        except (OSError, ValueError):
            errors = [line for line in self.lines if line.startswith("groupquake: ")]
            self.errors = errors[-1:] or [f"the runner ended with code {code}"]

    def report(self, name: str) -> Path:
        """Return the path of a file of the run. Raises FileNotFoundError without a run folder."""
        if self.folder is None:
            raise FileNotFoundError(name)
        return self.folder / name
