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
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from chaos.waiting import exit_code
from groupquake import __version__
from groupquake.exits import OF_VERDICT, Exit
from groupquake.folders import git_state
from groupquake.nightly.suite import Job
from loadtest.dies_with_parent import dying_with_parent
from reports.judgement.expectations import described

Json = dict[str, Any]
Verdict = Literal["fail", "unknown", "not run", "pass"]
WORST_FIRST: tuple[Verdict, ...] = ("fail", "unknown", "not run", "pass")
_PROGRAM = ("-P", "-m", "groupquake")  # -P: no import from the current folder
CODES = {**OF_VERDICT, "not run": Exit.UNKNOWN}
_NEVER_BEGAN = (Exit.NOT_STEADY, Exit.ABORTED, Exit.USAGE)
"""Exit codes of runs that injected no fault, and so prove nothing."""
_WAITING: Json = {
    "state": "waiting", "verdict": "not run", "why": None, "exit_code": None, "took_s": None,
    "folder": None, "output": None, "groups": {},
}  # fmt: skip
"""What the record has of a run beside its job, as long as it has not begun."""


class Night:
    """Runs jobs, one after the other, in a folder of its own; none starts after `max_duration_ms`.

    `record` is what `night.json` has. `changed` is called after every change of it, `progress` with
    progress lines.
    """

    def __init__(
        self,
        name: str,
        jobs: Sequence[Job],
        folder: Path,
        *,
        progress: Callable[[str], None],
        changed: Callable[[Json], None] = lambda _: None,
        description: str = "",
        max_duration_ms: int | None = None,
    ) -> None:
        """Write the record of the planned runs; start none."""
        self._max_duration_ms = max_duration_ms
        self._jobs = tuple(jobs)
        self._folder = folder.absolute()
        self._changed = changed
        self._progress = progress
        self._process: subprocess.Popen[bytes] | None = None
        self._began = time.monotonic()
        self.record: Json = {
            "suite": name,
            "description": description,
            "night": self._folder.name,
            "state": "running",
            "verdict": "not run",
            "why": None,
            "aborted": None,
            "started_at": _now(),
            "ended_at": None,
            "took_s": 0.0,
            "groupquake_version": __version__,
            "git": git_state(),
            "runs": [_planned(job) for job in self._jobs],
        }
        for inside in ("runs", "output"):
            (self._folder / inside).mkdir()
        self._write()

    def abort(self, name: str) -> None:
        """Forward a signal to the current run, and start no other."""
        self.record["aborted"] = name
        self._pass_on()  # first: the terminal may be stopped
        self._progress(f"{name}: ending the current run; no other starts")

    def run(self) -> tuple[Json, Exit]:
        """Run every job; return the night as `night.json` has it, and the exit code."""
        runs = self.record["runs"]
        for number, (job, run) in enumerate(zip(self._jobs, runs, strict=True), 1):
            title = f"{number}/{len(runs)} {job.experiment} on {job.platform}, seed {job.seed}"
            if reason := self._over():
                run.update(state="ended", why=reason)
                self._progress(f"{title}: not run: {reason}")
                continue
            run["state"] = "running"
            self._write()
            self._progress(title)
            run.update(self._carry_out(number, job))
            self._write()
            why = f": {run['why']}" if run["why"] else ""
            self._progress(f"{title}: {run['verdict']} in {run['took_s']:.0f} s{why}")
        self.record |= {"state": "ended", "ended_at": _now()}
        self._write()
        return self.record, self._exit()

    def _over(self) -> str | None:
        """Return why no further run may start, or None."""
        if self.record["aborted"] is not None:
            return f"the night was ended by {self.record['aborted']}"
        limit_ms = self._max_duration_ms
        if limit_ms is not None and (time.monotonic() - self._began) * 1000 >= limit_ms:
            return "the suite's max_duration was over"
        return None

    def _carry_out(self, number: int, job: Job) -> Json:
        runs = self._folder / "runs"
        before = set(runs.iterdir())
        output = self._folder / "output" / f"{number}-{job.experiment}.log"
        began = time.monotonic()
        code = self._child([*job.arguments(), f"--runs={runs}"], output)
        made = [folder for folder in set(runs.iterdir()) - before if not folder.is_symlink()]
        folder = made[0] if made else None
        outcome = judged(code, time.monotonic() - began, folder, output)
        crashed = code < 0 or code == Exit.INTERNAL  # and could not heal
        if folder is not None and crashed and _heal(folder, output) != Exit.PASS:
            outcome["exit_code"] = int(Exit.NOT_HEALED)
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
        self._pass_on()  # the signal may have come while the process started
        return exit_code(self._process)

    def _pass_on(self) -> None:
        if self._process is not None and self.record["aborted"] is not None:
            self._process.send_signal(signal.Signals[self.record["aborted"]])

    def _exit(self) -> Exit:
        if Exit.NOT_HEALED in [run["exit_code"] for run in self.record["runs"]]:
            return Exit.NOT_HEALED
        if self.record["aborted"] is not None:
            return Exit.ABORTED
        return CODES[self.record["verdict"]]

    def _write(self) -> None:
        """Write the current record; readers see the old or the new one."""
        verdicts = {run["verdict"] for run in self.record["runs"]}
        if self.record["ended_at"] is not None and verdicts == {"not run"}:
            self.record |= {"verdict": "fail", "why": "nothing ran"}
        else:
            self.record["verdict"] = worst(verdicts or {"not run"})
        self.record["took_s"] = round(time.monotonic() - self._began, 1)
        put(self._folder / "night.json", json.dumps(self.record, indent=2) + "\n")
        self._changed(self.record)


