"""Who caused each observed rebalance: a fault of the plan, the load, the broker, or a client.

A rebalance begins because a member joins, leaves, or is not heard any more. Why it did lies between
the last answer that accepted it and the begin of the rebalance: what a fault, the load or a broker
did in that time is the cause, in this order. Where nothing was done, the client did it by itself.
A member that comes back does so for the reason for which it was gone. A rejoin may follow from the
rebalance before: a member of a cooperative group has given partitions up (KIP-429), or a client of
another library has learnt, as it leads the group, what it assigns.
"""

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from operator import itemgetter
from typing import Literal, NamedTuple

from kafka_protocol.consumer_protocol import TopicPartition
from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.effects import REJOINS, Reason
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.assignments import EAGER, SHOWN, subscription_in
from reports.judgement.clients.client_rules.findings import CAUSES_NO_REBALANCE
from reports.judgement.clients.client_rules.shown import of_requests, seconds
from reports.judgement.clients.offsets import stored
from reports.judgement.clients.ownership import DUPLICATE
from reports.judgement.group_evidence import Batch, GroupEvidence, Named
from reports.judgement.members import EVICTED
from reports.judgement.rows import Json
from reports.judgement.run.disturbance import Act
from reports.judgement.timelines.timeline import BY_TIMERS
from reports.timing import ARRIVAL_ERROR_MS, HANDLED_MS, LEARNED_MS

By = Literal["fault", "load", "broker", "client", "unknown"]
BY: Sequence[By] = ("fault", "load", "broker", "client", "unknown")
CAUSES = "group STRING, started_ms DOUBLE, by STRING, who STRING, what STRING"
"""One row a rebalance whose begin is known: who caused it (`BY`), which client began it, and how,
in words. The load causes those by which a group forms and ends."""
OF_BROKER = (Reason.ASSIGNMENT_ERROR, Reason.OVER_CAPACITY, "unexpected", "early")
"""Reasons that no member has, and outcomes of what the reference coordinator does not do."""
JOINS = (Reason.NEW_MEMBER, Reason.STATIC_REPLACED, Reason.PROTOCOL_CHANGE)
DID: Mapping[str, str] = {
    Reason.LEAVE: "left",
    Reason.SESSION_EXPIRED: "let its session expire",
    Reason.PENDING_SYNC: "joined and sent no SyncGroup",
    **dict.fromkeys(JOINS, "joined again"),
    **dict.fromkeys(REJOINS, "rejoined as a member"),
}  # what a client did, by the reason of the rebalance
STARTS_AND_ENDS = ("created", "closing", "killed")  # what the load does to processes of members


class Cause(NamedTuple):
    """Who caused a rebalance; `since_ms` is when its member was heard last before.

    A client that rejoined `again` for the rebalance before did so for the cause of that.
    """

    by: By
    what: str
    who: str | None = None
    since_ms: float = -inf
    again: str | None = None


class Begun(NamedTuple):
    """A rebalance, or a departure: when, for which reason, by which member ids."""

    at_ms: float
    reason: str | None
    members: str
    sender: str = ""  # of a departure by LeaveGroup
    outcome: str = "match"  # of a rebalance, beside the reference coordinator's


class Joined(NamedTuple):
    """A JoinGroup, and what its member `owned` in a cooperative group.

    It follows from the rebalance before if it `gave_up` some of that (KIP-429), and may do so if it
    comes `at_once`, just after it was let in.
    """

    seen: ObservedRequest
    owned: frozenset[TopicPartition]
    gave_up: bool
    at_once: bool


