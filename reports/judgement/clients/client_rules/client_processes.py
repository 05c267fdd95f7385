"""The processes of a client, each with what it sent and was answered, in order of arrival."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any, Literal, NamedTuple

from kafka_protocol.bodies import generation_in
from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reference_coordinator.replay.evidence import ONLY_RESTART_TIMERS
from reports.judgement.run.history import ENDS, ClientEvent
from reports.timing import SEEN_MS, WIRE_LATE_MS

CREATED = "created"
OUT = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID)
"""The answers that say to a client that it is no member any more."""
IN_GENERATION = ("HEARTBEAT", "SYNC_GROUP", "OFFSET_COMMIT")
"""The requests of a member that has joined."""
MANY = 6
"""So many commits in a row show, however slow the machine was, that a client did go on."""
STALLED = 0.1
"""Of which part of a time on standstills of brokers excuse what a client does not do in it."""
Span = tuple[float, float]  # from when until when, in ms


@dataclass(slots=True)
class Sent:
    """A request and its error; of heartbeats or commits in a row without an error, all of them.

    `seen` is the first of these, `latest` the last, and `apart` are two that are longest apart.
    What was not heard has no error, whatever the broker said.
    """

    seen: ObservedRequest
    error: int | None
    idle_ms: float
    """How long its connection had waited for it: one that a broker reads at once may have been
    sent before the last answer, and one on a new connection without having got it."""
    count: int = 1
    api: str = field(init=False)
    arrived_ms: float = field(init=False)
    member_id: str = field(init=False)
    instance_id: str | None = field(init=False)
    latest: ObservedRequest = field(init=False)
    apart: tuple[ObservedRequest, ObservedRequest] = field(init=False)

    def __post_init__(self) -> None:
        self.api, self.arrived_ms = self.seen.api, self.seen.earliest_ms
        self.member_id = self.seen.request.get("memberId") or ""
        self.instance_id = self.seen.request.get("groupInstanceId")
        self.latest, self.apart = self.seen, (self.seen, self.seen)

    @property
    def answered_ms(self) -> float:
        """When it was answered, the last of several; infinity if it never heard of an answer."""
        return self.latest.answered_ms

    @property
    def is_heard(self) -> bool:
        """Whether the client got its answer."""
        return self.answered_ms < inf

    @property
    def generation(self) -> int:
        """The generation that its answer has, a JoinGroup's; -1 if that has none."""
        return int(self.seen.response_fields.get("generationId", -1)) if self.is_heard else -1

    def at_least(self, from_ms: float, until_ms: float) -> int:
        """Return how many of these arrived in a time, at least: the longest gap is known."""
        first_ms, last_ms = max(self.arrived_ms, from_ms), min(self.latest.earliest_ms, until_ms)
        if from_ms < self.arrived_ms and self.latest.earliest_ms <= until_ms:
            return self.count
        before, after = self.apart
        gap_ms = after.earliest_ms - before.earliest_ms
        return int((last_ms - first_ms) // gap_ms) if first_ms < last_ms and gap_ms else 0

    def follows(self, other: "Sent") -> bool:
        """Whether it was sent on the same connection later."""
        mine, theirs = self.seen, other.latest
        return mine.connection == theirs.connection and self.arrived_ms >= other.arrived_ms

    def takes(self, seen: ObservedRequest) -> bool:
        """Take one more, if it is of the same membership; return whether it was."""
        if _membership(self.seen) != _membership(seen):
            return False
        before, after = self.apart
        if seen.earliest_ms - self.latest.earliest_ms > after.earliest_ms - before.earliest_ms:
            self.apart = self.latest, seen
        self.count, self.latest = self.count + 1, seen
        return True


def last_ms(seen: ObservedRequest) -> float:
    """Return when a request was answered or, where no answer was heard, arrived."""
    return seen.answered_ms if seen.answered_ms < inf else seen.earliest_ms


def _membership(seen: ObservedRequest) -> tuple[Any, ...]:
    """Return what the requests of one membership have in common."""
    body = seen.request
    return seen.broker, body.get("memberId"), generation_in(body), body.get("groupInstanceId")


class Known(NamedTuple):
    """What is known of a client beside what it sends.

    In the `excused` spans it could not act: a fault had it frozen or a broker down. In the `stalls`
    a broker stood still. In the `acted` ones faults acted on it. `given_id` says that one of these
    gave it an instance id. `heartbeat_ms` is its configured interval.
    """

    excused: Sequence[Span] = ()
    stalls: Sequence[Span] = ()
    acted: Sequence[Span] = ()
    given_id: bool = False
    heartbeat_ms: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ClientProcess:
    """One process of a client (`name`) in a group, whose processes are in `group`.

    `closes_ms` is when its clean close begins, `ends_ms` when it begins to end anyhow, both
    infinity where nothing says so.
    """

    name: str
    sent: Sequence[Sent]
    closes_ms: float
    ends_ms: float
    known: Known
    group: Sequence["ClientProcess"]

    @property
    def others(self) -> Iterator["ClientProcess"]:
        """The processes of the other clients of its group."""
        return (one for one in self.group if one.name != self.name)

    def is_excused(self, from_ms: float, until_ms: float) -> bool:
        """Whether it could not act for a part of a time, if only by a fault a short one."""
        stalls = [one for one in self.known.stalls if one[0] < until_ms and from_ms < one[1]]
        stood_ms = sum(min(ended, until_ms) - max(began, from_ms) for began, ended in stalls)
        is_long = bool(stalls) and stood_ms >= STALLED * (until_ms - from_ms)
        return is_long or _meets(self.known.excused, from_ms, until_ms)

    def is_acted_on(self, from_ms: float, until_ms: float) -> bool:
        """Whether it could not act, or a fault acted on it, for a part of a time."""
        acted = _meets(self.known.acted, from_ms, until_ms)
        return acted or self.is_excused(from_ms, until_ms)

    def knew(self, answer: Sent, later: Sent, for_ms: float) -> bool:
        """Whether it had known an answer for a time as it sent something.

        Its connection was idle then, and is not new; and no fault may have held that up.
        """
        sent_ms = later.arrived_ms
        was_read = sent_ms > answer.answered_ms + for_ms and for_ms < later.idle_ms < inf
        return was_read and not self.is_excused(sent_ms - WIRE_LATE_MS, sent_ms)

    def goes_on(self, until_ms: float) -> Sent | None:
        """Return what it sent first after a time, which shows that it was still up."""
        later = (one for one in self.sent if until_ms < one.latest.earliest_ms < self.ends_ms)
        return next(later, None)

    def committed(self, from_ms: float, until_ms: float) -> int:
        """Return how many OffsetCommits it sent in a time as a member, at least."""
        return sum(
            one.at_least(from_ms, until_ms)
            for one in self.sent
            if one.api == "OFFSET_COMMIT" and one.member_id
        )

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
    def joins(self) -> Iterator[Sent]:
        """Its JoinGroups."""
        return (one for one in self.sent if one.api == "JOIN_GROUP")

    def next_join(self, after_ms: float) -> Sent | None:
        """Return the first JoinGroup that arrived after a time."""
        return next((one for one in self.joins if one.arrived_ms > after_ms), None)

    @property
    def is_static(self) -> bool:
        """Whether it joined under an instance id."""
        return any(one.instance_id for one in self.joins)

    def refused(self, *errors: int) -> Iterator[tuple[int, Sent]]:
        """Yield the requests of a member that were answered one of these, each with its place."""
        for at, one in enumerate(self.sent):
            if one.error in errors and one.api != "LEAVE_GROUP":
                yield at, one


def _meets(spans: Iterable[Span], from_ms: float, until_ms: float) -> bool:
    return any(began < until_ms and from_ms < ended for began, ended in spans)


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
        goes_on = seen.api in ONLY_RESTART_TIMERS and not error and seen.answered_ms < inf
        known = self._going_on.get(seen.api)
        if goes_on and known is not None and known.takes(seen):
            return
        self.sent.append(Sent(seen, error, idle_ms))
        if goes_on:
            self._going_on[seen.api] = self.sent[-1]
        else:
            self._going_on.clear()

    def processes(
        self, name: str, known: Known, group: Sequence[ClientProcess]
    ) -> Iterator[ClientProcess]:
        """Cut what it sent into processes: where its history says so, or else where it looks so."""
        sent = sorted(self.sent, key=lambda one: one.arrived_ms)
        created = [one.at_ms - SEEN_MS for one in self.events if one.event == CREATED]
        cuts = created[1:] if created else _new_connections(sent)
        for from_ms, until_ms in pairwise([-inf, *cuts, inf]):
            ends = {
                one.event: one.at_ms
                for one in self.events
                if one.event in ENDS and from_ms + SEEN_MS <= one.at_ms < until_ms
            }
            is_clean = "closed" in ends and ends.keys().isdisjoint(("killed", "fenced"))
            yield ClientProcess(
                name,
                [one for one in sent if from_ms <= one.arrived_ms < until_ms],
                ends.get("closing", inf) if is_clean else inf,
                min(ends.values(), default=inf),
                known,
                group,
            )


def _new_connections(sent: Iterable[Sent]) -> Iterator[float]:
    """Yield when a client joined without a member id on a new connection: maybe a new process."""
    known: set[str] = set()
    for one in sent:
        connection = one.seen.connection
        if known and connection not in known and one.api == "JOIN_GROUP" and not one.member_id:
            yield one.arrived_ms
        known.add(connection)


class Broken(NamedTuple):
    """A rule that a client breaks: when, how, and the requests that show it.

    `by_order` is set where their order alone shows it, however slow the machine was: a client
    sends no second JoinGroup, say, before it has the answer to the first. `judged` is the time in
    which it did not do what it owes, where that is not the time of the requests.
    """

    at_ms: float
    what: str
    shown: Sequence[ObservedRequest]
    by_order: bool = False
    judged: Span | None = None


Breaks = Callable[[ClientProcess], Iterator[Broken]]
About = Literal["protocol", "application"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What clients owe: what it `demands`, in words, its source, and what finds where it is broken.

    `mend` says to the owner of a client that breaks it what to do, and `about` whether the client
    library or what the application does with its records broke it. What rests `on_time` is about
    what a client does in time, or once it can be expected to know an answer. `breaks` finds nothing
    where another module judges.
    """

    name: str
    demands: str
    source: str
    mend: str
    on_time: bool = False
    about: About = "protocol"
    breaks: Breaks = lambda _: iter(())


def rule(source: str, *, mend: str, on_time: bool = False) -> Callable[[Breaks], Rule]:
    """Declare a rule by what finds where it is broken; its docstring says what the rule demands."""
    return lambda breaks: Rule(
        breaks.__name__.replace("_", "-"),
        " ".join((breaks.__doc__ or "").split()),
        source,
        mend,
        on_time,
        breaks=breaks,
    )
