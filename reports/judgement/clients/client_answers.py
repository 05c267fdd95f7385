"""Answers of brokers that a client may tell of, and its events that tell of one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from reference_coordinator.assignors import Assignment
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.assignments import listed, named, read
from reports.judgement.log.parsing import ARRIVAL_ERROR_MS
from reports.judgement.run.history import ClientEvent

SEEN_MS = 250.0
"""How much earlier than its answer an event may seem. Measured on 2,740 events: 0.5 ms, and 65 ms
later at most; a broker of a busy machine may write the answer's line late."""
OLD_MS = 500.0
"""How long before an event its answer is, usually: several times what was measured."""
KEPT = 100
"""How many answers of one kind are kept that a client has not reported: some never report one."""


class Answer(NamedTuple):
    """An answer: when it was sent, and when at the earliest; what a client would tell of it.

    `tells` is None where that is open; then the client may say nothing of it, too. Nor need it say
    anything of what it was answered `again`.
    """

    at_ms: float
    early_ms: float
    seen: ObservedRequest
    tells: Any = None
    again: bool = False

    @property
    def has_to_be_reported(self) -> bool:
        """Whether the client tells of it for sure."""
        return self.tells is not None and not self.again


Fits = Callable[[Answer], bool]


class Waiting(NamedTuple):
    """An event for which no answer has come so far, which answer fits it, and that in words.

    `unlogged` if the broker may have answered and never logged it.
    """

    event: ClientEvent
    fits: Fits
    what: str
    unlogged: bool


@dataclass(slots=True)
class Answers:
    """The answers of one kind to one client that it has not reported yet."""

    answers: list[Answer] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    tells_of_all: bool = False
    """Whether the client tells of each answer that reaches it."""
    _said_ms: float = -inf
    _silent_from_ms: float = -inf
    """The last event, and the last before the client was silent for longer than OLD_MS."""
    _connection: str = ""
    """That of the answer which it reported last."""

    def take(self, at_ms: float, fits: Fits) -> tuple[Answer | None, list[Answer]]:
        """Take the answer that an event tells of; return it, and those before it.

        Of several before the event it is the first that is not old, or else the last. If the client
        tells of all, what came on its one connection since it fell silent is not old: one that was
        frozen reads its answers in order.
        """
        if at_ms - self._said_ms > OLD_MS:
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
        if answer.at_ms >= at_ms - OLD_MS:
            return True
        unread = self.tells_of_all and answer.at_ms > self._silent_from_ms
        return unread and self._connection == answer.seen.connection == last.seen.connection

    def reported(self, answer: Answer) -> None:
        """Excuse answers that say the same within OLD_MS.

        A client that joins again before it tells of the first tells of both once.
        """
        for place, one in enumerate(self.answers):
            if one.tells == answer.tells and abs(one.at_ms - answer.at_ms) <= OLD_MS:
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

    assigned: Answers = field(default_factory=Answers)
    committed: Answers = field(default_factory=lambda: Answers(tells_of_all=True))
    last_commit: Any = None
    """The offsets of the commit that it reported last."""
    fenced: Answers = field(default_factory=Answers)
    ids: dict[str, None] = field(default_factory=dict)
    """The last member ids that brokers gave it, in order."""
    joined_ms: float = -inf
    """When it was last answered a JoinGroup that a log has."""
    connections: set[str] = field(default_factory=set)
    """Those on which its process was answered something that it reported."""
    said: set[str] = field(default_factory=set)
    """The events that it ever reported: clients differ in what they report."""
    ended_ms: float | None = None
    """When its process began to end."""
    gone_ms: float | None = None
    """When it last said so: a busy machine takes its time."""

    def given(self, member_id: str) -> None:
        """Note a member id."""
        self.ids.pop(member_id, None)
        self.ids[member_id] = None
        if len(self.ids) > KEPT:
            del self.ids[next(iter(self.ids))]

    @property
    def by_event(self) -> Mapping[str, Answers]:
        """What it was answered, by the event that reports it."""
        return {"assigned": self.assigned, "committed": self.committed, "fenced": self.fenced}


def described(answer: Answer) -> str:
    """Say what a client was answered."""
    seen, tells = answer.seen, answer.tells
    about = f" with {in_words(tells)}" if isinstance(tells, frozenset) else ""
    about = f" that stored {tells} offsets" if isinstance(tells, int) else about
    return f"{seen.api} of {seen.client_id} answered{about}"


def later(event: ClientEvent, answer: Answer) -> str:
    """Say how much later than its event an answer came."""
    return f"it came {answer.at_ms - event.at_ms:.0f} ms later"


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
