"""How soon a group assigns partitions that were added to its topic, and the reason its client gave.

A member gives its reason in JoinGroup v8 and later (KIP-800, from KIP-423), and the coordinator
repeats it in the line about the rebalance. The fault journal says when topics grew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.judgement.run.run_folder import GROWTH

Row = Mapping[str, Any]

METADATA_CHANGED = ("cached metadata has changed", "topic_metadata_change")
"""The reason of a client whose topics changed, in the Java consumer's words and in KIP-423's."""


@dataclass(frozen=True, slots=True)
class TopicGrowth:
    """A topic that grew, and the rebalance in which a group assigned the added partitions.

    `rebalance` is a row of the observed timeline; None if the group had none for it.
    """

    group: str
    topic: str
    at_ms: float
    rebalance: Row | None

    @property
    def delay_ms(self) -> float | None:
        """How long after the growth the rebalance began."""
        if self.rebalance is None:
            return None
        return max(0.0, float(self.rebalance["started_ms"] - self.at_ms))


def topic_growths(
    faults: Iterable[Row], observed: Sequence[Row], topics: Mapping[str, Iterable[str]]
) -> list[TopicGrowth]:
    """Return, for every topic that grew, when each group that subscribes to it rebalanced.

    `topics` are the topics of each group. The rebalance is the first one after the growth, and
    before the next growth, that a client began because its metadata changed; or that the group's
    leader began without a reason, since KIP-423 names no other reason for a leader to rejoin.
    """
    grown = [
        (fault["target"], float(fault["meant_at_ms"]), float(fault["injected_at_ms"]))
        for fault in faults
        if fault["name"] == GROWTH and fault["injected_at_ms"] is not None
    ]
    found = []
    for group, subscribed in topics.items():
        mine = sorted((one for one in grown if one[0] in subscribed), key=lambda one: one[1])
        for (topic, meant_ms, at_ms), until_ms in zip(mine, _until(mine), strict=True):
            after = (
                row
                for row in observed
                if row["group"] == group
                and _is_about_metadata(row)
                and meant_ms <= row["started_ms"] < until_ms
            )
            first = min(after, key=lambda row: float(row["started_ms"]), default=None)
            found.append(TopicGrowth(group, topic, at_ms, first))
    return found


def _until(grown: Sequence[tuple[str, float, float]]) -> list[float]:
    """Return when each topic, or another topic of the group, grows next."""
    return [*(meant_ms for _, meant_ms, _ in grown[1:]), float("inf")][: len(grown)]


def _is_about_metadata(row: Row) -> bool:
    if row["started_ms"] is None:
        return False
    given = row["client_reason"]
    return given in METADATA_CHANGED or (given is None and row["reason"] == "leader_rejoin")
