"""Wire scripts as a child process: started after the steady state, awaited after the last phase."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.journal import Journal
from chaos.timing import INTERRUPTIBLE_S
from chaos.waiting import exit_code
from groupquake.load_process import environment
from loadtest.dies_with_parent import dying_with_parent
from loadtest.wire_scripts import FINISHED, READY_FOR_KILL
from scenarios import Experiment
from scenarios.wire_scripts import NEEDS, WireScript

READY_S = 120.0
"""How long scripts may take until they are ready for the kill of their coordinator."""
START_S = 60.0
"""How long the process may take until it prints its first line."""
END_S = 180.0
"""How long scripts may run on after the last phase."""
_PROGRESS_EVERY_S = 5.0

Progress = Callable[[str], None]


@dataclass
class WireScripts:
    """The running wire scripts of an experiment.

    The journal gets an entry `failed` if a script does not reach its end: its group then does not
    show the rule that the script is for.
    """

    names: tuple[WireScript, ...]
    process: subprocess.Popen[bytes]
    log: Path
    journal: Journal
    progress: Progress
    stopped: bool = False

    def await_ready(self) -> None:
        """Wait for the start, then until every script that needs a kill is ready for it."""
        self._wait(lambda: [] if self._printed() else ["their start"], START_S)
        killed = [name for name in self.names if NEEDS[name].killed]
        self._wait(lambda: self._not_yet(READY_FOR_KILL, killed), READY_S)

    def finish(self) -> None:
        """Wait for the end of all scripts, unless they are stopped."""
        self._wait(lambda: self._not_yet(FINISHED, self.names) or ["their end"], END_S)
        code = self.process.poll()
        if code == 0:
            return
        if code is None:
            why = "stopped early" if self.stopped else f"not finished within {END_S:g} s"
            error = f"{', '.join(self._not_yet(FINISHED, self.names))} {why}"
            self.progress(f"wire scripts: {error}")
        else:
            error = (self._printed() or ["their process printed nothing"])[-1]
        self.journal.write(
            "failed", fault_id=None, error=f"wire scripts: {error}; see {self.log.name}"
        )

    def stop(self) -> None:
        """Stop waiting for the scripts. A signal handler may call it."""
        self.stopped = True

    def _wait(self, missing: Callable[[], Sequence[str]], limit_s: float) -> None:
        """Wait until nothing is missing, the process ends, `stop` is called or the limit passes."""
        began = time.monotonic()
        shown_s = 0.0
        while self.process.poll() is None and not self.stopped and (names := missing()):
            waited_s = time.monotonic() - began
            if waited_s > limit_s:
                return
            if waited_s - shown_s >= _PROGRESS_EVERY_S:
                shown_s = waited_s
                self.progress(
                    f"waiting for the wire scripts: {', '.join(names)} ({waited_s:.0f} s)"
                )
            time.sleep(INTERRUPTIBLE_S)

    def _not_yet(self, state: str, names: Sequence[str]) -> list[str]:
        """List the scripts, of those named, that have not printed a state yet."""
        printed = self._printed()
        return [name for name in names if f"{name}: {state}" not in printed]

    def _printed(self) -> list[str]:
        return self.log.read_text(errors="replace").strip().splitlines()


@contextmanager
def running(
    folder: Path,
    bootstrap: str,
    experiment: Experiment,
    seed: int,
    journal: Journal,
    progress: Progress,
) -> Iterator[WireScripts | None]:
    """Run the experiment's wire scripts beside the block; yields None if it has none.

    All scripts that need a kill of their coordinator are ready for it when the block begins.
    """
    names = experiment.workload.wire_scripts
    if not names:
        yield None
        return
    log = folder.resolve() / "wire_scripts.log"
    command = [
        *dying_with_parent(signal.SIGKILL), "-m", "loadtest.wire_scripts",
        "--bootstrap", bootstrap, "--seed", str(seed),
        "--history", str(folder.resolve() / "history.jsonl"), *names,
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the runner handles Ctrl-C
        )
    try:
        wire_scripts = WireScripts(names, process, log, journal, progress)
        wire_scripts.await_ready()
        yield wire_scripts
    finally:
        process.kill()
        exit_code(process)
