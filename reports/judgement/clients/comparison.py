"""Clients against brokers: what clients say that they saw, and what brokers say that they answered.

A client that says `assigned` was answered a SyncGroup with just these partitions; `fenced`, an
answer FENCED_INSTANCE_ID; `committed`, an OffsetCommit that stored as many offsets. A client tells
of each answer once, in the order of the answers. A difference is a breach of the kind DISAGREE.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf, nan
from typing import Any

from kafka_protocol.apis import HELD_APIS
from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest, Outage
from reports.judgement.breaches import AboutClient, Breach, breach
from reports.judgement.clients.assignments import COOPERATIVE
from reports.judgement.clients.client_answers import (
    SEEN_MS,
    Answer,
    Client,
    Fits,
    Waiting,
    described,
    in_words,
    later,
    share,
)
from reports.judgement.clients.client_rules import COMMITS_ON, OWNS_ALONE, Rule, about_client
from reports.judgement.clients.offsets import Offsets, Stored, stored
from reports.judgement.clients.owners import Owners
from reports.judgement.clients.unanswered import Unanswered
from reports.judgement.clients.whole_history import WholeHistory
from reports.judgement.log.parsing import ARRIVAL_ERROR_MS
from reports.judgement.run.deleted_topics import Deletions
from reports.judgement.run.deliveries import NOTHING_HELD, Deliveries, InOrder
from reports.judgement.run.history import ClientEvent

Json = dict[str, Any]
Request = tuple[ObservedRequest, int | None, float]
"""A request, its error code, and when it arrived by its line, in ms."""
Known = tuple[Request, Stored | None, int | None]
"""A request, what it stored if it is an OffsetCommit, and its error or one of a partition's."""

CLIENTS = "group STRING, name STRING, count LONG"
"""How much of each kind was compared, and what is counted beside it (`Clients.counts`)."""

LOOKED_FOR_MS = 2_000.0
"""How long after an event its answer is looked for before the event is judged."""
UNLOGGED_MS = 2_000.0
"""How long after the journal announces a fault on a broker a client may tell of what that broker
answered, and never logged."""
TAIL_MS = 5_000.0
"""How long before its end a client may be answered what it does not report any more: closing takes
that long where a JoinGroup waits. While it ends it reports nothing, and on a busy machine that
takes longer: 5,096 ms were seen."""
GOES_ON_MS = 1_000.0
"""How long after an answer that fences it a client may be answered something else."""
UNDELIVERED = "undelivered"
"""Counts the answers that never reached their client, as the tap's lines have it."""
TWICE = "told_twice"
"""Counts the events that stand a second time in the history: a file that was altered."""
WELL_KNOWN = ("librdkafka", "librdkafka-process", "java")
"""The clients that are known to tell of all they are answered, truly; of others that shows nothing
about brokers."""
OUT = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID)
"""The answers that say to a member that it is out of its generation."""


