"""What a run folder says of a cluster that is not groupquake's, and that ran before the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from reports.judgement.run.journal import Entry

BORROWED = "borrowed"
"""The event of the journal that names what the run created."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A cluster of the user's.

    `prefix` is what the names of the run's groups begin with: others may use the cluster, too.
    `coordinated_before` is the broker (id) of each partition of `__consumer_offsets` before the
    run, and when it was asked, in ms: no line of the run tells that it has loaded the partition.
    `unsure` says in words what is not certain, `assumed` whether an assumption may be wrong that
    answers depend on: then a difference proves nothing.
    """

    prefix: str
    coordinated_before: Mapping[int, tuple[str, float]]
    unsure: tuple[str, ...]
    assumed: bool

    @classmethod
    def of(
        cls, environment: Mapping[str, Any], journal: Sequence[Entry], prefix: str | None
    ) -> Self | None:
        """Read it; None for a cluster of groupquake's own."""
        if "cluster_id" not in environment:
            return None
        leaders = {
            partition: (str(broker), entry["at_ms"])
            for entry in journal
            if entry["event"] == BORROWED
            for partition, broker in enumerate(entry["offsets_leaders"])
        }
        unsure = tuple(map(str, environment.get("unsure") or ()))
        return cls(prefix or "", leaders, unsure, environment.get("assumed") is True)
