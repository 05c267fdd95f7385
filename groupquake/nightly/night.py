"""One night: every job as a process of its own, and `night.json`, always up to date.

Layout, under the night's folder:

    night.json              the record, rewritten atomically at every change
    junit.xml               the same, for a build server
    runs/<run>/             run folders
    output/<n>-<name>.log   the output of each run
"""

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaos.waiting import exit_code
from groupquake import __version__
from groupquake.exits import Exit
from groupquake.folders import git_state
from groupquake.nightly.outcome import WORST_FIRST, Outcome, Verdict, judged
from groupquake.nightly.suite import Job, Suite
from loadtest.dies_with_parent import dying_with_parent

Json = dict[str, Any]
_PROGRAM = ("-P", "-m", "groupquake")  # -P: no import from the current folder
_CODES: dict[Verdict, Exit] = {
    "pass": Exit.PASS,
    "fail": Exit.FAIL,
    "unknown": Exit.UNKNOWN,
    "not run": Exit.UNKNOWN,
}


class Night:
    """Runs the jobs of a suite, one after the other, in a folder of its own.

    `changed` is called after every change of the record, `progress` with progress lines.
    """

    def __init__(
        self,
        suite: Suite,
        jobs: Sequence[Job],
        folder: Path,
        *,
        changed: Callable[[Json], None],
        progress: Callable[[str], None],
    ) -> None:
        """Write the record of the planned runs; start none."""
        self._suite = suite
        self._jobs = tuple(jobs)
        self._folder = folder.absolute()
        self._changed = changed
        self._progress = progress
        self._outcomes = [Outcome() for _ in self._jobs]
        self._process: subprocess.Popen[bytes] | None = None
        self._aborted: signal.Signals | None = None
        self._began = time.monotonic()
        self._started_at = _now()
        self._ended_at: str | None = None
        self._git = git_state()
        for name in ("runs", "output"):
            (self._folder / name).mkdir()
        self._write()

    def abort(self, name: str) -> None:
        """Forward a signal to the current run, and start no other."""
        self._aborted = signal.Signals[name]
        self._progress(f"{name}: ending the current run; no other starts")
        self._pass_on()

    def run(self) -> tuple[Json, Exit]:
        """Run every job; return the night as `night.json` has it, and the exit code."""
        for i, job in enumerate(self._jobs):
            title = f"{i + 1}/{len(self._jobs)} {job.experiment} on {job.platform}, seed {job.seed}"
            if reason := self._over():
                self._outcomes[i] = Outcome(state="ended", why=reason)
                self._progress(f"{title}: not run: {reason}")
                continue
            self._outcomes[i] = Outcome(state="running")
            self._write()
            self._progress(title)
            self._outcomes[i] = outcome = self._carry_out(i, job)
            self._write()
            why = f": {outcome.why}" if outcome.why else ""
            self._progress(f"{title}: {outcome.verdict} in {outcome.took_s:.0f} s{why}")
        self._ended_at = _now()
        return self._write(), self._exit()

    def _over(self) -> str | None:
        """Return why no further run may start, or None."""
        if self._aborted is not None:
            return f"the night was ended by {self._aborted.name}"
        limit_ms = self._suite.max_duration_ms
        if limit_ms is not None and (time.monotonic() - self._began) * 1000 >= limit_ms:
            return "the suite's max_duration was over"
        return None

    def _carry_out(self, i: int, job: Job) -> Outcome:
        runs = self._folder / "runs"
        before = set(runs.iterdir())
        output = self._folder / "output" / f"{i + 1}-{job.experiment}.log"
        arguments = [*job.arguments(), f"--runs={runs}"]
        began = time.monotonic()
        code = self._child(arguments, output)
        made = [folder for folder in set(runs.iterdir()) - before if not folder.is_symlink()]
        folder = made[0] if made else None
        outcome = judged(code, time.monotonic() - began, folder, output)
        if folder is not None and (code < 0 or code == Exit.INTERNAL):
            healed = _heal(folder, output)  # a crashed run could not heal
            if healed != Exit.PASS:
                outcome = replace(outcome, exit_code=int(Exit.NOT_HEALED))
        return outcome

    def _child(self, arguments: Sequence[str], output: Path) -> int:
        """Run a groupquake command with signals forwarded; return its exit code."""
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                [*dying_with_parent(signal.SIGTERM), *_PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # we forward Ctrl-C
            )
        if self._aborted is not None:  # the signal came while the process started
            self._pass_on()
        return exit_code(self._process)

    def _pass_on(self) -> None:
        if self._process is not None and self._aborted is not None:
            self._process.send_signal(self._aborted)

    def _verdict(self) -> tuple[Verdict, str | None]:
        verdicts = [outcome.verdict for outcome in self._outcomes]
        if self._ended_at is not None and set(verdicts) == {"not run"}:
            return "fail", "nothing ran"
        return min(verdicts, key=WORST_FIRST.index), None

    def _exit(self) -> Exit:
        codes = [outcome.exit_code for outcome in self._outcomes]
        if Exit.NOT_HEALED in codes:
            return Exit.NOT_HEALED
        if self._aborted is not None:
            return Exit.ABORTED
        return _CODES[self._verdict()[0]]

    def _write(self) -> Json:
        """Write the current record; readers see the old or the new one."""
        verdict, why = self._verdict()
        record: Json = {
            "suite": self._suite.name,
            "description": self._suite.description,
            "night": self._folder.name,
            "state": "ended" if self._ended_at else "running",
            "verdict": verdict,
            "why": why,
            "aborted": self._aborted.name if self._aborted else None,
            "started_at": self._started_at,
            "ended_at": self._ended_at,
            "took_s": round(time.monotonic() - self._began, 1),
            "groupquake_version": __version__,
            "git": self._git,
            "runs": [
                {
                    "experiment": job.experiment,
                    "kafka": job.platform.kafka,
                    "coordinator": job.platform.resolved,
                    "cluster": job.platform.cluster,
                    "platform": str(job.platform),
                    "seed": job.seed,
                    "command": shlex.join(["groupquake", *job.arguments()]),
                    **asdict(outcome),
                }
                for job, outcome in zip(self._jobs, self._outcomes, strict=True)
            ],
        }
        unfinished = self._folder / ".night.json"
        unfinished.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(self._folder / "night.json")
        self._changed(record)
        return record


def _heal(folder: Path, output: Path) -> int:
    """Heal the faults that a crashed run left open; no signal interrupts this."""
    with output.open("ab") as file:
        done = subprocess.run(
            [sys.executable, *_PROGRAM, "heal", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            check=False,
        )
    return done.returncode


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
