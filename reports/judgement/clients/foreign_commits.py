"""Commits of partitions that the coordinator stored for another member of the same generation.

A member learns its share of a generation by SyncGroup. What it commits in that generation beside
its share is another member's if that one's share has it: a cooperative member may still commit what
it gives up, which no member of the generation has. Commits that it may have sent before it knew are
not judged, nor are those of a time in which a fault had its wire broken.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from kafka_protocol.bodies import generation_in
from kafka_protocol.consumer_protocol import Assignment
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.assignments import listed, named, read
from reports.judgement.run_context import RunContext
from reports.timing import LEARNED_MS, WIRE_LATE_MS

Json = dict[str, Any]
RULE = "commits-what-it-owns"


@dataclass(slots=True)
class Foreign:
    """What a client commits of one partition though another owns it; offsets that went back."""

    owner: str
    generation: int  # since which the owner has it
    shown: list[ObservedRequest]
    count: int = 0
    back: tuple[int, int] = (0, 0)
    """The committed offset before and after the commit that went back furthest."""

    def took(self, commit: ObservedRequest, before: int | None, offset: int) -> None:
        """Take one more commit; `before` is the offset that was committed, if that is known."""
        self.count += 1
        self.shown = [*self.shown[:2], commit]
        if before is not None and before - offset > self.lost:
            self.back = before, offset

    @property
    def times(self) -> str:
        """How often it was committed, in words."""
        return f"{self.count} times" if self.count > 1 else "once"

    @property
    def lost(self) -> int:
        """How many records would be read again."""
        return self.back[0] - self.back[1]

    @property
    def went_back(self) -> str:
        """How far a committed offset went back, in words; nothing where none did."""
        if not self.lost:
            return ""
        before, after = (f"{offset:,}" for offset in self.back)
        again = f"{self.lost:,} {'record' if self.lost == 1 else 'records'}"
        return f"; the committed offset went back from {before} to {after} ({again} to read again)"


@dataclass(slots=True)
class ForeignCommits:
    """The foreign commits of one group, which it takes in order of time."""

    context: RunContext
    _generation: int = -1  # that of the last assignment
    _owners: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By partition, the member id that has it, and the generation since which that one does."""
    _clients: dict[str, str] = field(default_factory=dict)  # by member id
    _synced_ms: dict[str, float] = field(default_factory=dict)
    """When each client was answered its share last."""
    _found: dict[tuple[str, str], Foreign] = field(default_factory=dict)

    def assigned(self, sync: ObservedRequest) -> None:
        """Take a SyncGroup that was answered NONE; that of the leader has all shares."""
        request, generation = sync.request, sync.request["generationId"]
        self._clients[request["memberId"]] = sync.client_id
        self._synced_ms[sync.client_id] = sync.answered_ms
        if not request["assignments"] or generation == self._generation:
            return
        before, self._owners, self._generation = self._owners, {}, generation
        for one in request["assignments"]:
            share, member = read(Assignment, one["assignment"]), one["memberId"]
            for name in map(named, share.partitions if share else ()):
                same = before.get(name, ("", 0))[0] == member
                self._owners[name] = before[name] if same else (member, generation)

    def committed(
        self, commit: ObservedRequest, name: str, offset: int, before: int | None
    ) -> None:
        """Take a commit of a partition that is not in its member's share.

        `before` is the offset that was committed before, None where that is not known.
        """
        client, (owner, since) = commit.client_id, self._owners.get(name, ("", 0))
        knows_ms = self._synced_ms.get(client, inf) + LEARNED_MS
        is_late = any(
            one.client == client
            and one.from_ms <= commit.earliest_ms
            and one.until_ms + WIRE_LATE_MS >= knows_ms - LEARNED_MS
            for one in self.context.broken_wires
        )
        is_mine = self._clients.get(owner, owner) == client
        current = generation_in(commit.request) == self._generation
        if owner and current and not is_mine and not is_late and commit.earliest_ms > knows_ms:
            found = self._found.setdefault((client, name), Foreign(owner, since, []))
            found.took(commit, before, offset)

    def rows(self) -> Iterator[Json]:
        """Yield rows of `CLIENT_FINDINGS`, one a client, without the group."""
        for client in dict.fromkeys(client for client, _ in self._found):
            mine = {name: one for (whose, name), one in self._found.items() if whose == client}
            name = max(mine, key=lambda name: (mine[name].lost, mine[name].count))
            first, others = mine[name], sorted(mine.keys() - {name})
            shown = [*first.shown, *(seen for one in mine.values() for seen in one.shown)]
            yield {
                "client_id": client,
                "rule": RULE,
                "at_ms": min(seen.earliest_ms for seen in shown),
                "what": f"{client} commits {name} {first.times} though"
                f" {self._clients.get(first.owner, first.owner)} owns it since generation"
                f" {first.generation}{first.went_back}"
                + (f"; so it does with {listed(others)}" if others else ""),
                "requests": ",".join(seen.id for seen in first.shown),
                "from_ms": min(seen.earliest_ms for seen in shown),
                "until_ms": max(seen.answered_ms for seen in shown),
                "on_time": True,
            }
