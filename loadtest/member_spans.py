"""A span for each join and each rebalance, as the members' clients saw them.

A `join` lasts from the making of a client to its first assignment, a `rebalance` from when it gave
partitions up, or lost them, to its next assignment. A member of a cooperative assignor that gives
nothing up sees the end of a rebalance alone: its span has no length. Attributes are those of
OpenTelemetry's conventions for messaging, where these have one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opentelemetry.metrics import Counter
from opentelemetry.trace import Span, Status, StatusCode, Tracer

Attributes = dict[str, str | int | bool | Sequence[str]]

GIVES_UP = ("revoked", "lost")
ENDS = ("closed", "fenced", "killed")


class MemberSpans:
    """Follows the events of the history (`loadtest/history.py`).

    `ended` counts by the names of spans, `run` is what all have, and `open_faults` names the faults
    that are open now.
    """

    def __init__(
        self,
        tracer: Tracer,
        ended: Mapping[str, Counter],
        run: Attributes,
        open_faults: Callable[[], Sequence[str]],
    ) -> None:
        self._tracer = tracer
        self._ended = ended
        self._run = run
        self._open_faults = open_faults
        self._open: dict[str, tuple[str, Span]] = {}
        self._closing: set[str] = set()

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


def nanoseconds(at_ms: float) -> int:
    """Return a time as OpenTelemetry has it."""
    return round(at_ms * 1_000_000)
