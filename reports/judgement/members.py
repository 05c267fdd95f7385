"""A group's members by its requests: who joined, was last accepted, was evicted or fenced.

And who sends requests though the journal has it down.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from operator import attrgetter

from kafka_protocol.errors import Error
from kafka_protocol.group_record import host_in
from reference_coordinator.replay import ObservedRequest
from reference_coordinator.replay.lateness import NEVER_LATE, Lateness
from reports.judgement.breaches import Breach, breach
from reports.judgement.logged import Chunk, Requests
from reports.judgement.rows import Json
from reports.judgement.run.disturbance import Absence
from reports.timing import DOWN_MS, PACE_MS, TAKEN_UP_MS

JOINS = """
    group STRING, client_id STRING, member_id STRING, generation INT, answered_ms DOUBLE,
    static BOOLEAN
"""  # every JoinGroup with the response NONE
HEARD = "group STRING, member_id STRING, last_ms DOUBLE"
"""When a response last accepted a member id."""
EXPULSIONS = "group STRING, at_ms DOUBLE, subject STRING, api STRING"
"""Evictions of a member id (`api` is empty), and responses that fence a client."""

ACCEPTED = (None, Error.NONE, Error.REBALANCE_IN_PROGRESS)
"""Error codes of responses to members: NONE and REBALANCE_IN_PROGRESS. OffsetCommit has no
top-level error code."""
EVICTED = "session_expired"
"""The template of the coordinator's line about a member whose session expired."""
_ANSWERED_MS = attrgetter("answered_ms")


CHANGES = ("JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP")
"""Requests that show that the group is about to change."""
LEAVES = "LEAVE_GROUP"


@dataclass(slots=True)
class Client:
    """A client of the group, ms: when it was last heard, its session, and how long it ran.

    `from_ms` begins the time in which it was never silent for longer than PACE_MS, since the topics
    grew or the group changed; None if it was not heard since.
    """

    heard_ms: float
    session_ms: float = inf
    from_ms: float | None = None
    longest_ms: float = 0.0

    def gone(self, at_ms: float) -> bool:
        """Whether its session, as it asked for it, has ended since it was last heard."""
        return at_ms - self.heard_ms > self.session_ms


@dataclass(slots=True)
class Pace:
    """Follows the clients of one group from when its topics grew until the load is stopped, ms.

    Clients that were heard before are among them: one that says nothing any more may not have run.
    One that has left is not, nor is one that the group has changed without.
    """

    grown_ms: float = inf
    end_ms: float = inf
    _clients: dict[str, Client] = field(default_factory=dict)

    def heard(self, client: str, api: str, at_ms: float, session_ms: float | None = None) -> None:
        """Take a request of a member, in order of time; `session_ms` if it asks for a session."""
        if at_ms > self.end_ms:
            return
        if api in CHANGES:
            left = {name: one for name, one in self._clients.items() if not one.gone(at_ms)}
            for one in left.values():
                one.from_ms, one.longest_ms = None, 0.0
            self._clients = left
        if api == LEAVES:
            self._clients.pop(client, None)
            return
        one = self._clients.setdefault(client, Client(at_ms))
        if session_ms is not None:
            one.session_ms = session_ms
        if at_ms >= self.grown_ms:
            if one.from_ms is None or at_ms - one.heard_ms > PACE_MS:
                one.from_ms = at_ms
            one.longest_ms = max(one.longest_ms, at_ms - one.from_ms)
        one.heard_ms = max(one.heard_ms, at_ms)

    @property
    def kept_ms(self) -> float | None:
        """How long each client ran without a break at least; None without a growth or clients."""
        if self.grown_ms == inf:
            return None
        return min((one.longest_ms for one in self._clients.values()), default=None)


