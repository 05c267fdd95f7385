"""A span for each fault, from the journal of the run as it grows.

A fault that is healed lasts until then, any other until it is carried out. Annotations of Grafana
go by `groupquake.fault.injected_at`, whose value is the time: exact, however seldom metrics are
exported.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.metrics import Counter, Observation
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from loadtest.member_spans import Attributes, nanoseconds


@dataclass(slots=True)
class _Fault:
    """A fault whose span has not ended, with what counts it."""

    span: Span
    labels: dict[str, str]
    ends_ms: float
    is_open: bool = False
    """Whether it is injected, and neither healed nor verified yet."""


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
        self._faults: dict[str, _Fault] = {}
        self._injected_ms: dict[tuple[str, str], float] = {}

    def open(self) -> tuple[str, ...]:
        """Return the names of the faults that are injected and not healed."""
        self.read()
        return tuple(sorted({one.labels["fault"] for one in self._faults.values() if one.is_open}))

    def injected_at(self) -> Iterator[Observation]:
        """Yield when each fault was last injected at each target, in UTC epoch milliseconds."""
        self.read()
        for (fault, target), at_ms in self._injected_ms.items():
            yield Observation(at_ms, {**self._run, "fault": fault, "target": target})

    def read(self) -> None:
        """Take the lines that have come."""
        for entry in self._new():
            fault_id = str(entry.get("fault_id"))
            if entry["event"] == "intent":
                self._faults[fault_id] = self._begun(entry)
            elif (fault := self._faults.get(fault_id)) is not None:
                self._see(fault_id, fault, entry)

    def close(self) -> None:
        """End every span: nothing more comes."""
        self.read()
        for fault_id in tuple(self._faults):
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

    def _begun(self, entry: dict[str, Any]) -> _Fault:
        labels = {"fault": entry["fault"], "target": str(entry["target"])}
        about: Attributes = {f"groupquake.{name}": value for name, value in labels.items()}
        if entry.get("group"):
            about["messaging.consumer.group.name"] = entry["group"]
        span = self._tracer.start_span(
            entry["fault"],
            attributes={**self._run, **about},
            start_time=nanoseconds(entry["at_ms"]),
        )
        return _Fault(span, labels, entry["at_ms"])

    def _see(self, fault_id: str, fault: _Fault, entry: dict[str, Any]) -> None:
        at_ms = entry["at_ms"]
        match entry["event"]:
            case "injected":
                fault.span.add_event("injected", timestamp=nanoseconds(at_ms))
                fault.ends_ms, fault.is_open = at_ms, True
                self._injected_ms[fault.labels["fault"], fault.labels["target"]] = at_ms
                self._injected.add(1, {**self._run, **fault.labels})
            case "healed":
                fault.span.add_event("healed", {"how": entry["how"]}, nanoseconds(at_ms))
                fault.ends_ms = at_ms
                if entry["healed"]:
                    fault.is_open = False
            case "verified":
                fault.span.set_attribute("groupquake.fault.verified", entry["verified"])
                fault.span.set_attribute("groupquake.fault.witness", entry["witness"])
                if not entry["verified"]:
                    fault.span.set_status(Status(StatusCode.ERROR, "not verified"))
                self._end(fault_id)
            case "failed":
                fault.span.set_status(Status(StatusCode.ERROR, entry["error"]))
                fault.ends_ms = at_ms
                self._end(fault_id)

    def _end(self, fault_id: str) -> None:
        fault = self._faults.pop(fault_id)
        fault.span.end(nanoseconds(fault.ends_ms))
