"""Who caused each observed rebalance: a fault of the plan, the load, the broker, or a client.

A rebalance begins because a member joins, leaves, or is not heard any more. Why it did lies between
the last answer that accepted it and the begin of the rebalance: what a fault, the load or a broker
did in that time is the cause, in this order. Where nothing was done, the client did it by itself.
A member that comes back does so for the reason for which it was gone, and one of a cooperative
group that gives partitions up does so for the rebalance before (KIP-429).
"""

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from kafka_protocol.consumer_protocol import TopicPartition
from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.effects import REJOINS, Reason
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.assignments import COOPERATIVE, SHOWN, subscription_in
from reports.judgement.clients.client_rules.findings import CAUSES_NO_REBALANCE
from reports.judgement.clients.offsets import stored
from reports.judgement.clients.ownership import DUPLICATE
from reports.judgement.group_evidence import Batch, GroupEvidence, Named
from reports.judgement.members import EVICTED
from reports.judgement.run.disturbance import Act
from reports.judgement.run.history import ClientEvent
from reports.timing import ARRIVAL_ERROR_MS, HANDLED_MS, LEARNED_MS, TIMER_SLACK_MS

Json = dict[str, Any]
By = Literal["fault", "load", "broker", "client", "unknown"]
BY: Sequence[By] = ("fault", "load", "broker", "client", "unknown")
CAUSES = "group STRING, started_ms DOUBLE, by STRING, who STRING, what STRING"
"""One row a rebalance whose begin is known: who caused it, which client it was, if one did, and how
in words. The load causes those by which a group forms and ends."""
OF_BROKER = (Reason.ASSIGNMENT_ERROR, Reason.OVER_CAPACITY)
"""The reasons of rebalances that no member begins."""
REJOINED = (*REJOINS, Reason.STATIC_REPLACED, Reason.PROTOCOL_CHANGE)
JOINS = (Reason.NEW_MEMBER, Reason.STATIC_REPLACED, Reason.PROTOCOL_CHANGE)
DID: Mapping[str, str] = {
    Reason.LEAVE: "left",
    Reason.SESSION_EXPIRED: "let its session expire",
    Reason.PENDING_SYNC: "joined and sent no SyncGroup",
    **dict.fromkeys(JOINS, "joined again"),
    **dict.fromkeys(REJOINS, "rejoined as a member"),
}  # what a client did, by the reason of the rebalance
COMES_AND_GOES = ("created", "closing", "killed")
"""The events by which the load starts and ends processes."""


class Cause(NamedTuple):
    """Who caused a rebalance; `since_ms` is when its member was heard last before."""

    by: By
    what: str
    who: str | None = None
    since_ms: float = -inf
    is_copy: bool = False  # that of the rebalance before


class Begun(NamedTuple):
    """A rebalance: when it began, for which reason, by which member ids, comma-separated."""

    at_ms: float
    reason: str | None
    members: str


class Joined(NamedTuple):
    """A JoinGroup; `gives_up` tells that its member had revoked partitions before it.

    `after_ms` is how long before it the last JoinGroup or SyncGroup of its client was answered.
    """

    at_ms: float
    request: str
    session_ms: float = inf
    gives_up: bool = False
    after_ms: float = inf


class Gone(NamedTuple):
    """When a member left or expired, its id, and who sent the LeaveGroup, if one was sent."""

    at_ms: float
    member: str
    sender: str = ""

    @property
    def reason(self) -> Reason:
        """The reason that a rebalance has which begins with it."""
        return Reason.LEAVE if self.sender else Reason.SESSION_EXPIRED


