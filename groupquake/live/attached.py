"""A run whose load process exists already: Locust with a page, which started this runner.

The runner commands the members over the control channel, as in every run. For the page it prints
JSON objects to standard output, one a line: `{"folder": …}` once, then `{"patch": …}` at every
change of the state (`groupquake.live.state`, `loadtest.page.patches`). The page also shows the
progress lines on standard error. Commands of the page come on standard input
(`groupquake.live.by_hand`); `{"answer": {…}}` answers one.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from chaos.controller import Outcome
from chaos.errors import ChaosError
from chaos.members import Members
from groupquake.background import Background
from groupquake.exits import NotSteadyError
from groupquake.live.by_hand import ByHand
from groupquake.load_process import end_members
from groupquake.runner import Runner
from groupquake.timing import PAGE_S, PAGE_SHARE
from loadtest.configs import closing_s
from loadtest.members.settings import TOKEN_VARIABLE
from loadtest.page.patches import difference
from scenarios import Experiment
from scenarios.durations import now_ms


def run_attached(runner: Runner, port: int, allowed: str | None) -> Outcome:
    """Run with the load of the parent process; `port` is that of its control channel.

    `allowed` is the id of the external cluster whose brokers may be broken, too, if one is.
    If the parent ends first, this process gets SIGTERM (`loadtest.dies_with_parent`), and heals.
    """
    members = Members(port, os.environ.get(TOKEN_VARIABLE, ""))
    by_hand, folder = ByHand(runner, allowed), runner.folder.resolve()
    _print(folder=str(folder))
    with (
        _Showing(folder, runner.experiment),
        by_hand.answering(lambda answer: _print(answer=answer)),
    ):
        load = partial(_attached, members)
        return replace(runner, load=load, commanded=by_hand.command).run()


@contextmanager
def _attached(
    members: Members, folder: Path, bootstrap: str, experiment: Experiment, _: Mapping[str, str]
) -> Iterator[Members]:
    """Run the load on the cluster inside the block. Raises NotSteadyError."""
    folder = folder.resolve()
    try:
        members.begin(str(folder / "experiment.yaml"), bootstrap, str(folder / "history.jsonl"))
    except ChaosError as error:
        raise NotSteadyError(str(error)) from error
    try:
        yield members
    finally:
        with suppress(ChaosError):
            members.finish(closing_s(len(experiment.members())))
        end_members(folder)  # not the load itself, which may have further runs


@dataclass
class _Showing(Background):
    """Prints patches of the state for the page; at most a share of the time is spent on it."""

    thread_name = "page"
    folder: Path
    experiment: Experiment

    def _run(self) -> None:
        from groupquake.live.facts import Facts  # noqa: PLC0415 (slow; the cluster starts meanwhile)
        from groupquake.live.state import State  # noqa: PLC0415

        facts = Facts(self.folder, self.experiment.group_names)
        state = State(self.folder, self.experiment)
        shown: dict[str, Any] = {}
        last, pause_s = False, 0.0
        while not last:
            last = self._over.wait(pause_s)
            began_s = time.thread_time()
            facts.read()
            new = state.at(facts, now_ms())
            if patch := difference(shown, new):
                _print(patch=patch)
            shown = new
            pause_s = max(PAGE_S, (time.thread_time() - began_s) / PAGE_SHARE)


def _print(**fields: Any) -> None:
    with suppress(BrokenPipeError):  # the page has ended
        # the whole line at once: several threads may print
        print(f"{json.dumps(fields, separators=(',', ':'))}\n", end="", flush=True)