def put(file: Path, text: str) -> None:
    """Write a file atomically: readers see the old or the new content."""
    unfinished = file.with_name(f".{file.name}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict."""
    return min(verdicts, key=WORST_FIRST.index)


def judged(code: int, took_s: float, folder: Path | None, output: Path) -> Json:
    """Return what the record has of a run whose process has ended; a crash is no verdict.

    A run passes with the expected verdict of its experiment. `groups` has for each group the number
    of its `rebalances` in the impact phase.
    """
    verdict = read_verdict(folder)
    if verdict is not None and OF_VERDICT.get(verdict["verdict"]) == code:
        reasons = verdict["why"]
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        why = reasons[0] + more if reasons else None
        found = verdict["verdict"]
        if (expected := verdict["expected_verdict"]) is not None:
            if expected["met"]:
                found, why = "pass", f"{found}, as expected"
            else:
                why = f"{found}, though {described(expected)} was expected"
                found = "unknown" if found == "unknown" else "fail"
    else:
        verdict, why = None, _last_words(output, code)
        found = "not run" if code in _NEVER_BEGAN else "unknown"
    return {
        "state": "ended",
        "verdict": found,
        "why": why,
        "exit_code": code,
        "took_s": round(took_s, 1),
        "folder": None if folder is None else f"runs/{folder.name}",
        "output": f"output/{output.name}",
        "groups": {
            name: {"rebalances": group["rebalances_observed"]["impact"]}
            for name, group in (verdict["groups"] if verdict else {}).items()
        },
    }


def _planned(job: Job) -> Json:
    return {
        "experiment": job.experiment,
        "kafka": job.platform.kafka,
        "coordinator": job.platform.resolved,
        "cluster": job.platform.cluster,
        "platform": str(job.platform),
        "seed": job.seed,
        "command": shlex.join(["groupquake", *job.arguments()]),
        **_WAITING,
    }


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


def read_verdict(folder: Path | None) -> Json | None:
    """Return the verdict of a run folder, if there is one."""
    if folder is None:
        return None
    try:
        content: Json = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # the run ended before the end of its analysis
        return None
    return content


def table(folders: Iterable[Path]) -> list[str]:
    """Return the lines of a table of judged runs, and of the first reason of each verdict.

    The table has the verdict, and the rebalances of each group in the impact phase.
    """
    import pandas as pd  # noqa: PLC0415 (it loads slowly)

    rows, reasons = [], []
    for folder in folders:
        if verdict := read_verdict(folder):
            row = {"run": folder.name, "verdict": verdict["verdict"]}
            for name, group in verdict["groups"].items():
                row[f"rebalances of {name}"] = group["rebalances_observed"]["impact"]
            rows.append(row)
            reasons += [f"{folder.name}: {why}" for why in verdict["why"][:1]]
    lines = pd.DataFrame(rows).to_string(index=False, na_rep="-").split("\n") if rows else []
    return [*lines, *reasons]


def _last_words(output: Path, code: int) -> str:
    lines = output.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
    ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
    return f"{last.removeprefix('groupquake: ').strip()} ({ended})"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
