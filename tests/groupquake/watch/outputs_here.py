"""What outputs are given in tests."""

from math import inf
from zoneinfo import ZoneInfo

from groupquake.watch.counting import Counting, State
from groupquake.watch.group_counts import Storm

LINE = (
    "[2026-11-23 10:00:{:02},000] INFO [GroupCoordinator 1]: Preparing to rebalance group g in"
    " state PreparingRebalance with old generation {} (__consumer_offsets-1) (reason: Removing"
    " member app-{:08x}-0000-0000-0000-000000000000 on LeaveGroup)"
    " (kafka.coordinator.group.GroupCoordinator)"
)


def preparing(at_s: int, generation: int = 1) -> str:
    """Return a line by which a rebalance of group `g` begins, since client `app` left."""
    return LINE.format(at_s, generation, at_s)


STORM = Storm("g", 0.0, 8_000.0, 5, ["app"])


def counted() -> Counting:
    """Return the counts of a storm of five rebalances, the last of which goes on."""
    counting = Counting(State(), ZoneInfo("UTC"))
    counting.take("a", [*(preparing(2 * n, n) for n in range(5)), "another line"], 0.0)
    counting.settle(inf)
    return counting
