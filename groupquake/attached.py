"""A run whose load is already there: a Locust process with a page started this runner.

The load takes its orders over its control channel, as ever. What the page shows goes the other way,
to standard output, one JSON object a line: `{"folder": …}` once, then `{"tables": {…}}` at every
change. The progress lines on standard error are shown as they are.
"""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from chaos.controller import Outcome
from chaos.errors import ChaosError
from chaos.members import Members
from groupquake.exits import NotSteadyError
from groupquake.live_view import Board
from groupquake.runner import Runner
from scenarios import Experiment

EVERY_S = 1.0
FINISH_S = 60.0
"""Every member closes, and a LeaveGroup may queue behind a JoinGroup for 5 s."""


def run_attached(runner: Runner, port: int) -> Outcome:
    """Run with the load of the process that started us; `port` is that of its control channel.

    If that process ends first, we get SIGTERM (`loadtest.dies_with_parent`), and all is healed.
    """
    members = Members(port, os.environ.get("GROUPQUAKE_CONTROL_TOKEN", ""), FINISH_S)
    with _showing(runner.folder.resolve()):
        return replace(runner, load=partial(_attached, members)).run()


@contextmanager
def _attached(members: Members, folder: Path, bootstrap: str, _: Experiment) -> Iterator[Members]:
    """Let the load join the cluster for as long as the block lasts. Raises NotSteadyError."""
    folder = folder.resolve()
    try:
        members.begin(str(folder / "experiment.yaml"), bootstrap, str(folder / "history.jsonl"))
    except ChaosError as error:
        raise NotSteadyError(str(error)) from error
    try:
        yield members
    finally:
        with suppress(ChaosError):
            members.finish()


@contextmanager
def _showing(folder: Path) -> Iterator[None]:
    """Inside the block, let the page show what happens."""
    _tell(folder=str(folder))
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(Board(folder), over), name="page")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _show(board: Board, over: threading.Event) -> None:
    shown: dict[str, Any] = {}
    last = False
    while not last:
        last = over.wait(EVERY_S)
        tables = board.tables()
        if tables != shown:
            _tell(tables=tables)
            shown = tables


def _tell(**fields: Any) -> None:
    with suppress(BrokenPipeError):  # nobody looks any more
        print(json.dumps(fields), flush=True)