@dataclass(slots=True)
class Causes:
    """The causes of the rebalances of one group, whose batches come in order of time."""

    evidence: GroupEvidence
    _heard: dict[str, "array[float]"] = field(
        default_factory=partial(defaultdict, partial(array, "d"))
    )  # when answers accepted each member id, and each client, ms
    _clients: dict[str | None, str] = field(default_factory=dict)  # by member id, and instance
    _joins: dict[str, list[Joined]] = field(default_factory=partial(defaultdict, list))
    _gone: list[Begun] = field(default_factory=list)  # the departures
    _let_in_ms: dict[str, float] = field(default_factory=dict)
    """When each client was answered its last JoinGroup or SyncGroup."""
    _acts: list[Act] = field(default_factory=list)  # what the load did

    def add(self, batch: Batch) -> None:
        """Take a batch."""
        for seen, error in zip(batch.seen, batch.requests.error_codes, strict=True):
            client, member = seen.client_id, seen.request.get("memberId") or ""
            if seen.api == "LEAVE_GROUP":
                for one in seen.request.get("members") or (seen.request,):
                    left = one.get("memberId") or one.get("groupInstanceId") or ""
                    self._gone.append(Begun(seen.earliest_ms, Reason.LEAVE, left, client))
            elif seen.api == "JOIN_GROUP":
                member = seen.response_fields.get("memberId") or member
                self._clients |= {member: client, seen.request.get("groupInstanceId"): client}
                self._joins[client].append(self._join_of(seen))
            failed = stored(seen)[1] if seen.api == "OFFSET_COMMIT" else error
            if failed in (NO_ERROR, Error.REBALANCE_IN_PROGRESS):
                for name in (member, client):
                    self._heard[name].append(seen.answered_ms)
                if seen.api in ("JOIN_GROUP", "SYNC_GROUP"):
                    self._let_in_ms[client] = seen.answered_ms
        for line in batch.chunk.lines:
            if line["template"] == EVICTED:
                self._gone.append(Begun(line["at_ms"], Reason.SESSION_EXPIRED, line["member"]))
        for event in batch.chunk.events:
            if event.event in STARTS_AND_ENDS:
                who, at_ms = frozenset([event.client.removesuffix(DUPLICATE)]), event.at_ms
                what = f"the load: {event.event} of {event.client}"
                self._acts.append(Act("load", self.evidence.group, who, at_ms, at_ms, what))

    def _join_of(self, seen: ObservedRequest) -> Joined:
        before, chosen = self._joins[seen.client_id], seen.response_fields.get("protocolName")
        had = owned = before[-1].owned if before else frozenset()
        if chosen and chosen not in EAGER:
            said = (one["metadata"] for one in seen.request["protocols"] if one["name"] == chosen)
            owned = frozenset(subscription_in(next(said, "")).owned)
        at_once = seen.earliest_ms < self._let_in_ms.get(seen.client_id, -inf) + LEARNED_MS
        return Joined(seen, owned, not had <= owned, at_once)

    def rows(self, compared: Iterable[Json], findings: Sequence[Json]) -> Iterator[Named]:
        """Yield the rows of `CAUSES` and of `CLIENT_FINDINGS`, without the group, once all is in.

        `compared` are the group's rows of the comparison, `findings` those about its clients: a
        rebalance in the time of another rule's finding about its client is said by that one alone.
        """
        for times in self._heard.values():
            times[:] = array("d", sorted(times))
        last, by_itself = Cause("unknown", ""), defaultdict[str, list[tuple[Begun, Cause]]](list)
        side = "observed" if self.evidence.wire is None else "expected"
        for begun in sorted(_begun(compared, side), key=itemgetter(0)):
            last = cause = next(self._possible(begun, last))
            row = {"started_ms": begun.at_ms, "by": cause.by, "who": cause.who, "what": cause.what}
            yield "causes", row
            if cause.by == "client" and cause.who:
                by_itself[cause.who].append((begun, cause))
        for client, caused in by_itself.items():
            said = [one for one in findings if one["client_id"] == client]
            unsaid = [
                (begun, cause)
                for begun, cause in caused
                if not any(
                    one["from_ms"] - LEARNED_MS <= begun.at_ms
                    and one["until_ms"] + LEARNED_MS >= cause.since_ms
                    for one in said
                )
            ]
            if unsaid:
                yield "client_findings", self._finding(client, unsaid)

    def _possible(self, begun: Begun, last: Cause) -> Iterator[Cause]:
        """Yield what may be the cause of a rebalance, or of a departure; the first one is it."""
        at_ms, reason, context = begun.at_ms, begun.reason, self.evidence.context
        if not context.loaded_ms[0] <= at_ms < context.loaded_ms[1]:
            yield Cause("load", "the group forms or ends")
        client, sender, since_ms = self._of(begun)
        joined = self._joined(client, at_ms)
        polled_ms = _polled_ms(joined, since_ms, at_ms) if reason == Reason.LEAVE else since_ms
        if act := self._act(client, polled_ms, since_ms, at_ms):
            yield Cause(act.by, act.what, client or None, polled_ms)
        for alone in (begun.outcome, reason):
            if alone in OF_BROKER:
                what = f"the broker alone: {alone.replace('_', ' ')}"
                yield Cause("broker", what, client or None)
        if reason is None or joined is None:
            yield Cause("unknown", "nothing tells which member began it")
            return
        for load in self.evidence.beforehand.epoch_events:
            if load.kind == "loaded" and -inf < since_ms < load.at_ms <= at_ms:
                yield Cause("broker", f"broker {load.broker} became the coordinator", client)
        if reason in JOINS:
            yield from self._returned(client, since_ms, at_ms, last)
        is_loop = client in (last.again, last.who if last.by == "client" else None)
        follows = joined.gave_up or (joined.at_once and not is_loop)
        if follows and reason in (*JOINS, *REJOINS):
            yield last._replace(what=f"{client} rejoined after the one before", again=client)
        if sender not in ("", client):
            yield Cause("unknown", f"{sender} removed {client}")
        stood = (one for one in context.standstills if one.meets(polled_ms, at_ms))
        if sum(one.lasted_ms for one in stood) > LEARNED_MS:
            yield Cause("unknown", f"a broker or the machine stood still before {client} did it")
        yield Cause("client", f"{client} {DID.get(reason, reason)} by itself", client, polled_ms)

    def _of(self, begun: Begun) -> tuple[str, str, float]:
        """Return whose it is, who sent its LeaveGroup, and when that one was accepted before."""
        member = begun.members.strip(", ").partition(",")[0]
        sender, at_ms = begun.sender, begun.at_ms
        if begun.reason == Reason.LEAVE and not sender:  # the line may name no member
            within = (at_ms - HANDLED_MS, at_ms + ARRIVAL_ERROR_MS)
            left = [one for one in self._gone if one.sender and within[0] <= one.at_ms <= within[1]]
            for one in sorted(left, key=lambda one: (one.members == member, one.at_ms))[-1:]:
                member, sender = member or one.members, one.sender
        if not (client := self._clients.get(member, sender)):
            return "", sender, at_ms
        times = self._heard.get(member if begun.reason in BY_TIMERS else client, ())
        place = bisect_left(times, at_ms)
        return client, sender, times[place - 1] if place else -inf

    def _returned(self, client: str, since_ms: float, at_ms: float, last: Cause) -> Iterator[Cause]:
        """Yield why a client that joins was not in the group."""
        if since_ms == -inf:
            yield Cause("load", f"{client} joined for the first time", client)
        mine = (one for one in self._gone if self._clients.get(one.members) == client)
        within = (one for one in mine if since_ms - HANDLED_MS <= one.at_ms < at_ms)
        if gone := max(within, key=itemgetter(0), default=None):
            why = next(self._possible(gone, last))
            again = f"{client} joined again {seconds(at_ms - gone.at_ms)} after it was gone"
            yield why._replace(what=again) if why.by == "client" else why

    def _act(self, client: str, polled_ms: float, since_ms: float, at_ms: float) -> Act | None:
        """Return what was done to a client, or to its group or brokers, in a time.

        The load stops no client from polling: it did it only since `since_ms`.
        """
        group, name = self.evidence.group, client.removesuffix(DUPLICATE)
        acts = [(act, polled_ms) for act in self.evidence.context.acts]
        done = (
            act
            for act, from_ms in (*acts, *((act, since_ms) for act in self._acts))
            if act.group in (None, group)
            and (not act.clients or name in act.clients)
            and act.from_ms <= at_ms + ARRIVAL_ERROR_MS
            and from_ms <= act.until_ms + LEARNED_MS
        )
        order = lambda act: (BY.index(act.by), not act.clients, -act.from_ms)
        return min(done, key=order, default=None)

    def _joined(self, client: str, at_ms: float) -> Joined | None:
        """Return the last JoinGroup of a client before a time."""
        at = lambda one: one.seen.earliest_ms
        joins = [one for one in self._joins.get(client, ()) if at(one) <= at_ms + ARRIVAL_ERROR_MS]
        return max(joins, key=at, default=None)

    def _finding(self, client: str, caused: Sequence[tuple[Begun, Cause]]) -> Json:
        """Return the finding about a client that caused rebalances by itself."""
        did = Counter(DID.get(begun.reason or "", "") for begun, _ in caused)
        listed = [f"{what} {times} times" if times > 1 else what for what, times in did.items()]
        count = "a rebalance" if len(caused) == 1 else f"{len(caused)} rebalances"
        joins = [self._joined(client, begun.at_ms) for begun, _ in caused[:SHOWN]]
        return {
            "client_id": client,
            "rule": CAUSES_NO_REBALANCE.name,
            "at_ms": caused[0][0].at_ms,
            "what": f"{client} caused {count} by itself: it {' and '.join(listed)}",
            **of_requests([*{one.seen.id: one.seen for one in joins if one}.values()]),
            "from_ms": caused[0][1].since_ms,
            "until_ms": caused[-1][0].at_ms,
            "on_time": True,
        }


def _polled_ms(joined: Joined | None, since_ms: float, at_ms: float) -> float:
    """Return when a client that left may have been polled last: it leaves for want of a poll.

    Its heartbeats go on meanwhile (KIP-62).
    """
    timeout_ms = joined.seen.request.get("rebalanceTimeoutMs") or 0.0 if joined else 0.0
    return min(since_ms, at_ms - timeout_ms - LEARNED_MS)


def _begun(compared: Iterable[Json], side: str) -> Iterator[Begun]:
    """Yield the rebalances whose begin one side of the comparison knows."""
    for row in compared:
        at_ms = row[f"{side}_started_ms"]
        if side == "expected":  # an answer tells of it, or the replay alone
            at_ms = at_ms or row["observed_joined_ms"]
        if at_ms is not None:
            reason, ids = row[f"{side}_reason"], row[f"{side}_member_id"] or ""
            yield Begun(at_ms, reason, ids, outcome=row["outcome"])
