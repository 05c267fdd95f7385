"""Wire scripts as a child process: started after the steady state, awaited after the last phase."""

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.journal import Journal
from chaos.timing import INTERRUPTIBLE_S
from groupquake.load_process import child
from groupquake.timing import SCRIPTS_END_S, SCRIPTS_READY_S, SCRIPTS_START_S, WAITING_SHOWN_S
from loadtest.wire_scripts import FINISHED, READY
from scenarios import Experiment
from scenarios.wire_scripts import NEEDS, WireScript

Progress = Callable[[str], None]


@dataclass
class WireScripts:
    """The running wire scripts of an experiment.

    The journal gets an entry `failed` if a script does not reach its end: its group then does not
    show the rule that the script is for.
    """

    names: tuple[WireScript, ...]
    process: subprocess.Popen[bytes] | None
    """None without a script."""
    log: Path
    journal: Journal
    progress: Progress
    stopped: bool = False

    def await_ready(self) -> None:
        """Wait for the start, then until every script that waits for a fault is ready for it."""
        self._wait(lambda: [] if self._printed() else ["their start"], SCRIPTS_START_S)
        waiting = [name for name in self.names if NEEDS[name].awaits]
        self._wait(lambda: self._not_yet(READY, waiting), SCRIPTS_READY_S)

    def finish(self) -> None:
        """Wait for the end of all scripts, unless they are stopped."""
        self._wait(lambda: self._not_yet(FINISHED, self.names) or ["their end"], SCRIPTS_END_S)
        code = self._poll()
        if code == 0:
            return
        if code is None:
            why = "stopped early" if self.stopped else f"not finished within {SCRIPTS_END_S:g} s"
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
        while self._poll() is None and not self.stopped and (names := missing()):
            waited_s = time.monotonic() - began
            if waited_s > limit_s:
                return
            if waited_s - shown_s >= WAITING_SHOWN_S:
                shown_s = waited_s
                self.progress(
                    f"waiting for the wire scripts: {', '.join(names)} ({waited_s:.0f} s)"
                )
            time.sleep(INTERRUPTIBLE_S)

    def _poll(self) -> int | None:
        return 0 if self.process is None else self.process.poll()

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
) -> Iterator[WireScripts]:
    """Run the experiment's wire scripts, if it has some, beside the block.

    All scripts that wait for a fault at their coordinator are ready for it when the block begins.
    """
    names = experiment.workload.wire_scripts
    log = folder.resolve() / "wire_scripts.log"
    if not names:
        yield WireScripts((), None, log, journal, progress)
        return
    arguments = [
        "loadtest.wire_scripts", "--bootstrap", bootstrap, "--seed", str(seed),
        "--history", str(log.with_name("history.jsonl")), *names,
    ]  # fmt: skip
    with child(arguments, log) as process:
        wire_scripts = WireScripts(names, process, log, journal, progress)
        wire_scripts.await_ready()
        yield wire_scripts