@dataclass(slots=True)
class Members:
    """What a group's requests tell of its members, as they come in."""

    pace: Pace = field(default_factory=Pace)
    requests: int = 0  # how many readable requests there are
    first_ms: float | None = None
    last_ms: float | None = None
    brokers: set[str] = field(default_factory=set)
    has_statics: bool = False  # whether the group has a static member
    max_rebalance_timeout_ms: float | None = None
    """The longest rebalance timeout of a request."""
    max_session_timeout_ms: float = 0.0
    hosts: dict[str, str] = field(default_factory=dict)
    """The hosts from which clients joined, by client id, as the group's record has them."""
    joiners: set[str] = field(default_factory=set)  # the client.ids that asked to join
    _heard_ms: dict[str | None, float] = field(default_factory=dict)

    def add(self, requests: Requests) -> Iterator[Json]:
        """Take requests; yield their rows of `JOINS`, without the group."""
        self._count(requests)
        heard_ms = self._heard_ms
        for seen, error in zip(requests.observed, requests.error_codes, strict=True):
            request, joins = seen.request, seen.api == "JOIN_GROUP"
            if joins or seen.api == LEAVES or request.get("memberId"):  # not an operator's commit
                session_ms = request.get("sessionTimeoutMs")
                self.pace.heard(seen.client_id, seen.api, seen.at_ms, session_ms)
            if not self.has_statics and request.get("groupInstanceId") is not None:
                self.has_statics = True
            if error in ACCEPTED:
                plain = not joins and not request.get("members")
                member_id = request.get("memberId") if plain else _member_id(seen)
                before_ms = heard_ms.get(member_id)
                if before_ms is None or seen.answered_ms > before_ms:
                    heard_ms[member_id] = seen.answered_ms
            if joins:
                self.joiners.add(seen.client_id)
                if (timeout_ms := request.get("rebalanceTimeoutMs")) is not None:
                    longest_ms = self.max_rebalance_timeout_ms or 0.0
                    self.max_rebalance_timeout_ms = max(longest_ms, float(timeout_ms))
                session_ms = float(request.get("sessionTimeoutMs") or 0)
                self.max_session_timeout_ms = max(self.max_session_timeout_ms, session_ms)
                if error == 0:
                    self.hosts[seen.client_id] = host_in(seen.connection)
                    yield _join(seen)

    def _count(self, requests: Requests) -> None:
        if not requests.observed:
            return
        self.requests += len(requests.observed)
        self.brokers |= {seen.broker for seen in requests.observed}
        first_ms, last_ms = min(requests.arrived_ms), max(map(_ANSWERED_MS, requests.observed))
        self.first_ms = first_ms if self.first_ms is None else min(self.first_ms, first_ms)
        self.last_ms = last_ms if self.last_ms is None else max(self.last_ms, last_ms)

    @property
    def join_timer_ms(self) -> float:
        """The longest that a join phase may last; before v1 that is the session (KIP-62)."""
        return max(self.max_rebalance_timeout_ms or 0.0, self.max_session_timeout_ms)

    def counts(self) -> Json:
        """Return the columns of `GROUPS` that requests alone tell."""
        return {
            "requests": self.requests,
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
            "max_rebalance_timeout_ms": self.max_rebalance_timeout_ms,
            "max_session_timeout_ms": self.max_session_timeout_ms,
            "brokers": ",".join(sorted(self.brokers)),
            "ran_ms": self.pace.kept_ms,
        }

    def heard(self) -> Iterator[Json]:
        """Yield the rows of `HEARD`, without their group."""
        return ({"member_id": name, "last_ms": at_ms} for name, at_ms in self._heard_ms.items())


def _join(seen: ObservedRequest) -> Json:
    response = seen.response_fields
    return {
        "client_id": seen.client_id,
        "member_id": response.get("memberId"),
        "generation": response.get("generationId"),
        "answered_ms": seen.answered_ms,
        "static": seen.request.get("groupInstanceId") is not None,
    }


def _member_id(seen: ObservedRequest) -> str | None:
    """Return the member id of a request: of LeaveGroup the first, of JoinGroup the new one."""
    members = seen.request.get("members")
    named: list[str | None] = [members[0].get("memberId")] if members else []
    named += [seen.response_fields.get("memberId")] if seen.api == "JOIN_GROUP" else []
    named += [seen.request.get("memberId")]
    return next((name for name in named if name is not None), None)


def expulsions(chunk: Chunk) -> Iterator[Json]:
    """Yield the rows of `EXPULSIONS` about a chunk, without their group."""
    for line in chunk.lines:
        if line["template"] == EVICTED:
            yield {"at_ms": line["at_ms"], "subject": line["member"], "api": ""}
    for at_ms, client_id, api, _ in chunk.fenced:
        yield {"at_ms": at_ms, "subject": client_id, "api": api}


_FROM_MS = attrgetter("from_ms")


class Absent:
    """The absences of one group's clients, and those that requests contradict.

    `lateness` is what may hold up brokers that stood still, see `HeldUp`.
    """

    def __init__(self, absences: Iterable[Absence], lateness: Mapping[str, Lateness] = {}) -> None:
        self._lateness = lateness
        self._turns: dict[str, tuple[float, float]] = {}
        """By connection: when the first arrived of the requests that waited for their turn, one
        after another, and when the last was answered."""
        self._left: dict[str, list[Absence]] = defaultdict(list)
        for one in sorted(absences, key=_FROM_MS):
            self._left[one.client].append(one)

    def add(self, requests: Iterable[tuple[ObservedRequest, float]]) -> Iterator[Json]:
        """Take requests, with their arrival in ms; yield rows of `BREACHES`, without the group.

        Of the requests in one absence the first counts.
        """
        for seen, arrived_ms in requests:
            if seen.client_id not in self._left:
                continue
            lateness = self._lateness.get(seen.broker, NEVER_LATE)
            waited_ms = self._waited_since(seen, arrived_ms, lateness)
            left = self._left[seen.client_id]
            begun = bisect_left(left, seen.earliest_ms, key=_FROM_MS)
            for place in reversed(range(begun)):
                one = left[place]
                if arrived_ms >= one.until_ms:
                    break  # and so did those before
                last_ms = lateness.latest(one.from_ms + one.held_ms, DOWN_MS)
                if last_ms < min(waited_ms, seen.earliest_ms):
                    del left[place]
                    yield breach(
                        Breach.SENT_WHILE_DOWN,
                        arrived_ms,
                        f"no request of {one.client}: {one.what}",
                        f"{seen.api} of {one.client}",
                        shown_by=seen,
                        from_ms=one.from_ms,
                    )

    def _waited_since(self, seen: ObservedRequest, arrived_ms: float, lateness: Lateness) -> float:
        """Return since when a request may have waited for its turn."""
        first_ms, answered_ms = self._turns.get(seen.connection, (arrived_ms, -inf))
        if arrived_ms > lateness.latest(answered_ms, TAKEN_UP_MS):
            first_ms = arrived_ms
        self._turns[seen.connection] = first_ms, seen.answered_ms
        return first_ms
