"""Commits of partitions that the coordinator stored for another member of the same generation.

A member learns its share of a generation by SyncGroup. What it commits in that generation beside
its share is another member's if that one's share has it: a cooperative member may still commit what
it gives up, which no member of the generation has. Not judged is what it may have sent before it
knew its share, or while a fault had its wire broken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from kafka_protocol.bodies import generation_in
from kafka_protocol.consumer_protocol import Assignment
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.assignments import listed, named, read
from reports.judgement.clients.client_rules.shown import of_requests
from reports.judgement.run_context import RunContext
from reports.timing import LEARNED_MS, WIRE_LATE_MS

Json = dict[str, Any]
RULE = "commits-what-it-owns"
CERTAIN = 3
"""From how many such commits of a partition on no lateness of a machine explains them."""


class Foreign(NamedTuple):
    """Commits of a partition that its `owner` (member id) has since a generation.

    `shown` are the first two and the last. One of them set the committed offset back furthest.
    """

    owner: str
    generation: int
    shown: Sequence[ObservedRequest] = ()
    times: int = 0
    before: int = 0
    after: int = 0

    def went_back(self) -> str:
        """Say how far a committed offset went back; nothing where none did."""
        if self.before == self.after:
            return ""
        again = f"{self.before - self.after:,} records to read again"
        return f"; the committed offset went back from {self.before:,} to {self.after:,} ({again})"


@dataclass(slots=True)
class ForeignCommits:
    """The foreign commits of one group, which it takes in order of time."""

    context: RunContext
    _generation: int = -1  # that of the last assignment
    _owners: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By partition, the member id that has it, and the generation since which it does."""
    _clients: dict[str, str] = field(default_factory=dict)  # by member id
    _synced_ms: dict[str, float] = field(default_factory=dict)
    """When each client was answered its share last."""
    _found: dict[tuple[str, str], Foreign] = field(default_factory=dict)

    def assigned(self, sync: ObservedRequest) -> None:
        """Take a SyncGroup that was answered NONE; that of the leader has all shares."""
        request, generation = sync.request, sync.request["generationId"]
        self._clients[request["memberId"]] = sync.client_id
        self._synced_ms[sync.client_id] = sync.answered_ms
        if not request.get("assignments") or generation == self._generation:
            return
        before, self._owners, self._generation = self._owners, {}, generation
        for one in request["assignments"]:
            share, member = read(Assignment, one["assignment"]), one["memberId"]
            for name in map(named, share.partitions if share else ()):
                same = before.get(name, ("", 0))[0] == member
                self._owners[name] = before[name] if same else (member, generation)

    def committed(self, commit: ObservedRequest, name: str, offset: int, before: int) -> None:
        """Take a commit of a partition that is not in its member's share; `before` stood."""
        client, at_ms = commit.client_id, commit.earliest_ms
        owner, since = self._owners.get(name, ("", 0))
        synced_ms = self._synced_ms.get(client, inf)
        held_up = any(
            one.client == client
            and one.from_ms <= at_ms
            and synced_ms <= one.until_ms + WIRE_LATE_MS
            for one in self.context.broken_wires
        )
        current = generation_in(commit.request) == self._generation
        if not owner or self._clients.get(owner) == client or not current:
            return
        if at_ms > synced_ms + LEARNED_MS and not held_up:
            found = self._found.get((client, name), Foreign(owner, since))
            if before - offset > found.before - found.after:
                found = found._replace(before=before, after=offset)
            shown = (*found.shown[:2], commit)
            self._found[client, name] = found._replace(shown=shown, times=found.times + 1)

    def rows(self) -> Iterator[Json]:
        """Yield rows of `CLIENT_FINDINGS`, one a client, without the group."""
        for client in dict.fromkeys(client for client, _ in self._found):
            mine = {name: one for (whose, name), one in self._found.items() if whose == client}
            name = max(mine, key=lambda name: (mine[name].before - mine[name].after, name))
            first, others = mine[name], sorted(mine.keys() - {name})
            times = f"{first.times} times" if first.times > 1 else "once"
            yield {
                "client_id": client,
                "rule": RULE,
                "at_ms": first.shown[0].earliest_ms,
                "what": f"{client} commits {name} {times} though"
                f" {self._clients.get(first.owner, first.owner)} owns it since generation"
                f" {first.generation}{first.went_back()}"
                + (f"; so it does with {listed(others)}" if others else ""),
                **of_requests(first.shown),
                "on_time": first.times < CERTAIN,
            }
