"""Topics that a fault deletes: the group coordinator deletes their offsets, too.

It learns of the deletion with the cluster's metadata (`handleDeletedPartitions`,
`onPartitionsDeleted`). A topic of the same name that is created afterwards begins without offsets.
"""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

from reports.timing import METADATA_KNOWN_MS

DELETED = "topic.delete"


class Deletion(NamedTuple):
    """A topic is deleted after `from_ms`; every broker knows it by `known_ms`, if it works."""

    from_ms: float
    known_ms: float

    def ends(self, stored_ms: float, asked_ms: float) -> bool:
        """Tell whether what was stored before a time may be gone at another."""
        return stored_ms <= self.known_ms and asked_ms >= self.from_ms


Deletions = Mapping[str, Deletion]


def deletions(faults: Iterable[Mapping[str, Any]]) -> dict[str, Deletion]:
    """Return the deletions of topics, by their names; a topic is deleted once."""
    return {
        fault["target"]: Deletion(
            fault["meant_at_ms"], (fault["injected_at_ms"] or inf) + METADATA_KNOWN_MS
        )
        for fault in faults
        if fault["name"] == DELETED
    }


def of_partition(deleted: Deletions, name: str) -> Deletion | None:
    """Return the deletion of the topic of a partition, written `topic-number`, if there was one."""
    return deleted.get(name.rpartition("-")[0])
