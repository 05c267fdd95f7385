"""Commits of partitions that another member of the same generation has.

A member learns its share of a generation by SyncGroup. What it commits in that generation beside
its share is another member's if that one's share has it: a cooperative member may still commit what
it gives up, which no member of the generation has. Not judged is what it may have sent before it
knew its share, or while a fault had its wire broken.
"""

from collections.abc import Mapping
from typing import NamedTuple

from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.assignments import listed
from reports.judgement.clients.client_rules.shown import of_requests
from reports.judgement.rows import Json

RULE = "commits-what-it-owns"
CERTAIN = 3
"""From how many such commits of a partition on no lateness of a machine explains them."""


class Share(NamedTuple):
    """What a member has in a generation, as its client was answered; None cannot be read."""

    member_id: str
    client: str
    answered_ms: float
    partitions: frozenset[str] | None


class Foreign(NamedTuple):
    """A client's commits of a partition of `owner`'s; `shown` are the first two and the last.

    One of them set the committed offset back furthest, from `before` to `after`.
    """

    owner: str
    generation: int | None
    shown: tuple[ObservedRequest, ...] = ()
    times: int = 0
    before: int = 0
    after: int = 0

    def and_then(self, commit: ObservedRequest, before: int, after: int) -> "Foreign":
        """Return it with one more commit."""
        furthest = max((self.before, self.after), (before, after), key=lambda one: one[0] - one[1])
        shown = (*self.shown[:2], commit)
        return Foreign(self.owner, self.generation, shown, self.times + 1, *furthest)


def finding(client: str, mine: Mapping[str, Foreign]) -> Json:
    """Return a client's row of `CLIENT_FINDINGS` without the group; its commits by partition."""
    name = max(mine, key=lambda name: (mine[name].before - mine[name].after, name))
    first, others = mine[name], sorted(mine.keys() - {name})
    times = f"{first.times} times" if first.times > 1 else "once"
    what = f"{client} commits {name} {times} though {first.owner} owns it"
    what += f" in generation {first.generation}"
    if back := first.before - first.after:
        what += f"; the committed offset went back from {first.before:,} to {first.after:,}"
        what += f" ({back:,} records to read again)"
    return {
        "client_id": client,
        "rule": RULE,
        "at_ms": first.shown[0].earliest_ms,
        "what": what + (f"; so it does with {listed(others)}" if others else ""),
        **of_requests(first.shown),
        "on_time": first.times < CERTAIN,
    }
