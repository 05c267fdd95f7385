"""Clients against brokers: what clients say that they saw, and what brokers say that they answered.

A client that says `assigned` was answered a SyncGroup with just these partitions; `fenced`, an
answer FENCED_INSTANCE_ID; `committed`, an OffsetCommit that stored as many offsets. A client tells
of each answer once, in the order of the answers. A difference is a breach of the kind DISAGREE.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import cast

from kafka_protocol.apis import HELD_APIS
from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import AboutClient, Breach, breach
from reports.judgement.clients.assignments import COOPERATIVE
from reports.judgement.clients.client_answers import (
    Answer,
    Client,
    Fits,
    Tells,
    Unanswered,
    Waiting,
    as_delivered,
    described,
    expected,
    heard,
    share,
)
from reports.judgement.clients.client_rules.findings import of_breaches
from reports.judgement.clients.offsets import Offsets, stored
from reports.judgement.clients.ownership import Owners
from reports.judgement.rows import Json
from reports.judgement.run.deliveries import InOrder
from reports.judgement.run.history import OF_RECORDS, ClientEvent
from reports.judgement.run_context import RunContext
from reports.timing import ARRIVAL_ERROR_MS, GOES_ON_MS, LOOKED_FOR_MS, SEEN_MS, UNLOGGED_MS

Request = tuple[ObservedRequest, int | None, float]
"""A request, its error code, and when it arrived by its line, in ms."""

CLIENTS = "group STRING, name STRING, count LONG"
"""How much of each kind was compared, and what is counted beside it (`Clients.counts`)."""

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
    """Compares the events and the requests of one group of a run, as they come in, in order.

    What brokers answered alone is judged without events, too.
    """

    context: RunContext
    counts: Counter[str] = field(default_factory=Counter)
    """How many events were compared, by their names, and what `Owners` and `Offsets` count."""
    _about_clients: dict[tuple[str, str], list[Json]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By client and kind, the breaches that show what clients chose."""
    _found: list[Json] = field(default_factory=list)
    _clients: dict[str, Client] = field(default_factory=lambda: defaultdict(Client))
    _assignors: dict[int, str] = field(default_factory=dict)
    _pending: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    """A heap of what is judged once everything up to a time, in ms, is known; and a number."""
    _numbers: Iterator[int] = field(default_factory=count)
    _last: ClientEvent | None = None
    _unanswered: Unanswered = field(default_factory=Unanswered)

    def __post_init__(self) -> None:
        self.owners = Owners(self.counts)
        self.offsets = Offsets(self.context, self._is_well_known, self.counts)
        self._handed_on = InOrder(self.context.deliveries)

    def add(
        self,
        requests: Iterable[Request],
        events: Iterable[ClientEvent],
        known_ms: float,
        partition: int | None = None,
    ) -> list[Json]:
        """Take requests and events; return rows of `BREACHES`, without the group.

        Whatever comes in later happens after `known_ms`. `partition` holds the group's offsets.
        """
        for seen, code, arrived_ms in requests:
            if seen.api == "OFFSET_COMMIT":
                self._about(self.offsets.committed(seen, partition))
            elif seen.api == "SYNC_GROUP" and code == 0:
                self.offsets.assigned(seen, share(seen))
            if self.context.has_history:
                self._unanswered.add(seen)
                self._clients[seen.client_id].sent(seen, arrived_ms)
                # a line that may have been written late makes its answer later than it was
                late_ms = max(0.0, arrived_ms - ARRIVAL_ERROR_MS - seen.earliest_ms)
                self._hand_on(seen, code, late_ms)
        for event in events:
            # a program tells times in whole ms: it may commit twice in one
            if event == self._last and self._is_well_known(event.client):
                self.counts[TWICE] += 1
                continue
            self._last = event
            if event.event in OF_RECORDS:  # no answer is about records
                continue
            self._push(event.at_ms + LOOKED_FOR_MS, partial(self._saw, event))
        return self._until(known_ms)

    def end(self) -> list[Json]:
        """Judge what is left; return rows as `add`."""
        found = self._until(inf)
        for name, client in sorted(self._clients.items()):
            self._over(client)
            if name in self.context.members:
                self._found += client.missing(name)
        self._about(self.owners.end())
        return found + self._found

    def _push(self, at_ms: float, judge: Callable[[], None]) -> None:
        heappush(self._pending, (at_ms, next(self._numbers), judge))

    def _until(self, known_ms: float) -> list[Json]:
        """Judge what is pending; return the rows that were found since the last time."""
        while self._pending and self._pending[0][0] <= known_ms:
            heappop(self._pending)[-1]()
        found, self._found = self._found, []
        return found

    def _about(self, rows: Iterable[AboutClient]) -> None:
        """Take rows about what clients chose: of others than well-known ones they are findings."""
        for client, row in rows:
            if self._is_well_known(client):
                self._found.append(row)
            else:
                self._about_clients[client, row["kind"]].append(row)

    @property
    def about_clients(self) -> list[Json]:
        """The rows of `CLIENT_FINDINGS`, without the group."""
        return [of_breaches(client, rows) for (client, _), rows in self._about_clients.items()]

    def _is_well_known(self, client: str) -> bool:
        return self.context.members.get(client, WELL_KNOWN[0]) in WELL_KNOWN

    # what brokers say

    def _hand_on(self, answered: ObservedRequest, code: int | None, late_ms: float) -> None:
        """Judge an answer once its client has got it, as it got it."""
        delivery = self._handed_on.of(answered)
        seen, error = as_delivered(answered, delivery), heard(code, delivery)
        if seen.answered_ms == inf:
            self.counts[UNDELIVERED] += 1
            return
        told_by, tells = "", cast(Tells, None)
        if seen.api == "OFFSET_COMMIT":
            kept, error = stored(seen)
            # of partitions that were refused clients tell differently
            told_by, tells = "committed" if kept else "", None if error else len(kept)
        elif seen.api == "SYNC_GROUP" and error == 0:
            told_by, tells = "assigned", share(seen)
        if told_by or error or seen.api in HELD_APIS:
            answer = Answer(seen, late_ms, tells)
            self._push(seen.answered_ms, partial(self._answered, answer, error, told_by))

    def _answered(self, answer: Answer, error: int | None, told_by: str) -> None:
        seen, response = answer.seen, answer.seen.response_fields
        client = self._clients[seen.client_id]
        if seen.api == "JOIN_GROUP":
            client.joined_ms = seen.answered_ms
            if response.get("memberId"):
                client.given(response["memberId"])
            if error == 0:
                self._assignors[response["generationId"]] = response.get("protocolName") or ""
                self.owners.joined(seen)
        if told_by:
            client.answers[told_by].add(answer)
        if error == Error.FENCED_INSTANCE_ID and seen.api != "LEAVE_GROUP":
            client.answers["fenced"].add(answer)
        if error in OUT:
            self.owners.answered(seen.client_id, seen.answered_ms)

    # what clients say

    def _saw(self, event: ClientEvent) -> None:
        client, owners = self._clients[event.client], self.owners
        if event.event == "unanswered":
            self._found += self._unanswered.reported(event)
        elif event.event in ("revoked", "lost"):
            self._about(owners.gave_up(event))
        elif event.event == "assigned":
            answer = self._assigned(client, event)
            owners.assigned(event, answer.seen if answer else None)
        elif event.event == "committed":
            stored_so_many = lambda of: of.tells in (None, event.offsets)
            if answer := self._answer_to(client, event, stored_so_many):
                self._about(owners.committed(event, answer.seen))
        else:  # its process begins or ends: it owns nothing any more
            if event.event == "created":
                self._over(client, event.at_ms)
                client.begins(event)
            else:
                if event.event == "fenced":
                    self._answer_to(client, event, lambda _: True)
                    client.answers["fenced"].answers.clear()
                client.ends(event.at_ms)
            self._about(owners.gave_up(event))

    def _over(self, client: Client, until_ms: float = inf) -> None:
        """Judge what a process leaves: events without an answer, answers that it never reported.

        What came later is the next one's.
        """
        for name, kept in client.answers.items():
            waiting = [one for one in kept.waiting if not one.unlogged]
            # as many answers as events: clocks may differ, and no more is proven
            proven = len(waiting) > len(kept.answers)
            for one in waiting:
                none = "there is none at that time"
                self._disagree(one.event, expected(one.event), none, proven=proven)
            kept.waiting.clear()
            old = next((one for one in kept.answers if client.had_to_report(one, until_ms)), None)
            # clients differ in what they report: Java's report no commits
            if old and (
                name == "assigned"
                or name in client.said
                or self.context.members.get(old.seen.client_id) == "librdkafka"
            ):
                self._unreported(name, old, proven=False)
            kept.answers = [one for one in kept.answers if one.at_ms > until_ms]

    def _assigned(self, client: Client, event: ClientEvent) -> Answer | None:
        whole = event.partitions.union(self.owners.held[event.client])

        def fits(answer: Answer) -> bool:
            assignor = self._assignors.get(answer.seen.request["generationId"])
            mine = whole if assignor in COOPERATIVE else event.partitions
            return answer.tells in (None, mine)

        answer = self._answer_to(client, event, fits)
        if answer:
            client.answers["assigned"].reported(answer)
        if answer and event.member_id is not None and event.member_id not in client.ids:
            what = f"a JOIN_GROUP of {event.client} with the member id {event.member_id}"
            # a broker that was killed may have given it, and never logged that
            since_ms = client.joined_ms - UNLOGGED_MS
            killed = any(since_ms < one.from_ms < event.at_ms for one in self.context.outages)
            self._disagree(event, what, "there is none", answer, proven=not killed)
            client.given(event.member_id)
        return answer

    def _answer_to(self, client: Client, event: ClientEvent, fits: Fits) -> Answer | None:
        """Return the answer that an event tells of."""
        what = expected(event)
        kept, commits = client.answers[event.event], event.event == "committed"
        self.counts[event.event] += 1
        client.said.add(event.event)
        answer, passed = kept.take(event.at_ms, fits)
        if answer is None:
            others = [one for one in kept.answers if one.early_ms <= event.at_ms + SEEN_MS]
            # the broker that answered may not have logged it: a fault had it down then
            unlogged = any(
                abs(event.at_ms - one.from_ms) <= UNLOGGED_MS for one in self.context.outages
            )
            if unlogged or not others:
                kept.waiting.append(Waiting(event, fits, unlogged))
            else:
                del kept.answers[: len(others)]
                self._disagree(event, what, described(others[-1]), others[-1], proven=True)
            return None
        if answer.early_ms > event.at_ms + SEEN_MS:
            later = f"it came {answer.at_ms - event.at_ms:.0f} ms later"
            self._disagree(event, what, later, answer)
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
            goes_on = f"it goes on after request {fenced.seen.id}"
            self._disagree(event, what, goes_on, answer, proven=True)
        return answer

    def _is_resent(self, commit: Answer, client: Client) -> bool:
        """Whether a commit may be the last reported one, sent again as its connection was lost.

        The client reports both as one. Seen on 3.9.1 when the coordinator was killed.
        """
        again = commit.seen.request["topics"] == client.last_commit
        return again and any(outage.has(commit.at_ms) for outage in self.context.outages)

    def _disagree(
        self, event: ClientEvent, what: str, observed: str, answer: Answer | None = None,
        *, proven: bool = False,
    ) -> None:  # fmt: skip
        row = breach(
            Breach.DISAGREE,
            event.at_ms,
            f"the client says {event.event}, so there is {what}",
            observed,
            shown_by=answer.seen if answer else None,
            history=event.place,
            proven=proven and self._is_well_known(event.client),
        )
        self._found.append(row)

    def _unreported(self, name: str, answer: Answer, *, proven: bool) -> None:
        if self._is_well_known(answer.seen.client_id):
            row = breach(
                Breach.DISAGREE,
                answer.at_ms,
                f"{answer.seen.client_id} says {name}",
                f"{described(answer)}, and the client says nothing of it",
                shown_by=answer.seen,
                proven=proven,
            )
            self._found.append(row)
