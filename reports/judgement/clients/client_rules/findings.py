"""All rules on clients by name, those judged elsewhere, and findings of one group as rows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from operator import attrgetter

from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import Breach
from reports.judgement.clients import foreign_commits
from reports.judgement.clients.client_answers import as_delivered, heard
from reports.judgement.clients.client_rules import heartbeats, identity, joining, leaving
from reports.judgement.clients.client_rules.client_processes import (
    CREATED,
    Client,
    ClientProcess,
    Known,
    Rule,
)
from reports.judgement.clients.client_rules.shown import of_requests, often
from reports.judgement.clients.offsets import stored
from reports.judgement.rows import Json
from reports.judgement.run.deliveries import InOrder
from reports.judgement.run.history import ENDS, ClientEvent
from reports.judgement.run_context import RunContext

CLIENT_FINDINGS = """
    group STRING, client_id STRING, rule STRING, at_ms DOUBLE, what STRING, requests STRING,
    shown STRING, from_ms DOUBLE, until_ms DOUBLE, on_time BOOLEAN
"""
"""One row a rule that a process of a client breaks; `requests` are those that show it, as
`broker:line`, comma-separated. `from_ms` to `until_ms` is the time judged:
from the arrival of the first to the answer of the last, unless the rule names another. `shown` is
a JSON list of what each of them says (`_said`), or null where only their place is known. What rests
`on_time` proves nothing of a time in which the machine was busy."""
OWNS_ALONE = Rule(
    "owns-alone",
    "A member gives up a partition before another is assigned it, or once it is out.",
    "the consumer protocol; KIP-429",
    "Give a partition up in the rebalance listener, before the next JoinGroup or Heartbeat.",
    on_time=True,
)  # a rule about what clients print, which `judgement.clients.ownership` judges
COMMITS_ON = Rule(
    "commits-on",
    "A member goes on from the offset of its partition that was committed last.",
    "the consumer protocol: an owner fetches the committed offset and goes on from it",
    "Commit forward only, what is processed and still owned, and begin a new partition at its"
    " committed offset.",
)  # a rule about what clients commit, which `judgement.clients.offsets` judges
COMMITS_WHAT_IT_OWNS = Rule(
    foreign_commits.RULE,
    "A member commits no partition that the assignment of its generation gives to another.",
    "the consumer protocol: a partition has one owner; ConsumerCoordinator.onJoinPrepare commits"
    " before the partitions are given up",
    mend="Forget the positions of partitions in the callback that revokes them, and commit none of"
    " them after it.",
    on_time=True,
    about="application",
)  # a rule about what clients commit, which `judgement.clients.foreign_commits` judges
CAUSES_NO_REBALANCE = Rule(
    "causes-no-rebalance",
    "A member that no fault hits neither leaves nor lets its session expire, nor joins again.",
    "the consumer protocol: each of these makes every member of the group join again",
    mend="See in the client's own log why it left, was silent or joined again at these times; often"
    " its application polls too rarely (max.poll.interval.ms) or ends.",
    on_time=True,
    about="application",
)  # a rule about what happens to groups, which `judgement.causes` judges
AT_LEAST_ONCE = "at-least-once delivery (KafkaConsumer's documentation: Offsets and Position)"
_rule = partial(Rule, about="application")
RECORD_RULES: Mapping[str, Rule] = {
    "lost": _rule(
        "loses-no-record",
        "A member commits an offset once all records below it are processed.",
        AT_LEAST_ONCE,
        "Commit after the records are processed, not before, and no further than they are: with"
        " several threads, up to the oldest record that is not done.",
    ),
    "again": _rule(
        "begins-at-its-commit",
        "A member processes no record again that was committed past before it got the partition.",
        AT_LEAST_ONCE,
        "Begin each assigned partition at its committed offset; keep no position of an earlier"
        " assignment, and do not seek back.",
    ),
    "out_of_order": _rule(
        "keeps-order",
        "A member processes the records of a partition in the order of their offsets.",
        "KafkaConsumer's documentation: records of a partition are in order",
        "Process each partition by one thread at a time, and skip no record to come back to it.",
    ),
    "after_given_up": _rule(
        "stops-when-given-up",
        "A member processes no record of a partition that it gave up, or that is another's by now.",
        "ConsumerRebalanceListener: after onPartitionsRevoked, onPartitionsLost they are another's",
        "Finish or drop the records of a partition before the rebalance listener returns, and"
        " process none once the group says that the member is out.",
        on_time=True,
    ),
}
"""The rule that an application breaks with its records, by `what` of the table `records`, which
`judgement.clients.records` judges."""
_OF_BREACH = {Breach.OWNED_TWICE: OWNS_ALONE, Breach.OFFSET_WENT_BACK: COMMITS_ON}
_JUDGED_ELSEWHERE = (
    OWNS_ALONE, COMMITS_ON, COMMITS_WHAT_IT_OWNS, CAUSES_NO_REBALANCE, *RECORD_RULES.values()
)  # fmt: skip
CLIENT_RULES: Mapping[str, Rule] = {
    one.name: one
    for module in (joining, identity, heartbeats, leaving)
    for one in vars(module).values()
    if isinstance(one, Rule)
} | {one.name: one for one in _JUDGED_ELSEWHERE}  # all rules by their names


_span = attrgetter("from_ms", "until_ms")


@dataclass(slots=True)
class ClientRules:
    """Judges the clients of one group of a run; requests and events come in order of time.

    While faults had a client down, or its wire or brokers broken, and while a broker stood still,
    it is excused for what it does not do.
    """

    context: RunContext
    group: str = ""
    _in_order: InOrder = field(init=False)
    _clients: dict[str, Client] = field(default_factory=lambda: defaultdict(Client))

    def __post_init__(self) -> None:
        self._in_order = InOrder(self.context.deliveries)

    def add(
        self,
        requests: Iterable[ObservedRequest],
        error_codes: Iterable[int | None],
        events: Iterable[ClientEvent] = (),
        unanswered: Sequence[ObservedRequest] = (),
    ) -> None:
        """Take requests with their error codes, events, and requests that were never answered."""
        if self.group in self.context.scripted:
            return  # it breaks rules on purpose
        sent = [*zip(requests, error_codes, strict=True), *((one, None) for one in unanswered)]
        if unanswered:
            sent.sort(key=lambda one: one[0].at_ms)
        for answered, code in sent:
            if self._in_order.is_copy(answered):
                continue
            # it sent what it sent, but cannot have disregarded what it never learned
            delivery = self.context.deliveries.of(answered)
            seen = as_delivered(answered, delivery)
            error = stored(seen)[1] if seen.api == "OFFSET_COMMIT" else heard(code, delivery)
            self._clients[seen.client_id].add(seen, error if seen.answered_ms < inf else None)
        for event in events:
            if event.event in (CREATED, *ENDS):
                self._clients[event.client].events.append(event)

    def rows(self) -> Iterator[Json]:
        """Yield rows of `CLIENT_FINDINGS`, without the group."""
        group: list[ClientProcess] = []
        for name, client in sorted(self._clients.items()):
            group += client.processes(name, self._known(name), group)
        for process in group:
            for rule in CLIENT_RULES.values():
                for one in rule.breaks(process):
                    yield {
                        "client_id": process.name,
                        "rule": rule.name,
                        "at_ms": one.at_ms,
                        "what": one.what,
                        **of_requests(one.shown, one.judged),
                        "on_time": rule.on_time and not one.by_order,
                    }

    def _known(self, name: str) -> Known:
        """Return what is known of a client beside what it sends."""
        context, mine = self.context, (self.group, name)
        acts = [one for one in context.acts if one.group == self.group and name in one.clients]
        return Known(
            excused=[
                *(_span(one) for one in context.absences if (one.group, one.client) == mine),
                *map(_span, context.outages),
                *(_span(one) for one in acts if one.freezes or one.excuses),
            ],
            stalls=[_span(one) for one in context.stalls if one.proven],
            acted=[*map(_span, acts)],
            given_id=any(one.gives_id for one in acts),
            heartbeat_ms=context.heartbeat_ms.get(name),
        )


def of_breaches(client: str, rows: Sequence[Json]) -> Json:
    """Return breaches of a kind that show what a client does as one finding about it."""
    row, rule = rows[0], _OF_BREACH[rows[0]["kind"]]
    more = f"; it did so {often(len(rows))}" if len(rows) > 1 else ""
    return {
        "client_id": client,
        "rule": rule.name,
        "at_ms": row["at_ms"],
        "what": row["observed"] + more,
        "requests": f"{row['broker']}:{row['line']}",
        "shown": None,
        "from_ms": row["at_ms"],
        "until_ms": row["at_ms"],
        "on_time": rule.on_time,
    }
