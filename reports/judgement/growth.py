"""What a client says of why it joins, and how soon a group shares out partitions that were added.

A member gives its reason with JoinGroup v8 or later (KIP-800, which came of KIP-423), and the
coordinator repeats it in the line that begins a rebalance. Topics grow by faults of the journal.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.judgement.run_folder import GROWTH

Row = Mapping[str, Any]

NOTICED = ("cached metadata has changed", "topic_metadata_change")
"""What a client says that saw its topics change: the Java consumer's words, and KIP-423's."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """A topic that grew, and the rebalance in which a group shared out what was added.

    `rebalance` is a row of the observed timeline; None if the group had none for it.
    """

    group: str
    topic: str
    at_ms: float
    rebalance: Row | None

    @property
    def delay_ms(self) -> float | None:
        """How long it took until the rebalance began."""
        if self.rebalance is None:
            return None
        return max(0.0, float(self.rebalance["started_ms"] - self.at_ms))


def noticed(
    faults: Iterable[Row], observed: Sequence[Row], topics: Mapping[str, Iterable[str]]
) -> list[Noticed]:
    """Tell of every topic that grew when each group of those that read it noticed.

    `topics` are those of each group. The rebalance is the first after it, and before the topic
    grows again, that a client began because its metadata changed; or the group's leader, if it gave
    no reason: KIP-423 knows no other for a leader to join again.
    """
    grown = [
        (fault["target"], float(fault["meant_at_ms"]), float(fault["injected_at_ms"]))
        for fault in faults
        if fault["name"] == GROWTH and fault["injected_at_ms"] is not None
    ]
    found = []
    for group, read in topics.items():
        mine = sorted((one for one in grown if one[0] in read), key=lambda one: one[1])
        for (topic, meant_ms, at_ms), until_ms in zip(mine, _until(mine), strict=True):
            after = (
                row
                for row in observed
                if row["group"] == group
                and _is_about_metadata(row)
                and meant_ms <= row["started_ms"] < until_ms
            )
            first = min(after, key=lambda row: float(row["started_ms"]), default=None)
            found.append(Noticed(group, topic, at_ms, first))
    return found


def _until(grown: Sequence[tuple[str, float, float]]) -> list[float]:
    """Return when each topic grows again, or another of the group's."""
    return [*(meant_ms for _, meant_ms, _ in grown[1:]), float("inf")][: len(grown)]


def _is_about_metadata(row: Row) -> bool:
    if row["started_ms"] is None:
        return False
    said = row["client_reason"]
    return said in NOTICED or (said is None and row["reason"] == "leader_rejoin")
