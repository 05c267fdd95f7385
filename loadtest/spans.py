"""Spans of members, from the history of a load, and of faults, from the journal of its run.

A `join` lasts from the making of a client to its first assignment, a `rebalance` from when it gave
partitions up, or lost them, to its next assignment. A member of a cooperative assignor that gives
nothing up sees the end of a rebalance alone: its span has no length. A fault that is healed lasts
until then, any other until it is carried out. Attributes are those of OpenTelemetry's conventions
for messaging, where these have one. Annotations of Grafana go by `groupquake.fault.injected_at`,
whose value is the time: exact, however seldom metrics are exported.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opentelemetry.metrics import Counter, Observation
from opentelemetry.trace import Span, Status, StatusCode, Tracer

Attributes = dict[str, str | int | bool | Sequence[str]]

GIVES_UP = ("revoked", "lost")
ENDS = ("closed", "fenced", "killed")


@dataclass(slots=True, eq=False)
class MemberSpans:
    """Follows the events of the history (`loadtest/history.py`).

    `ended` counts by the names of spans, `run` is what all have, and `open_faults` names the faults
    that are open now.
    """

    _tracer: Tracer
    _ended: Mapping[str, Counter]
    _run: Attributes
    _open_faults: Callable[[], Sequence[str]]
    _open: dict[str, tuple[str, Span]] = field(default_factory=dict)
    _closing: set[str] = field(default_factory=set)

    def see(self, fields: dict[str, Any]) -> None:
        """Take one line of the history, in its order."""
        event, at_ms, member = fields["event"], fields["at_ms"], fields.get("member")
        if member is None:
            return
        if event == "created":
            self._closing.discard(member)
            self._begin("join", at_ms, fields)
        elif event == "closing":
            self._closing.add(member)
        elif event in GIVES_UP and member not in self._closing and member not in self._open:
            self._begin("rebalance", at_ms, fields)
        elif event == "assigned":
            self._assigned(at_ms, fields)
        elif event in ENDS:
            self._end(member, at_ms, event)

    def close(self, at_ms: float) -> None:
        """End the spans of members that still wait for an assignment."""
        for member in tuple(self._open):
            self._end(member, at_ms, "run ended")

    def _begin(self, name: str, at_ms: float, fields: dict[str, Any]) -> None:
        if fields.get("kind") not in ("static", "dynamic"):
            return  # a producer
        about: Attributes = {
            "messaging.system": "kafka",
            "messaging.client.id": fields["member"],
            "messaging.consumer.group.name": fields["group"],
            "groupquake.member.kind": fields["kind"],
            "groupquake.faults.open": tuple(self._open_faults()),
        }
        if instance := fields.get("instance_id"):
            about["messaging.kafka.group.instance.id"] = instance
        span = self._tracer.start_span(
            name, attributes={**self._run, **about}, start_time=nanoseconds(at_ms)
        )
        self._open[fields["member"]] = (name, span)

    def _assigned(self, at_ms: float, fields: dict[str, Any]) -> None:
        member = fields["member"]
        if member not in self._open:
            self._begin("rebalance", at_ms, fields)
        if opened := self._open.pop(member, None):
            name, span = opened
            span.set_attribute("groupquake.partitions.assigned", len(fields["partitions"]))
            span.end(nanoseconds(at_ms))
            labels = {"group": fields["group"], "kind": fields["kind"]}
            self._ended[name].add(1, {**self._run, **labels})

    def _end(self, member: str, at_ms: float, why: str) -> None:
        if opened := self._open.pop(member, None):
            _, span = opened
            span.set_status(Status(StatusCode.ERROR, f"no assignment: {why}"))
            span.end(nanoseconds(at_ms))


@dataclass(slots=True)
class _Fault:
    """A fault whose span has not ended, with what counts it."""

    span: Span
    labels: dict[str, str]
    ends_ms: float
    is_open: bool = False
    """Whether it is injected, and neither healed nor verified yet."""


@dataclass(slots=True, eq=False)
class FaultSpans:
    """Reads what was appended to a journal (`chaos/journal.py`) since the last `read`.

    `injected` counts faults, and `run` is what all spans have.
    """

    _tracer: Tracer
    _injected: Counter
    _run: Attributes
    _journal: Path
    _read_to: int = 0
    _faults: dict[str, _Fault] = field(default_factory=dict)
    _injected_ms: dict[tuple[str, str], float] = field(default_factory=dict)

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


def nanoseconds(at_ms: float) -> int:
    """Return a time as OpenTelemetry has it."""
    return round(at_ms * 1_000_000)
