"""Lives: one process of a client each, with what it sent and was answered, in order of arrival."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any

from kafka_protocol.bodies import generation_in
from reference_coordinator.replay import ObservedRequest
from reference_coordinator.replay.evidence import ONLY_RESTART_TIMERS
from reports.judgement.run.history import ENDS, ClientEvent

CREATED = "created"
CREATED_LATE_MS = 250.0
"""How much earlier than its history says the first request of a process may seem to come."""
LATE_MS = 1_000.0
"""How long after a fault on the wire what that held up may still arrive."""
Span = tuple[float, float]
"""From when until when, in ms."""


@dataclass(slots=True)
class Sent:
    """A request and its error; of heartbeats or commits in a row without an error, all of them.

    `apart` are the two of these that are longest apart.
    """

    seen: ObservedRequest
    error: int | None
    count: int = 1
    last: ObservedRequest | None = None
    idle_ms: float = inf
    """How long its connection had waited for it: one that a broker reads at once may have been
    sent before the last answer, and one on a new connection without having got it."""
    apart: tuple[ObservedRequest, ObservedRequest] | None = None
    apart_ms: float = -inf

    @property
    def api(self) -> str:
        """The API of the request."""
        return self.seen.api

    @property
    def arrived_ms(self) -> float:
        """When it arrived, the first of several."""
        return self.seen.earliest_ms

    @property
    def answered_ms(self) -> float:
        """When it was answered, the last of several; infinity if it never heard of an answer."""
        return self.latest.answered_ms

    @property
    def is_heard(self) -> bool:
        """Whether the client got its answer; else it has no error, whatever the broker said."""
        return self.answered_ms < inf

    @property
    def seen_until_ms(self) -> float:
        """When the broker answered it or, where no answer is known, got it."""
        return self.answered_ms if self.is_heard else self.latest.earliest_ms

    @property
    def member_id(self) -> str:
        """The member id that the request gives."""
        found: str = self.seen.request.get("memberId") or ""
        return found

    @property
    def instance_id(self) -> str | None:
        """The group.instance.id that the request gives (KIP-345)."""
        found: str | None = self.seen.request.get("groupInstanceId")
        return found

    def is_fresh(self, after_ms: float) -> bool:
        """Whether its client had the last answer: its connection was idle, and is not new."""
        return after_ms < self.idle_ms < inf

    @property
    def latest(self) -> ObservedRequest:
        """The last of several."""
        return self.last or self.seen

    def takes(self, seen: ObservedRequest) -> bool:
        """Take one more, if it is of the same membership; return whether it was."""
        if _membership(self.seen) != _membership(seen):
            return False
        between_ms = seen.earliest_ms - self.latest.earliest_ms
        if between_ms > self.apart_ms:
            self.apart, self.apart_ms = (self.latest, seen), between_ms
        self.count, self.last = self.count + 1, seen
        return True


def _membership(seen: ObservedRequest) -> tuple[Any, ...]:
    """Return what the requests of one membership have in common."""
    body = seen.request
    return seen.broker, body.get("memberId"), generation_in(body), body.get("groupInstanceId")


@dataclass(frozen=True, slots=True)
class Life:
    """One process of a client in a group.

    `closing_ms` is when its clean close began, `ended_ms` when it ended at the latest, both
    infinity where nothing says so. In the `excused` spans it could not act: a fault had it frozen
    or a broker down, or a broker stood still. `heartbeat_ms` is its configured interval.
    """

    sent: Sequence[Sent]
    closing_ms: float = inf
    ended_ms: float = inf
    closed_cleanly: bool = False
    excused: Sequence[Span] = ()
    heartbeat_ms: float | None = None

    def is_excused(self, from_ms: float, until_ms: float) -> bool:
        """Whether it could not act for a part of a time."""
        return any(began < until_ms and from_ms < ended for began, ended in self.excused)

    def may_be_late(self, one: Sent) -> bool:
        """Whether it may have sent a request long before that arrived."""
        return self.is_excused(one.arrived_ms - LATE_MS, one.arrived_ms)

    def goes_on(self, until_ms: float) -> Sent | None:
        """Return what it sent first after a time, which shows that it was still up."""
        late = min(self.closing_ms, self.ended_ms)
        return next((one for one in self.sent if until_ms < one.latest.earliest_ms < late), None)

    def timeout_ms(self, at: int) -> float:
        """Return the rebalance timeout that it asked for before its request at a place."""
        known = self._asked(at).get("rebalanceTimeoutMs") or 0
        return float(known) if known > 0 else self.session_ms(at)

    def session_ms(self, at: int) -> float:
        """Return the session timeout that it asked for before its request at a place."""
        return float(self._asked(at).get("sessionTimeoutMs") or inf)

    def _asked(self, at: int) -> Mapping[str, Any]:
        """Return the body of its last JoinGroup before its request at a place."""
        joins = (one for one in reversed(self.sent[: at + 1]) if one.api == "JOIN_GROUP")
        return next((one.seen.request for one in joins), {})

    @property
    def is_static(self) -> bool:
        """Whether it joined under an instance id."""
        return any(one.api == "JOIN_GROUP" and one.instance_id for one in self.sent)


@dataclass(slots=True)
class Client:
    """What one client sent in one group, over all its processes."""

    sent: list[Sent] = field(default_factory=list)
    events: list[ClientEvent] = field(default_factory=list)
    _answered_ms: dict[str, float] = field(default_factory=dict)
    """When the last request of each connection was answered."""
    _going_on: dict[str, Sent] = field(default_factory=dict)
    """By API the last of what was sent again and again without an error."""

    def add(self, seen: ObservedRequest, error: int | None) -> None:
        """Take a request; requests come about in the order of time."""
        idle_ms = seen.earliest_ms - self._answered_ms.get(seen.connection, -inf)
        self._answered_ms[seen.connection] = seen.answered_ms
        if seen.api not in ONLY_RESTART_TIMERS or error or seen.answered_ms == inf:
            self._going_on.clear()
            self.sent.append(Sent(seen, error, idle_ms=idle_ms))
            return
        known = self._going_on.get(seen.api)
        if known is None or not known.takes(seen):
            self._going_on[seen.api] = one = Sent(seen, error, idle_ms=idle_ms)
            self.sent.append(one)

    def lives(self, excused: Sequence[Span], heartbeat_ms: float | None) -> Iterator[Life]:
        """Cut what it sent into processes: where its history says so, or else where it looks so."""
        sent = sorted(self.sent, key=lambda one: one.arrived_ms)
        created = [one.at_ms - CREATED_LATE_MS for one in self.events if one.event == CREATED]
        cuts = created[1:] if created else _new_connections(sent)
        for from_ms, until_ms in pairwise([-inf, *cuts, inf]):
            ends = {
                one.event: one.at_ms
                for one in self.events
                if one.event in ENDS and from_ms + CREATED_LATE_MS <= one.at_ms < until_ms
            }
            yield Life(
                [one for one in sent if from_ms <= one.arrived_ms < until_ms],
                ends.get("closing", inf),
                min(ends.values(), default=inf),
                "closed" in ends and "killed" not in ends and "fenced" not in ends,
                excused,
                heartbeat_ms,
            )


def _new_connections(sent: Iterable[Sent]) -> Iterator[float]:
    """Yield when a client joined without a member id on a new connection: maybe a new process."""
    known: set[str] = set()
    for one in sent:
        connection = one.seen.connection
        if known and connection not in known and one.api == "JOIN_GROUP" and not one.member_id:
            yield one.arrived_ms
        known.add(connection)
