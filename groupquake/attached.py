"""A run whose load process exists already: Locust with a page, which started this runner.

The runner commands the members over the control channel, as in every run. For the page it prints
JSON objects to standard output, one a line: `{"folder": …}` once, then `{"tables": {…}}` at every
change. The page also shows the progress lines on standard error. Commands of the page come on
standard input (`groupquake.live.by_hand`); `{"answer": {…}}` answers one.

The tables follow the run folder. Rebalances come from coordinator lines: the templates `preparing`,
`stabilized` (without a member count before 2.8) and `empty`. The live view judges nothing and skips
lines that match none of them; the analysis judges all lines.
"""

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from chaos.controller import Outcome
from chaos.errors import ChaosError
from chaos.journal import Entry
from chaos.members import Members
from chaos.tail import Tail
from groupquake.exits import NotSteadyError
from groupquake.live.by_hand import ByHand
from groupquake.load_process import end_members
from groupquake.runner import Runner
from groupquake.timing import PAGE_S
from kafka_protocol.coordinator_lines import finder_of
from kafka_protocol.log_line import written_ms
from kafka_protocol.request_log import COMPLETED
from loadtest.configs import closing_s
from loadtest.history import clock
from loadtest.members.settings import TOKEN_VARIABLE
from scenarios import Experiment

Row = dict[str, str]

SHOWN = 200
"""The most rows of a table: the latest ones."""

_REBALANCES = finder_of("preparing", "stabilized", "empty")
_CLIENT_REASON = re.compile(r"; client reason: not provided(?=\)?$)")


class Rebalances:
    """Collects rebalances from the lines of group.log."""

    def __init__(self) -> None:
        """Start without rebalances."""
        self._all: list[tuple[int, Row]] = []
        self._in_progress: dict[str, tuple[int, Row]] = {}

    def take(self, line: str) -> None:
        """Process one line."""
        if COMPLETED in line:
            return
        try:
            found, at_ms = _REBALANCES.find(line), written_ms(line)
        except ValueError:
            return
        match found:
            case "preparing", {"group": group, "generation": old, "reason": reason}:
                row = {
                    "at": clock(at_ms),
                    "group": group,
                    "generation": f"{old} → …",
                    "reason": _CLIENT_REASON.sub("", reason),
                    "members": "",
                    "duration": "",
                }
                self._in_progress[group] = (at_ms, row)
                self._all.append((at_ms, row))
            case name, {"group": group, "generation": new, **more} if group in self._in_progress:
                began_ms, row = self._in_progress.pop(group)
                row["generation"] = row["generation"].replace("…", new)
                row["members"] = "0" if name == "empty" else more.get("members", "")
                row["duration"] = f"{(at_ms - began_ms) / 1000:.3f} s"

    def rows(self) -> list[Row]:
        """Return the rows, the latest first."""
        latest = sorted(self._all, key=itemgetter(0))[-SHOWN:]
        return [row for _, row in reversed(latest)]


def fault_rows(entries: list[Entry]) -> list[Row]:
    """Return the rows of the faults in a journal, the latest first."""
    rows: dict[str, Row] = {}
    for entry in entries:
        at = clock(entry["at_ms"])
        match entry:
            case {"event": "intent", "fault_id": id_, "fault": fault, "target": target}:
                rows[id_] = {"id": id_, "fault": fault, "target": target}
                rows[id_] |= dict.fromkeys(("injected", "healed", "verified", "witness"), "")
            case {"event": "injected", "fault_id": id_} if id_ in rows:
                rows[id_]["injected"] = at
            case {"event": "healed", "fault_id": id_, "healed": healed} if id_ in rows:
                rows[id_]["healed"] = at if healed else "NOT HEALED"
            case {"event": "verified", "fault_id": id_, "verified": verified} if id_ in rows:
                rows[id_]["verified"] = "yes" if verified else "NO"
                rows[id_]["witness"] = str(entry.get("witness", ""))
    return list(rows.values())[: -SHOWN - 1 : -1]


class LiveView:
    """Follows the logs and the journal of a run folder; files may appear later."""

    def __init__(self, folder: Path) -> None:
        """Start at the first lines."""
        self._folder = folder
        self._tails: dict[Path, Tail] = {}
        self._rebalances = Rebalances()
        self._journal: list[Entry] = []

    def tables(self) -> dict[str, Any]:
        """Read the appended lines, and return both tables."""
        for log in self._folder.glob("brokers/*/group.log"):
            for line in self._appended(log):
                self._rebalances.take(line)
        self._journal += map(json.loads, self._appended(self._folder / "journal.jsonl"))
        return {"rebalances": self._rebalances.rows(), "faults": fault_rows(self._journal)}

    def _appended(self, path: Path) -> Iterator[str]:
        return self._tails.setdefault(path, Tail(path)).appended()


def run_attached(runner: Runner, port: int, allowed: str | None) -> Outcome:
    """Run with the load of the parent process; `port` is that of its control channel.

    `allowed` is the id of the external cluster whose brokers may be broken, too, if one is.
    If the parent ends first, this process gets SIGTERM (`loadtest.dies_with_parent`), and heals.
    """
    members = Members(port, os.environ.get(TOKEN_VARIABLE, ""))
    by_hand = ByHand(runner, allowed)
    with (
        _showing(runner.folder.resolve()),
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


@contextmanager
def _showing(folder: Path) -> Iterator[None]:
    """Inside the block, print the tables for the page."""
    _print(folder=str(folder))
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(LiveView(folder), over), name="page")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _show(live_view: LiveView, over: threading.Event) -> None:
    shown: dict[str, Any] = {}
    last = False
    while not last:
        last = over.wait(PAGE_S)
        tables = live_view.tables()
        if tables != shown:
            _print(tables=tables)
            shown = tables


def _print(**fields: Any) -> None:
    with suppress(BrokenPipeError):  # the page has ended
        print(f"{json.dumps(fields)}\n", end="", flush=True)  # whole: several threads print