@dataclass
class Clients:
    """Compares the events and the requests of one group, in order of time, as they come in.

    `outages` are faults on brokers. What brokers answered alone is judged without events, too.
    """

    outages: Sequence[Outage] = ()
    has_history: bool = True
    """Whether events may come at all."""
    members: Mapping[str, str] = field(default_factory=dict)
    """The kinds of the clients that a history has to have, by their names."""
    deliveries: Deliveries = NOTHING_HELD
    """The answers that the tap did not hand to clients at once."""
    deleted: Deletions = field(default_factory=dict)
    """The topics that faults delete."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many events were compared, by their names, and what `Owners` and `Offsets` count."""
    about_clients: list[Json] = field(default_factory=list)
    """Rows of `CLIENT_FINDINGS`."""
    _found: list[Json] = field(default_factory=list)
    _clients: dict[str, Client] = field(default_factory=lambda: defaultdict(Client))
    _assignors: dict[int, str] = field(default_factory=dict)
    _pending: list[tuple[float, int, ClientEvent | Known]] = field(default_factory=list)
    _number: int = 0
    _last: ClientEvent | None = None
    _unanswered: Unanswered = field(default_factory=Unanswered)

    def __post_init__(self) -> None:
        """Begin without owners and offsets."""
        self._owners = Owners(self.counts)
        self._offsets = Offsets(self.counts, self._is_well_known, self.deleted)
        self._whole = WholeHistory(self.members)
        self._handed_on = InOrder(self.deliveries)

    def add(
        self, requests: Iterable[Request], events: Iterable[ClientEvent], known_ms: float
    ) -> list[Json]:
        """Take requests and events; return rows of `BREACHES`, without the group.

        Whatever comes in later happens after `known_ms`.
        """
        for request in requests:
            seen, error, arrived_ms = request
            kept = None
            if seen.api == "OFFSET_COMMIT":
                kept, error = stored(seen)
                self._about(COMMITS_ON, self._offsets.committed(seen, kept, error))
            elif seen.api == "SYNC_GROUP" and error == 0:
                self._offsets.assigned(seen, share(seen))
            if self.has_history:
                self._unanswered.add(seen)
                self._whole.sent(seen, arrived_ms)
            if self.has_history and (kept or error or seen.api in HELD_APIS):
                delivery = self._handed_on.of(seen)
                if delivery is None:
                    self._push(seen.answered_ms, (request, kept, error))
                elif delivery.at_ms is None:
                    self.counts[UNDELIVERED] += 1
                else:
                    held = replace(seen, answered_ms=max(seen.answered_ms, delivery.at_ms))
                    self._push(held.answered_ms, ((held, *request[1:]), kept, error))
        events = list(self._once(events))
        self._whole.reported(events)
        for event in events:
            self._push(event.at_ms + LOOKED_FOR_MS, event)
        self._until(known_ms)
        return self._taken()

    def end(self) -> list[Json]:
        """Judge what is left; return rows as `add`."""
        self._until(inf)
        for client in self._clients.values():
            self._over(client)
        self._about(OWNS_ALONE, self._owners.end())
        self._found += self._whole.rows()
        return self._taken()

    def _once(self, events: Iterable[ClientEvent]) -> Iterator[ClientEvent]:
        for event in events:
            if event == self._last:
                self.counts[TWICE] += 1
            else:
                yield event
            self._last = event

    def _push(self, at_ms: float, what: ClientEvent | Known) -> None:
        self._number += 1
        heappush(self._pending, (at_ms, self._number, what))

    def _until(self, known_ms: float) -> None:
        while self._pending and self._pending[0][0] <= known_ms:
            _, _, what = heappop(self._pending)
            if isinstance(what, ClientEvent):
                self._saw(what)
            else:
                self._answered(*what)

    def _taken(self) -> list[Json]:
        found, self._found = self._found, []
        return found

    # what brokers say

    def _answered(self, request: Request, kept: Stored | None, error: int | None) -> None:
        seen, _, arrived_ms = request
        client, response = self._clients[seen.client_id], seen.response_fields
        # a line that may have been written late makes its answer later than it was
        late_ms = max(0.0, arrived_ms - ARRIVAL_ERROR_MS - seen.earliest_ms)
        answer = Answer(seen.answered_ms, seen.answered_ms - late_ms, seen)
        if seen.api == "JOIN_GROUP":
            client.joined_ms = seen.answered_ms
            if response.get("memberId"):
                client.given(response["memberId"])
            if error == 0:
                self._assignors[response["generationId"]] = response.get("protocolName") or ""
                self._owners.joined(seen)
        elif seen.api == "SYNC_GROUP" and error == 0:
            client.answers["assigned"].add(answer._replace(tells=share(seen)))
        elif kept:
            # of partitions that were refused clients tell differently
            tells = None if error else len(kept)
            client.answers["committed"].add(answer._replace(tells=tells))
        if error == Error.FENCED_INSTANCE_ID and seen.api != "LEAVE_GROUP":
            client.answers["fenced"].add(answer)
        if error in OUT:
            self._owners.answered(seen.client_id, seen.answered_ms)

    # what clients say

    def _saw(self, event: ClientEvent) -> None:
        client, owners = self._clients[event.client], self._owners
        if event.event == "created":
            self._begin(client, event)
        elif event.event == "unanswered":
            self._found += self._unanswered.reported(event)
        elif event.event in ("revoked", "lost"):
            self._about(OWNS_ALONE, owners.gave_up(event, event.partitions))
        elif event.event == "assigned":
            answer = self._assigned(client, event)
            owners.assigned(event, answer.seen if answer else None)
        elif event.event == "committed":
            count = event.offsets
            what = f"an OFFSET_COMMIT of {event.client} that stored {count} offsets"
            if answer := self._answer_to(client, event, lambda of: of.tells in (None, count), what):
                self._about(OWNS_ALONE, owners.committed(event, answer.seen))
        else:
            if event.event == "fenced":
                what = f"an answer FENCED_INSTANCE_ID to {event.client}"
                self._answer_to(client, event, lambda _: True, what)
                client.answers["fenced"].answers.clear()
            client.ended_ms, client.gone_ms = client.ended_ms or event.at_ms, event.at_ms
            self._about(OWNS_ALONE, owners.gave_up(event, frozenset(owners.held[event.client])))

    def _begin(self, client: Client, event: ClientEvent) -> None:
        """Begin with a new process; what is left is what its last one was kept."""
        self._over(client, event.at_ms)
        client.ended_ms = client.gone_ms = None
        client.connections.clear()
        held = frozenset(self._owners.held[event.client])
        self._about(OWNS_ALONE, self._owners.gave_up(event, held))

    def _over(self, client: Client, until_ms: float = inf) -> None:
        """Judge what a process leaves: events without an answer, answers that it never reported."""
        ended_ms = nan if client.ended_ms is None else client.ended_ms
        gone_ms = nan if client.gone_ms is None else client.gone_ms
        for name, kept in client.answers.items():
            waiting = [one for one in kept.waiting if not one.unlogged]
            # as many answers as events: clocks may differ, and no more is proven
            proven = len(waiting) > len(kept.answers)
            for event, _, what, _ in waiting:
                self._disagree(event, what, "there is none at that time", proven=proven)
            kept.waiting.clear()
            old = [
                one
                for one in kept.answers
                if one.has_to_be_reported
                and (
                    one.at_ms < ended_ms - TAIL_MS
                    or gone_ms + TAIL_MS < one.seen.earliest_ms < one.at_ms <= until_ms
                )
            ]
            reports = name == "assigned" or name in client.said
            if old and (reports or self._reports(old[0])) and name != "fenced":
                self._unreported(name, old[0], proven=False)
            kept.answers = [one for one in kept.answers if one.at_ms > until_ms]

    def _reports(self, commit: Answer) -> bool:
        """Whether a commit is of a client that reports its commits; Java's do not."""
        return self.members.get(commit.seen.client_id) == "librdkafka"

    def _assigned(self, client: Client, event: ClientEvent) -> Answer | None:
        whole = event.partitions | self._owners.held[event.client]

        def fits(answer: Answer) -> bool:
            assignor = self._assignors.get(answer.seen.request["generationId"])
            mine = whole if assignor in COOPERATIVE else event.partitions
            return answer.tells is None or answer.tells == mine

        what = f"a SYNC_GROUP of {event.client} with {in_words(event.partitions)}"
        answer = self._answer_to(client, event, fits, what)
        if answer:
            client.answers["assigned"].reported(answer)
        if answer and event.member_id is not None and event.member_id not in client.ids:
            what = f"a JOIN_GROUP of {event.client} with the member id {event.member_id}"
            # a broker that was killed may have given it, and never logged that
            since_ms = client.joined_ms - UNLOGGED_MS
            killed = any(since_ms < one.from_ms < event.at_ms for one in self.outages)
            self._disagree(event, what, "there is none", answer, proven=not killed)
            client.given(event.member_id)
        return answer

    def _answer_to(
        self, client: Client, event: ClientEvent, fits: Fits, what: str
    ) -> Answer | None:
        """Return the answer that an event tells of. `what` says what it would be."""
        kept, commits = client.answers[event.event], event.event == "committed"
        self.counts[event.event] += 1
        client.said.add(event.event)
        answer, passed = kept.take(event.at_ms, fits)
        if answer is None:
            others = [one for one in kept.answers if one.early_ms <= event.at_ms + SEEN_MS]
            unlogged = self._unlogged(event)
            if unlogged or not others:
                kept.waiting.append(Waiting(event, fits, what, unlogged))
                return None
            last = others[-1]
            del kept.answers[: len(others)]
            self._disagree(event, what, described(last), last, proven=True)
            return None
        if answer.early_ms > event.at_ms + SEEN_MS:
            self._disagree(event, what, later(event, answer), answer)
        if event.event == "fenced":
            return answer
        for one in passed:
            same = one.seen.connection == answer.seen.connection and one.has_to_be_reported
            if same and not (commits and self._is_resent(one, client)):
                # it has arrived; but a client may pass an assignment over that is no more valid
                self._unreported(event.event, one, proven=commits)
        if commits:
            client.last_commit = answer.seen.request["topics"]
        # an answer on another connection may be one to the process before, which is dead
        client.connections.add(answer.seen.connection)
        fences = client.answers["fenced"].answers
        to_it = (one for one in fences if one.seen.connection in client.connections)
        fenced = next((one for one in to_it if one.at_ms < answer.at_ms - GOES_ON_MS), None)
        if fenced and self._is_well_known(event.client):
            fences.clear()
            what = f"{event.client} ends once an answer fences it"
            self._disagree(
                event, what, f"it goes on after request {fenced.seen.id}", answer, proven=True
            )
        return answer

    def _is_resent(self, commit: Answer, client: Client) -> bool:
        """Whether a commit may be the last reported one, sent again as its connection was lost.

        The client reports both as one. Seen on 3.9.1 when the coordinator was killed.
        """
        again = commit.seen.request["topics"] == client.last_commit
        return again and any(outage.has(commit.at_ms) for outage in self.outages)

    def _unlogged(self, event: ClientEvent) -> bool:
        """Whether the broker that answered may not have logged it: a fault had it down then."""
        return any(abs(event.at_ms - one.from_ms) <= UNLOGGED_MS for one in self.outages)

    def _about(self, rule: Rule, rows: Iterable[AboutClient]) -> None:
        """Take rows about what clients chose: of others than well-known ones they show a `rule`."""
        for client, row in rows:
            if self._is_well_known(client):
                self._found.append(row)
            else:
                self.about_clients.append(about_client(client, rule, row))

    def _is_well_known(self, client: str) -> bool:
        return self.members.get(client, WELL_KNOWN[0]) in WELL_KNOWN

    def _disagree(
        self,
        event: ClientEvent,
        expected: str,
        observed: str,
        answer: Answer | None = None,
        *,
        proven: bool = False,
    ) -> None:
        proven &= self._is_well_known(event.client)
        row = breach(
            Breach.DISAGREE,
            event.at_ms,
            f"the client says {event.event}, so there is {expected}",
            observed,
            shown_by=answer.seen if answer else None,
            history=event.place,
            proven=proven,
        )
        self._found.append(row)

    def _unreported(self, name: str, answer: Answer, *, proven: bool) -> None:
        if not self._is_well_known(answer.seen.client_id):
            return
        row = breach(
            Breach.DISAGREE,
            answer.at_ms,
            f"{answer.seen.client_id} says {name}",
            f"{described(answer)}, and the client says nothing of it",
            shown_by=answer.seen,
            proven=proven,
        )
        self._found.append(row)
