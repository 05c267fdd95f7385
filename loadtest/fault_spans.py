"""A span for each fault, from the journal of the run as it grows.

A fault that is healed lasts until then, any other until it is carried out. Annotations of Grafana
go by `groupquake.fault.injected_at`, whose value is the time: exact, however seldom metrics are
exported.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opentelemetry.metrics import Counter, Observation
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from loadtest.member_spans import Attributes, nanoseconds


class FaultSpans:
    """Reads what was appended to a journal (`chaos/journal.py`) since the last `read`.

    `injected` counts faults, and `run` is what all spans have.
    """

    def __init__(self, tracer: Tracer, injected: Counter, run: Attributes, journal: Path) -> None:
        self._tracer = tracer
        self._injected = injected
        self._run = run
        self._journal = journal
        self._read_to = 0
        self._labels: dict[str, dict[str, str]] = {}
        self._spans: dict[str, Span] = {}
        self._ends_ms: dict[str, float] = {}
        self._broken: dict[str, str] = {}
        self._injected_ms: dict[tuple[str, str], float] = {}

    def open(self) -> tuple[str, ...]:
        """Return the names of the faults that are injected and not healed."""
        self.read()
        return tuple(sorted(set(self._broken.values())))

    def read(self) -> None:
        """Take the lines that have come."""
        for entry in self._new():
            if (fault_id := entry.get("fault_id")) is not None:
                self._see(fault_id, entry)

    def close(self) -> None:
        """End every span: nothing more comes."""
        self.read()
        for fault_id in tuple(self._spans):
            self._end(fault_id)

    def _new(self) -> Iterator[dict[str, Any]]:
        try:
            with self._journal.open("rb") as file:
                file.seek(self._read_to)
                whole = file.read().rpartition(b"\n")[0]
        except OSError:
            return  # a load without a run has none
        if whole:
            self._read_to += len(whole) + 1
            yield from map(json.loads, whole.split(b"\n"))

    def _see(self, fault_id: str, entry: dict[str, Any]) -> None:
        event, at_ms = entry["event"], entry["at_ms"]
        if event == "intent":
            self._begin(fault_id, entry)
        elif (span := self._spans.get(fault_id)) is None:
            return
        elif event == "injected":
            labels = self._labels[fault_id]
            span.add_event(event, timestamp=nanoseconds(at_ms))
            self._ends_ms[fault_id] = at_ms
            self._broken[fault_id] = labels["fault"]
            self._injected_ms[labels["fault"], labels["target"]] = at_ms
            self._injected.add(1, {**self._run, **labels})
        elif event == "healed":
            span.add_event(event, {"how": entry["how"]}, nanoseconds(at_ms))
            self._ends_ms[fault_id] = at_ms
            if entry["healed"]:
                self._broken.pop(fault_id, None)
        elif event == "verified":
            span.set_attribute("groupquake.fault.verified", entry["verified"])
            span.set_attribute("groupquake.fault.witness", entry["witness"])
            if not entry["verified"]:
                span.set_status(Status(StatusCode.ERROR, "not verified"))
            self._broken.pop(fault_id, None)
            self._end(fault_id)
        elif event == "failed":
            span.set_status(Status(StatusCode.ERROR, entry["error"]))
            self._ends_ms[fault_id] = at_ms
            self._end(fault_id)

    def _begin(self, fault_id: str, entry: dict[str, Any]) -> None:
        labels = {"fault": entry["fault"], "target": str(entry["target"])}
        self._labels[fault_id] = labels
        self._ends_ms[fault_id] = entry["at_ms"]
        about: Attributes = {
            "groupquake.fault": entry["fault"],
            "groupquake.target": str(entry["target"]),
        }
        if entry.get("group"):
            about["messaging.consumer.group.name"] = entry["group"]
        self._spans[fault_id] = self._tracer.start_span(
            entry["fault"],
            attributes={**self._run, **about},
            start_time=nanoseconds(entry["at_ms"]),
        )

    def _end(self, fault_id: str) -> None:
        self._spans.pop(fault_id).end(nanoseconds(self._ends_ms[fault_id]))

    def injected_at(self) -> Iterator[Observation]:
        """Yield when each fault was last injected at each target, in UTC epoch milliseconds."""
        self.read()
        for (fault, target), at_ms in self._injected_ms.items():
            yield Observation(at_ms, {**self._run, "fault": fault, "target": target})
