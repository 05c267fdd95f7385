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
from reports.timing import DOWN_MS, TAKEN_UP_MS, UP_MS

Json = dict[str, Any]

DOWN = ("member.restart", "member.kill", "member.pause", "members.scale")
"""The faults that take a member down or freeze it, for `down_for_ms`."""
DELAY, HOLD = "net.delay", "net.hold"
"""The faults on the wire by which a request reaches a broker late."""
DUPLICATE = "member.duplicate-instance"
"""The fault that starts a second client, `duplicate`, and ends it."""


class Absence(NamedTuple):
    """A time in which a client of a group is down; `what` says by which fault."""

    group: str
    client: str
    from_ms: float
    until_ms: float
    what: str
    held_ms: float = 0.0
    """How long the tap may hold what the client had sent by then, as a rule of it says."""


_FROM_MS = attrgetter("from_ms")


def absences(journal: Iterable[Mapping[str, Any]]) -> tuple[Absence, ...]:
    """Return when the entries of a journal have clients down.

    A member is started again no sooner than `down_for_ms` after it was down. A run that is ended
    early heals sooner: nothing is known then. A duplicate is down before its first fault, between
    two, and after its last one.
    """
    entries: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for entry in journal:
        if (fault := entry.get("fault_id")) is not None:
            entries[fault][entry["event"]] = entry
    faults = {
        name: of for name, of in entries.items() if "intent" in of and of["intent"].get("group")
    }
    found, duplicates = list[Absence](), dict[tuple[str, str], Absence]()
    for name, of in faults.items():
        if "injected" not in of:
            continue
        intent, from_ms = of["intent"], of["injected"]["at_ms"]
        args, group = intent.get("args") or {}, intent["group"]
        what = f"fault {name} ({intent['fault']})"
        if intent["fault"] in DOWN and type(down_for_ms := args.get("down_for_ms")) is int:
            until_ms = from_ms + down_for_ms - UP_MS
            if _ended_ms(of) >= until_ms:
                down = f"{what} had it down from {from_ms} on"
                found.append(Absence(group, intent["target"], from_ms, until_ms, down))
        elif intent["fault"] == DUPLICATE and isinstance(client := args.get("duplicate"), str):
            first = Absence(group, client, -inf, inf, f"{what} starts it at {intent['at_ms']}")
            before = duplicates.get((group, client), first)
            found.append(before._replace(until_ms=intent["at_ms"] - UP_MS))
            ended = f"{what} ended it at {_ended_ms(of):.0f}"
            duplicates[group, client] = Absence(group, client, _ended_ms(of), inf, ended)
    every = (*found, *duplicates.values())
    return tuple(one._replace(held_ms=_held_ms(one, faults.values())) for one in every)


def _ended_ms(of: Mapping[str, Mapping[str, Any]]) -> float:
    """Return when a fault was healed, of its entries by event; infinity if it was not."""
    return of["healed"]["at_ms"] if "healed" in of and of["healed"]["healed"] else inf


def _held_ms(down: Absence, faults: Iterable[Mapping[str, Mapping[str, Any]]]) -> float:
    """Return how long the tap may hold what a client had sent when it went down, by its rules."""
    longest_ms = 0.0
    for of in faults:
        intent, over_ms, most_ms = of["intent"], _ended_ms(of), inf
        mine = (intent["group"], intent["target"]) == (down.group, down.client)
        if intent["fault"] not in (DELAY, HOLD) or not mine or intent["at_ms"] > down.from_ms:
            continue
        if intent["fault"] == DELAY:
            args = intent.get("args") or {}
            times = (args.get("latency_ms"), args.get("jitter_ms"))
            most_ms = sum(one for one in times if type(one) is int)
            over_ms += most_ms
        longest_ms = max(longest_ms, min(most_ms, over_ms - down.from_ms))
    return longest_ms


@dataclass(slots=True)
class Absent:
    """The absences of one group's clients, and those that requests contradict.

    `stalls` are the times in which brokers stood still.
    """

    absences: Sequence[Absence] = ()
    stalls: Sequence[Stall] = ()
    _left: dict[str, list[Absence]] = field(default_factory=lambda: defaultdict(list))
    _lateness: dict[str, Lateness] = field(default_factory=dict)
    _turns: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By connection: when the first arrived of the requests that waited for their turn, one after
    another, and when the last was answered."""

    def __post_init__(self) -> None:
        for one in sorted(self.absences, key=_FROM_MS):
            self._left[one.client].append(one)
        for broker in {stall.broker for stall in self.stalls}:
            held_up = [stall for stall in self.stalls if stall.broker == broker]
            self._lateness[broker] = Lateness.of(held_up)

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
