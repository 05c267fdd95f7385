"""What `--otel` exports of a load besides Locust's own: its members, their joins, and the faults.

Locust sets OpenTelemetry's SDK up, by its environment variables (`OTEL_…`), and exports the
durations of all that members do (`locust.client.duration`). Every metric and span of ours has
`groupquake.run` and `groupquake.experiment`, if the load belongs to a run.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Observation

import scenarios
from loadtest.history import now_ms
from loadtest.spans import Attributes, FaultSpans, MemberSpans
from loadtest.timing import JOURNAL_EVERY_S

NAME = "groupquake"
JOURNAL = "journal.jsonl"
"""The journal of a run, in its folder beside the history."""

Rows = Callable[[], list[dict[str, Any]]]
"""Returns a row for each member, as the control command `members` does."""


class Telemetry:
    """Exports the loads of this process, one after the other."""

    def __init__(self) -> None:
        meter = metrics.get_meter(NAME)
        self._tracer = trace.get_tracer(NAME)
        self._ended = {
            "join": meter.create_counter(
                "groupquake.member.joins", "{join}", "Clients that got their first assignment"
            ),
            "rebalance": meter.create_counter(
                "groupquake.member.rebalances",
                "{rebalance}",
                "Assignments after the first; a rebalance of a group counts once for each member",
            ),
        }
        self._injected = meter.create_counter(
            "groupquake.faults", "{fault}", "Faults that were injected"
        )
        meter.create_observable_gauge(
            "groupquake.members", [self._members], "{member}", "Members by their clients' state"
        )
        meter.create_observable_gauge(
            "groupquake.fault.injected_at",
            [self._injected_at],
            "ms",
            "When a fault was last injected, in UTC epoch milliseconds",
        )
        self._load: _Load | None = None

    def follow(self, history: Path | None, rows: Rows) -> None:
        """Export a load from now on. `history` is that of a run if it is in the run's folder."""
        run = _run_of(history)
        journal = Path(JOURNAL) if history is None else history.with_name(JOURNAL)
        faults = FaultSpans(self._tracer, self._injected, run, journal)
        members = MemberSpans(self._tracer, self._ended, run, faults.open)
        self._load = _Load(run, rows, faults, members, gevent.spawn(_follow, faults))

    def see(self, line: dict[str, Any]) -> None:
        """Take one line of the history."""
        if self._load is not None:
            self._load.members.see(line)

    def end(self) -> None:
        """End all spans: the members are closed."""
        if self._load is not None:
            self._load.reader.kill()
            self._load.members.close(now_ms())
            self._load.faults.close()
            self._load = None

    def _members(self, _: CallbackOptions) -> Iterator[Observation]:
        if (load := self._load) is not None:
            states = Counter((row["group"], row["kind"], row["state"]) for row in load.rows())
            for (group, kind, state), count in states.items():
                yield Observation(count, {**load.run, "group": group, "kind": kind, "state": state})

    def _injected_at(self, _: CallbackOptions) -> Iterator[Observation]:
        if self._load is not None:
            yield from self._load.faults.injected_at()


@dataclass(frozen=True, slots=True)
class _Load:
    """What is exported of one load."""

    run: Attributes
    rows: Rows
    faults: FaultSpans
    members: MemberSpans
    reader: gevent.Greenlet


def _follow(faults: FaultSpans) -> None:
    while True:
        gevent.sleep(JOURNAL_EVERY_S)
        faults.read()


def _run_of(history: Path | None) -> Attributes:
    """Return the name of the run and of its experiment, if the history is in the folder of one."""
    folder = history.resolve().parent if history else None
    if folder is None or not (folder / JOURNAL).exists():
        return {}
    experiment = scenarios.find(str(folder / "experiment.yaml")).name
    return {"groupquake.run": folder.name, "groupquake.experiment": experiment}
