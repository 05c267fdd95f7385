"""Faults on members against brokers: a client that the journal has down sends nothing."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from operator import attrgetter
from typing import Any, NamedTuple

from reference_coordinator.replay import ObservedRequest, Stall
from reference_coordinator.replay.lateness import NEVER_LATE, Lateness
from reports.judgement.breaches import Breach, breach

Json = dict[str, Any]

DOWN_MS = 500.0
"""How long after it was stopped a request of a client may arrive: it was in flight, or its line was
written late. `chaos` allows as much. Measured on 132 restarts and kills: the last one arrives 2 ms
before the journal has the member down. A broker that stands still reads it later by that."""
UP_MS = 50.0
"""How much earlier than the journal has it a fault may end: its entries are written between."""
DOWN = ("member.restart", "member.kill")
"""The faults that take a member down, and start it again after `down_for_ms`."""
DUPLICATE = "member.duplicate-instance"
"""The fault that starts a second client, `duplicate`, and ends it."""


class Absence(NamedTuple):
    """A time in which a client of a group is down; `what` says by which fault."""

    group: str
    client: str
    from_ms: float
    until_ms: float
    what: str


_FROM_MS = attrgetter("from_ms")


def absences(journal: Iterable[Mapping[str, Any]]) -> tuple[Absence, ...]:
    """Return when the entries of a journal have clients down.

    A member is started again no sooner than `down_for_ms` after it was down. A run that is ended
    early heals sooner: nothing is known then. A duplicate is down before its first fault, between
    two, and after its last one.
    """
    faults: dict[str, dict[str, Mapping[str, Any]]] = {}
    for entry in journal:
        if (fault := entry.get("fault_id")) is not None:
            faults.setdefault(fault, {})[entry["event"]] = entry
    found, duplicates = list[Absence](), dict[tuple[str, str], Absence]()
    for name, of in faults.items():
        intent, injected, healed = map(of.get, ("intent", "injected", "healed"))
        if intent is None or injected is None or not intent.get("group"):
            continue
        args, group = intent.get("args") or {}, intent["group"]
        ended_ms = healed["at_ms"] if healed and healed["healed"] else inf
        what = f"fault {name} ({intent['fault']})"
        if intent["fault"] in DOWN and type(down_for_ms := args.get("down_for_ms")) is int:
            until_ms = injected["at_ms"] + down_for_ms
            if ended_ms >= until_ms - UP_MS:
                from_ms = injected["at_ms"]
                down = f"{what} had it down from {from_ms} on"
                found.append(Absence(group, intent["target"], from_ms, until_ms - UP_MS, down))
        elif intent["fault"] == DUPLICATE and isinstance(client := args.get("duplicate"), str):
            before = duplicates.get((group, client))
            down = f"{what} starts it at {intent['at_ms']}" if before is None else before.what
            from_ms = -inf if before is None else before.from_ms
            found.append(Absence(group, client, from_ms, intent["at_ms"] - UP_MS, down))
            ended = f"{what} ended it at {ended_ms:.0f}"
            duplicates[group, client] = Absence(group, client, ended_ms, inf, ended)
    return (*found, *duplicates.values())


@dataclass(slots=True)
class Absent:
    """The absences of one group's clients, and those that requests contradict.

    `stalls` are the times in which brokers stood still, or may have.
    """

    absences: Sequence[Absence] = ()
    stalls: Sequence[Stall] = ()
    _left: dict[str, list[Absence]] = field(default_factory=lambda: defaultdict(list))
    _lateness: dict[str, Lateness] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sort absences by client, stalls by broker."""
        for one in sorted(self.absences, key=_FROM_MS):
            self._left[one.client].append(one)
        for broker in {stall.broker for stall in self.stalls}:
            mine = (stall for stall in self.stalls if stall.broker == broker)
            self._lateness[broker] = Lateness.of(mine)

    def add(self, requests: Iterable[tuple[ObservedRequest, float]]) -> Iterator[Json]:
        """Take requests, with their arrival in ms; yield rows of `BREACHES`, without the group.

        Of the requests in one absence the first counts.
        """
        for seen, arrived_ms in requests:
            if seen.client_id not in self._left:
                continue
            lateness = self._lateness.get(seen.broker, NEVER_LATE)
            left = self._left[seen.client_id]
            begun = bisect_left(left, seen.earliest_ms, key=_FROM_MS)
            for place in reversed(range(begun)):
                one = left[place]
                if arrived_ms >= one.until_ms:
                    break  # and so did those before
                if lateness.latest(one.from_ms, DOWN_MS) < seen.earliest_ms:
                    del left[place]
                    yield breach(
                        Breach.SENT_WHILE_DOWN,
                        arrived_ms,
                        f"no request of {one.client}: {one.what}",
                        f"{seen.api} of {one.client}",
                        shown_by=seen,
                    )
