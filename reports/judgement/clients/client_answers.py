"""Answers of brokers that a client may tell of, and its events that tell of one, or of none."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import inf
from typing import Any, NamedTuple

from kafka_protocol.consumer_protocol import Assignment
from kafka_protocol.error_bodies import with_error
from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import Breach, breach
from reports.judgement.clients.assignments import listed, named, read
from reports.judgement.rows import Json
from reports.judgement.run.deliveries import Delivery
from reports.judgement.run.history import ClientEvent
from reports.timing import ARRIVAL_ERROR_MS, OLD_ANSWER_MS, SEEN_MS, TAIL_MS

KEPT = 100
"""How many answers of one kind are kept that a client has not reported: some never report one."""

AT_ONCE_S, PROVEN_S = 1, 5
"""In how many seconds after that the broker may answer others first, and in how many
at least if that is proven."""
Tells = frozenset[str] | int | None
"""What a client would tell of an answer: its partitions, or how many offsets it stored."""


class Answer(NamedTuple):
    """An answer: by how much it may be logged late, and what its client would tell of it.

    That is None where it is open; then the client may say nothing of it, too. Nor need it say
    anything of what it was answered `again`.
    """

    seen: ObservedRequest
    late_ms: float = 0.0
    tells: Tells = None
    again: bool = False

    @property
    def at_ms(self) -> float:
        """When it was sent, or the client got it."""
        return self.seen.answered_ms

    @property
    def early_ms(self) -> float:
        """When at the earliest."""
        return self.seen.answered_ms - self.late_ms

    @property
    def has_to_be_reported(self) -> bool:
        """Whether the client tells of it for sure."""
        return self.tells is not None and not self.again


Fits = Callable[[Answer], bool]


class Waiting(NamedTuple):
    """An event for which no answer has come so far, and which answer fits it.

    `unlogged` if the broker may have answered and never logged it.
    """

    event: ClientEvent
    fits: Fits
    unlogged: bool


@dataclass(slots=True)
class Answers:
    """The answers of one kind to one client that it has not reported yet."""

    answers: list[Answer] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    tells_of_all: bool = False  # whether the client tells of each answer that reaches it
    _said_ms: float = -inf
    _silent_from_ms: float = -inf
    """The last event, and the last before the client was silent for longer than OLD_ANSWER_MS."""
    _connection: str = ""  # that of the answer which it reported last

    def take(self, at_ms: float, fits: Fits) -> tuple[Answer | None, list[Answer]]:
        """Take the answer that an event tells of; return it, and those before it.

        Of several before the event it is the first that is not old, or else the last. If the client
        tells of all, what came on its one connection since it fell silent is not old: one that was
        frozen reads its answers in order.
        """
        if at_ms - self._said_ms > OLD_ANSWER_MS:
            self._silent_from_ms = self._said_ms
        self._said_ms = at_ms
        fitting = [place for place, one in enumerate(self.answers) if fits(one)]
        if not fitting:
            return None, []
        before = [at for at in fitting if self.answers[at].early_ms <= at_ms + ARRIVAL_ERROR_MS]
        recent = [at for at in before if self._is_recent(at, at_ms, before[-1])]
        at = min(
            recent or before[-1:] or fitting[:1], key=lambda at: self.answers[at].tells is None
        )
        found, passed = self.answers[at], self.answers[:at]
        self._connection = found.seen.connection
        del self.answers[: at + 1]
        return found, passed

    def _is_recent(self, place: int, at_ms: float, last_place: int) -> bool:
        """Whether an answer is not old for an event, before which the last one came."""
        answer, last = self.answers[place], self.answers[last_place]
        if answer.at_ms >= at_ms - OLD_ANSWER_MS:
            return True
        unread = self.tells_of_all and answer.at_ms > self._silent_from_ms
        return unread and self._connection == answer.seen.connection == last.seen.connection

    def reported(self, answer: Answer) -> None:
        """Excuse answers that say the same within OLD_ANSWER_MS.

        A client that joins again before it tells of the first tells of both once.
        """
        for place, one in enumerate(self.answers):
            if one.tells == answer.tells and abs(one.at_ms - answer.at_ms) <= OLD_ANSWER_MS:
                self.answers[place] = one._replace(again=True)

    def add(self, answer: Answer) -> None:
        """Note an answer; an event that waits for it has it if its line may be that late."""
        for place, one in enumerate(self.waiting):
            if answer.early_ms <= one.event.at_ms + SEEN_MS and one.fits(answer):
                del self.waiting[place]
                return
        self.answers.append(answer)
        if len(self.answers) > 2 * KEPT:
            del self.answers[:-KEPT]


@dataclass(slots=True)
class Client:
    """What is known of one client."""

    answers: Mapping[str, Answers] = field(
        default_factory=lambda: {
            "assigned": Answers(),
            "committed": Answers(tells_of_all=True),
            "fenced": Answers(),
        }
    )  # what it was answered, by the event that reports it
    last_commit: Any = None  # the offsets of the commit that it reported last
    ids: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    """The last member ids that brokers gave it, in order."""
    joined_ms: float = -inf  # when it was last answered a JoinGroup that a log has
    connections: set[str] = field(default_factory=set)
    """Those on which its process was answered something that it reported."""
    said: set[str] = field(default_factory=set)
    """The events that it ever reported: clients differ in what they report."""
    _ended_ms: float = -inf
    _gone_ms: float = inf
    """When its process began to end, and when it last said so: a busy machine takes its time."""
    _first: tuple[float, ObservedRequest] | None = None
    """Its first request, and when that arrived."""
    _created_ms: float = inf
    _running: ClientEvent | None = None
    """How its first process began, and the one that has not ended so far."""

    def given(self, member_id: str) -> None:
        """Note a member id."""
        if member_id in self.ids:
            self.ids.remove(member_id)
        self.ids.append(member_id)

    def sent(self, seen: ObservedRequest, arrived_ms: float) -> None:
        """Note a request."""
        if self._first is None or arrived_ms < self._first[0]:
            self._first = arrived_ms, seen

    def begins(self, created: ClientEvent) -> None:
        """Begin with a new process."""
        self._ended_ms, self._gone_ms = -inf, inf
        self.connections.clear()
        self._created_ms, self._running = min(self._created_ms, created.at_ms), created

    def ends(self, at_ms: float) -> None:
        """Note that its process says how it ends."""
        if self._gone_ms == inf:
            self._ended_ms = at_ms
        self._gone_ms, self._running = at_ms, None

    def had_to_report(self, answer: Answer, until_ms: float) -> bool:
        """Whether it got an answer, up to a time, when it was still to report it."""
        before = answer.at_ms < self._ended_ms - TAIL_MS
        after = self._gone_ms + TAIL_MS < answer.seen.earliest_ms < answer.at_ms <= until_ms
        return answer.has_to_be_reported and (before or after)

    def missing(self, name: str) -> Iterator[Json]:
        """Yield rows of `BREACHES` about what a history lacks that has to have the client.

        A member writes `created` before it sends anything, and how its process ended: all 299
        members of 54 runs did, most of these on a machine that was starved of CPU. What is missing
        is a doubt.
        """
        observed = "the history has nothing of it"
        nothing = partial(breach, Breach.DISAGREE, observed=observed, proven=False)
        if self._first and self._created_ms > self._first[0] + SEEN_MS:
            arrived_ms, seen = self._first
            expected = f"{name} says created before it sends its first request"
            yield nothing(arrived_ms, expected, shown_by=seen)
        if self._running:
            expected = f"{name} says how its process ended"
            yield nothing(self._running.at_ms, expected, history=self._running.place)


@dataclass(slots=True)
class Unanswered:
    """Requests that a broker never answered, though their member was removed or the group given up.

    A request that waits in a group is answered once its member is removed: a JoinGroup is, with
    UNKNOWN_MEMBER_ID; and with NOT_COORDINATOR once its broker does not coordinate the group any
    more (KAFKA-20115). A broker logs a request with its response, so that one without is in no log:
    only the client can tell of it (`unanswered` in its history). That this very broker answers
    others in that time shows that it did not stand still.
    """

    _removals: dict[str, ObservedRequest] = field(default_factory=dict)
    """The latest LeaveGroup by the member id that it removed, or else by its instance id."""
    _joined: dict[str, str] = field(default_factory=dict)
    """The broker at which each member id joined last."""
    _given_up: dict[str, ObservedRequest] = field(default_factory=dict)
    """The first request that a broker refused since it last let a member join."""
    _served_ms: dict[str, float] = field(default_factory=dict)
    """When each broker last answered as the coordinator."""
    _seconds: set[tuple[str, int]] = field(default_factory=set)
    """The seconds in which each broker answered."""

    def add(self, seen: ObservedRequest) -> None:
        """Take a request."""
        broker, error = seen.broker, seen.response_fields.get("errorCode")
        self._seconds.add((broker, int(seen.answered_ms // 1000)))
        if error == Error.NOT_COORDINATOR:
            self._given_up.setdefault(broker, seen)
        if error in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
            self._served_ms[broker] = seen.answered_ms
        if seen.api == "JOIN_GROUP" and not error:
            self._joined[seen.response_fields["memberId"]] = broker
            self._given_up.pop(broker, None)
        elif seen.api == "LEAVE_GROUP" and not error:
            self._removals |= dict.fromkeys(_removed(seen), seen)

    def reported(self, event: ClientEvent) -> Iterator[Json]:
        """Yield a row of `BREACHES`, without the group, if the broker had to answer."""
        broker = self._joined.get(event.member_id or "", "")
        removed = map(self._removals.get, filter(None, (event.member_id, event.instance_id)))
        ends = {"its member is removed": next(filter(None, removed), None)}
        if self._served_ms.get(broker, -inf) >= event.sent_at_ms:  # it coordinated by then
            ends["its broker gives the group up"] = self._given_up.get(broker)
        for once, seen in ends.items():
            if seen is None or broker not in ("", seen.broker):  # it may wait elsewhere
                continue
            if event.sent_at_ms <= seen.answered_ms <= event.at_ms:
                yield from self._never(event, once, seen)
                return

    def _never(self, event: ClientEvent, once: str, end: ObservedRequest) -> Iterator[Json]:
        """Yield a row if the broker of what ends the wait answered others after it."""
        after = range(int(end.answered_ms // 1000) + 1, int(event.at_ms // 1000))
        worked_s = sum((end.broker, second) in self._seconds for second in after)
        if worked_s > AT_ONCE_S:
            waited_s = (event.at_ms - end.answered_ms) / 1000
            yield breach(
                Breach.NEVER_ANSWERED,
                event.at_ms,
                f"{event.api} of {event.client} is answered once {once}",
                f"no answer {waited_s:.1f} s later",
                shown_by=end,
                history=event.place,
                proven=worked_s >= PROVEN_S,
            )


def _removed(leave: ObservedRequest) -> Iterator[str]:
    """Yield what names the members that a LeaveGroup removed: member ids, or else instance ids."""
    results = leave.response_fields.get("members") or [{"errorCode": 0, **leave.request}]
    for result in results:
        name = result.get("memberId") or result.get("groupInstanceId")
        if name and not result["errorCode"]:
            yield name


def as_delivered(seen: ObservedRequest, delivery: Delivery | None) -> ObservedRequest:
    """Return a request with the answer that its client got, and when: infinity for never."""
    if delivery is None:
        return seen
    if delivery.at_ms is None:
        return replace(seen, answered_ms=inf, response=None)
    response = seen.response
    if delivery.error is not None:
        response = with_error(seen.response_fields, delivery.error)
    return replace(seen, answered_ms=max(seen.answered_ms, delivery.at_ms), response=response)


def heard(code: int | None, delivery: Delivery | None) -> int | None:
    """Return the error that a client was answered where its broker answered with one."""
    return code if delivery is None or delivery.error is None else delivery.error


def expected(event: ClientEvent) -> str:
    """Say which answer a client tells of."""
    if event.event == "assigned":
        return f"a SYNC_GROUP of {event.client} with {in_words(event.partitions)}"
    if event.event == "committed":
        return f"an OFFSET_COMMIT of {event.client} that stored {event.offsets} offsets"
    return f"an answer FENCED_INSTANCE_ID to {event.client}"


def described(answer: Answer) -> str:
    """Say what a client was answered."""
    seen, tells = answer.seen, answer.tells
    about = f" with {in_words(tells)}" if isinstance(tells, frozenset) else ""
    about = f" that stored {tells} offsets" if isinstance(tells, int) else about
    return f"{seen.api} of {seen.client_id} answered{about}"


def in_words(partitions: Iterable[str]) -> str:
    """List partitions."""
    return listed(sorted(partitions)) or "no partition"


def share(sync: ObservedRequest) -> frozenset[str] | None:
    """Return the partitions that a SyncGroup was answered with, if they can be read."""
    return _partitions(sync.response_fields.get("assignment") or "")


@lru_cache(maxsize=500)
def _partitions(share: str) -> frozenset[str] | None:
    """Read the assignment of a response; None if it is not of the consumer protocol."""
    assignment = read(Assignment, share)
    return None if assignment is None else frozenset(map(named, assignment.partitions))