@dataclass(slots=True)
class Causes:
    """The causes of the rebalances of one group, whose batches come in order of time."""

    evidence: GroupEvidence
    _heard: dict[str, "array[float]"] = field(default_factory=lambda: defaultdict(_times))
    """When answers accepted each member id, and each client, ms."""
    _clients: dict[str, str] = field(default_factory=dict)
    """The client of each member id."""
    _joins: dict[str, list[Joined]] = field(default_factory=lambda: defaultdict(list))
    _gone: list[Gone] = field(default_factory=list)
    _owned: dict[str, frozenset[TopicPartition]] = field(default_factory=dict)
    """What each client said that it owned when it joined last."""
    _let_in_ms: dict[str, float] = field(default_factory=dict)
    """When each client was answered its last JoinGroup or SyncGroup."""
    _acts: list[Act] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Take a batch."""
        for seen, error in zip(batch.seen, batch.requests.error_codes, strict=True):
            response = seen.response_fields if seen.api == "JOIN_GROUP" else {}
            member = response.get("memberId") or seen.request.get("memberId") or ""
            if seen.api == "LEAVE_GROUP":
                for one in seen.request.get("members") or (seen.request,):
                    left = one.get("memberId") or ""
                    self._gone.append(Gone(seen.earliest_ms, left, seen.client_id))
            elif seen.api == "JOIN_GROUP":
                self._clients[member] = seen.client_id
                self._joins[seen.client_id].append(self._join_of(seen, error))
            failed = stored(seen)[1] if seen.api == "OFFSET_COMMIT" else error
            if failed in (NO_ERROR, Error.REBALANCE_IN_PROGRESS):
                self._heard[member].append(seen.answered_ms)
                self._heard[seen.client_id].append(seen.answered_ms)
                if seen.api in ("JOIN_GROUP", "SYNC_GROUP"):
                    self._let_in_ms[seen.client_id] = seen.answered_ms
        expired = (line for line in batch.chunk.lines if line["template"] == EVICTED)
        self._gone += (Gone(line["at_ms"], line["member"]) for line in expired)
        self._acts += map(
            self._of_load, (e for e in batch.chunk.events if e.event in COMES_AND_GOES)
        )

    def _join_of(self, seen: ObservedRequest, error: int | None) -> Joined:
        session_ms = float(seen.request.get("sessionTimeoutMs") or inf)
        gives_up = False
        if error == NO_ERROR and seen.response_fields.get("protocolName") in COOPERATIVE:
            chosen = seen.response_fields["protocolName"]
            said = (p["metadata"] for p in seen.request["protocols"] if p["name"] == chosen)
            owned = frozenset(subscription_in(next(said, "")).owned)
            gives_up = not self._owned.get(seen.client_id, frozenset()) <= owned
            self._owned[seen.client_id] = owned
        after_ms = seen.earliest_ms - self._let_in_ms.get(seen.client_id, -inf)
        return Joined(seen.earliest_ms, seen.id, session_ms, gives_up, after_ms)

    def _of_load(self, event: ClientEvent) -> Act:
        what = f"{event.event} of {event.client} by the load"
        client = frozenset([event.client.removesuffix(DUPLICATE)])
        return Act("load", self.evidence.group, client, event.at_ms, event.at_ms, what)

    def rows(self, compared: Iterable[Json], findings: Sequence[Json]) -> Iterator[Named]:
        """Yield the rows of `CAUSES` and of `CLIENT_FINDINGS`, without the group, once all is in.

        `compared` are the group's rows of the comparison, `findings` those about its clients: a
        rebalance that another rule explains is no finding a second time.
        """
        for times in self._heard.values():
            times[:] = array("d", sorted(times))
        self._acts = [*self.evidence.context.acts, *self._acts]
        last, by_itself = Cause("unknown", ""), defaultdict[str, list[tuple[Begun, Cause]]](list)
        side = "observed" if self.evidence.wire is None else "expected"
        for begun in sorted(_begun(compared, side), key=itemgetter(0)):
            last = cause = next(self._possible(begun, last))
            yield "causes", {
                "started_ms": begun.at_ms, "by": cause.by, "who": cause.who, "what": cause.what,
            }  # fmt: skip
            if cause.by == "client" and cause.who and not _is_said(begun, cause, findings):
                by_itself[cause.who].append((begun, cause))
        for client, caused in by_itself.items():
            yield "client_findings", self._finding(client, caused)

    def _possible(self, begun: Begun, last: Cause) -> Iterator[Cause]:
        """Yield what may be the cause of a rebalance, or of a departure; the first one is it."""
        at_ms, reason, context = begun.at_ms, begun.reason, self.evidence.context
        if not context.loaded_ms[0] <= at_ms < context.loaded_ms[1]:
            yield Cause("load", "the group forms or ends")
        member = begun.members.strip(", ").partition(",")[0]
        left = self._left(at_ms, member) if reason == Reason.LEAVE else None
        client = self._clients.get(member, left.sender if left else "")
        by_id = reason in (Reason.SESSION_EXPIRED, Reason.PENDING_SYNC)
        since_ms = self._before(member if by_id else client, at_ms) if client else at_ms
        if act := self._act(client, since_ms, at_ms):
            yield Cause(act.by, act.what, client or None, since_ms)
        if reason in OF_BROKER:
            yield Cause("broker", str(reason).replace("_", " "))
        joined = self._joined(client, at_ms)
        if reason is None or joined is None:
            yield Cause("unknown", "nothing tells which member began it")
            return
        if broker := self._loaded(since_ms, at_ms):
            yield Cause("broker", f"broker {broker} became the coordinator", client, since_ms)
        if reason in JOINS:
            yield from self._as_it_was_gone(client, since_ms, at_ms, last)
        again = last.by == "client" and last.who == client
        at_once = joined.after_ms < LEARNED_MS and not (last.is_copy or again)
        if (reason in REJOINS and joined.gives_up) or (reason in REJOINED and at_once):
            yield last._replace(what=f"{client} rejoined after the one before", is_copy=True)
        if left and left.sender != client:
            yield Cause("unknown", f"{left.sender} removed {client}")
        silent_ms = at_ms - since_ms
        if reason == Reason.SESSION_EXPIRED and silent_ms < joined.session_ms - TIMER_SLACK_MS:
            early = f"removed {client} {silent_ms:.0f} ms after its last request"
            yield Cause("broker", f"{early}, and its session is {joined.session_ms:.0f} ms", client)
        stood = (one for one in context.standstills if one.meets(since_ms, at_ms))
        if sum(one.lasted_ms for one in stood) > LEARNED_MS:
            yield Cause("unknown", f"the machine stood still before {client} {DID[reason]}", client)
        yield Cause("client", f"{client} {DID[reason]} by itself", client, since_ms)

    def _as_it_was_gone(
        self, client: str, since_ms: float, at_ms: float, last: Cause
    ) -> Iterator[Cause]:
        """Yield why a client that joins at a time is not in the group."""
        if since_ms == -inf:
            yield Cause("load", f"{client} joined for the first time", client)
        mine = (one for one in self._gone if self._clients.get(one.member) == client)
        within = [one for one in mine if since_ms - HANDLED_MS <= one.at_ms < at_ms]
        for gone in sorted(within)[-1:]:
            why = next(self._possible(Begun(gone.at_ms, gone.reason, gone.member), last))
            again = f"{client} joined again {(at_ms - gone.at_ms) / 1000:.1f} s after it was gone"
            yield why._replace(what=again) if why.by == "client" else why

    def _act(self, client: str, since_ms: float, at_ms: float) -> Act | None:
        """Return what was done to a client, or to its group or brokers, in a time; faults first."""
        name = client.removesuffix(DUPLICATE)
        done = (
            act
            for act in self._acts
            if act.group in (None, self.evidence.group)
            and (not act.clients or name in act.clients)
            and act.from_ms <= at_ms + ARRIVAL_ERROR_MS
            and since_ms <= act.until_ms + LEARNED_MS
        )
        return min(done, key=_rank, default=None)

    def _before(self, name: str, at_ms: float) -> float:
        """Return when a member id or a client was accepted last before a time."""
        times = self._heard.get(name, _times())
        place = bisect_left(times, at_ms)
        return times[place - 1] if place else -inf

    def _joined(self, client: str, at_ms: float) -> Joined | None:
        """Return the last JoinGroup of a client before a time."""
        joins = (
            one for one in self._joins.get(client, ()) if one.at_ms <= at_ms + ARRIVAL_ERROR_MS
        )
        return max(joins, default=None)

    def _left(self, at_ms: float, member: str) -> Gone | None:
        """Return the LeaveGroup that began a rebalance: that of a member, or else the last one."""
        within = (at_ms - HANDLED_MS, at_ms + ARRIVAL_ERROR_MS)
        left = (one for one in self._gone if one.sender and within[0] <= one.at_ms <= within[1])
        return max(left, key=lambda one: (one.member == member, one.at_ms), default=None)

    def _loaded(self, from_ms: float, until_ms: float) -> str | None:
        """Return which broker became the coordinator in a time, if one did."""
        events = self.evidence.beforehand.epoch_events
        loads = (one for one in events if one.kind == "loaded" and from_ms < one.at_ms <= until_ms)
        return next((one.broker for one in loads), None)

    def _finding(self, client: str, caused: Sequence[tuple[Begun, Cause]]) -> Json:
        """Return the finding about a client that caused rebalances by itself."""
        did = Counter(DID.get(begun.reason or "", str(begun.reason)) for begun, _ in caused)
        listed = [f"{what} {count} times" if count > 1 else what for what, count in did.items()]
        count = "a rebalance" if len(caused) == 1 else f"{len(caused)} rebalances"
        joins = (self._joined(client, begun.at_ms) for begun, _ in caused[:SHOWN])
        return {
            "client_id": client,
            "rule": CAUSES_NO_REBALANCE.name,
            "at_ms": caused[0][0].at_ms,
            "what": f"{client} caused {count} by itself: it {' and '.join(listed)}",
            "requests": ",".join(dict.fromkeys(one.request for one in joins if one)),
            "from_ms": caused[0][1].since_ms,
            "until_ms": caused[-1][0].at_ms,
            "on_time": True,
        }


def _rank(act: Act) -> tuple[Any, ...]:
    """Order acts: faults first, those on some clients first, and the latest first."""
    return BY.index(act.by), not act.clients, -act.from_ms


def _times() -> "array[float]":
    return array("d")


def _begun(compared: Iterable[Json], side: str) -> Iterator[Begun]:
    """Yield the rebalances whose begin one side of the comparison knows."""
    for row in compared:
        at_ms = row[f"{side}_started_ms"]
        if side == "expected":  # an answer tells of it, or the replay alone
            at_ms = at_ms or row["observed_joined_ms"]
        if at_ms is not None:
            yield Begun(at_ms, row[f"{side}_reason"], row[f"{side}_member_id"] or "")


def _is_said(begun: Begun, cause: Cause, findings: Iterable[Json]) -> bool:
    """Whether another finding about a client is of the time in which it caused a rebalance."""
    return any(
        one["client_id"] == cause.who
        and one["from_ms"] <= begun.at_ms + LEARNED_MS
        and one["until_ms"] >= cause.since_ms - LEARNED_MS
        for one in findings
    )
