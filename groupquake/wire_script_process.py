"""Stories as a child process: told during the phases of a run, and told to their end."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.interruptible_wait import LOOK_UP_S, exit_code
from chaos.journal import Journal
from groupquake.load_process import environment
from loadtest.dies_with_parent import dying_with_parent
from scenarios import Experiment
from scenarios.wire_scripts import NEEDS, WireScript

HOLD_S = 120.0
"""How long stories may take to come to where their coordinator is to be killed."""
START_S = 60.0
"""How long their program may take to begin."""
END_S = 180.0
"""How long after the last phase a story may go on."""
_PROGRESS_EVERY_S = 5.0

Progress = Callable[[str], None]


@dataclass
class Stories:
    """Stories that are being told. `held` are those that wait for their coordinator to be killed.

    The journal gets a failure if one does not go as it should: then it shows nothing.
    """

    names: tuple[WireScript, ...]
    process: subprocess.Popen[bytes]
    log: Path
    journal: Journal
    progress: Progress
    stopped: bool = False

    def await_held(self) -> None:
        """Wait until they begin, and a kill comes at the right time for all that need one."""
        self._wait(lambda: [] if self._said() else ["their begin"], START_S)
        held = [name for name in self.names if NEEDS[name].killed]
        self._wait(lambda: self._without("holds", held), HOLD_S)

    def finish(self) -> None:
        """Wait for their end, unless they are stopped."""
        self._wait(lambda: self._without("told", self.names) or ["their end"], END_S)
        code = self.process.poll()
        if code == 0:
            return
        if code is None:
            why = "cut short" if self.stopped else f"not told within {END_S:g} s"
            last = f"{', '.join(self._without('told', self.names))} {why}"
            self.progress(f"stories: {last}")
        else:
            last = (self._said() or ["nothing was said"])[-1]
        self.journal.write(
            "failed", fault_id=None, error=f"the stories: {last}; see {self.log.name}"
        )

    def stop(self) -> None:
        """Do not wait for them any longer. May be called from a signal handler."""
        self.stopped = True

    def _wait(self, left: Callable[[], Sequence[str]], limit_s: float) -> None:
        """Wait until nothing is left, the program ended, was stopped or takes too long."""
        began = time.monotonic()
        shown_s = 0.0
        while self.process.poll() is None and not self.stopped and (names := left()):
            waited_s = time.monotonic() - began
            if waited_s > limit_s:
                return
            if waited_s - shown_s >= _PROGRESS_EVERY_S:
                shown_s = waited_s
                self.progress(f"waiting for the stories: {', '.join(names)} ({waited_s:.0f} s)")
            time.sleep(LOOK_UP_S)

    def _without(self, word: str, names: Sequence[str]) -> list[str]:
        """List those of these stories that have not said that they are so far."""
        said = self._said()
        return [name for name in names if f"{name}: {word}" not in said]

    def _said(self) -> list[str]:
        return self.log.read_text(errors="replace").strip().splitlines()


@contextmanager
def telling(
    folder: Path,
    bootstrap: str,
    experiment: Experiment,
    seed: int,
    journal: Journal,
    progress: Progress,
) -> Iterator[Stories | None]:
    """Tell the experiment's stories beside the block; None if it has none.

    They begin no later than the block does: faults may be about them.
    """
    names = experiment.workload.wire_scripts
    if not names:
        yield None
        return
    log = folder.resolve() / "stories.log"
    command = [
        *dying_with_parent(signal.SIGKILL), "-m", "loadtest.wire_scripts",
        "--bootstrap", bootstrap, "--seed", str(seed), *names,
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is the runner's to handle
        )
    try:
        stories = Stories(names, process, log, journal, progress)
        stories.await_held()
        yield stories
    finally:
        process.kill()
        exit_code(process)
