"""A controller of a small experiment, and what it left behind."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chaos.controller import Controller, Outcome
from chaos.journal import Journal, read
from chaos.members import Members
from chaos.plan import make_plan
from scenarios import Experiment
from tests.chaos.fake_cluster import FakeCluster
from tests.chaos.fakes import TOKEN, FakeLoad, until

GOOD = Outcome(None, None, ())


class Run:
    """A controller of a small experiment, and what it left behind."""

    def __init__(self, load: FakeLoad, cluster: FakeCluster, path: Path) -> None:
        self.load = load
        self.cluster = cluster
        self.path = path
        self.history = path.with_name("history.jsonl")
        self.progress: list[str] = []
        self.said_to_end: list[int] = []
        """How many entries the journal had each time that the plan was said to end soon."""

    def controller_of(self, experiment: Experiment) -> tuple[Controller, Journal]:
        journal = Journal(self.path)
        self.controller = Controller(
            make_plan(experiment, 1),
            experiment,
            self.cluster,
            Members(self.load.port, TOKEN),
            self.cluster,
            journal,
            progress=self.progress.append,
            history=self.history,
            ends_soon=lambda: self.said_to_end.append(len(read(self.path))),
        )
        return self.controller, journal

    def tell(self, **line: Any) -> None:
        """Append a line to the history of the load."""
        with self.history.open("a") as history:
            history.write(json.dumps(line, separators=(",", ":")) + "\n")

    def of(self, experiment: Experiment) -> Outcome:
        controller, journal = self.controller_of(experiment)
        with journal, controller.watching():
            return controller.run()

    def meanwhile(
        self, experiment: Experiment, when: Callable[[], Any], do: Callable[[], Any]
    ) -> Outcome:
        """Run, and do something as soon as a condition holds."""

        def wait() -> None:
            until(when)
            do()

        thread = threading.Thread(target=wait)
        thread.start()
        try:
            return self.of(experiment)
        finally:
            thread.join()

    def aborted(self, experiment: Experiment, when: Callable[[], Any]) -> Outcome:
        """Run, and abort as soon as a condition holds."""
        return self.meanwhile(experiment, when, lambda: self.controller.abort("SIGTERM"))

    def entries(self, event: str) -> list[dict[str, Any]]:
        written = read(self.path) if self.path.exists() else ()
        return [dict(entry) for entry in written if entry["event"] == event]

    def events(self, fault_id: str) -> list[str]:
        return [e["event"] for e in read(self.path) if e.get("fault_id") == fault_id]
