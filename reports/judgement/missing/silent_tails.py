"""Silence about a group before its broker is killed: the tail of the log may have been cut.

Where the journal does not say how long the log was at the kill, nothing else tells it: numbers of
lines and requests go on to where the log ends. But members heartbeat. A silence that is longer than
every one before, under the same coordinator, is no proof that something was cut, and what is wrong
after it is no proof that the coordinators broke a rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from reports.judgement.coordinators.coordinator_epochs import CoordinatorEpochs
from reports.judgement.lateness.broker_activity import clock

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SilentTail:
    """What a killed broker's log tells of a group ends at `last_ms`; silences were shorter before.

    `longest_ms` is the longest of them.
    """

    broker: str
    last_ms: float
    killed_ms: float
    longest_ms: float

    def doubt(self, group: str) -> str:
        """Say why what is wrong with a group proves nothing."""
        return (
            f"group {group}: what is wrong is explained if the end of broker {self.broker}'s log"
            f" was cut, which is silent about the group for {self.killed_ms - self.last_ms:,.0f} ms"
            f" before the kill at {clock(self.killed_ms)} UTC, and before that never for more than"
            f" {self.longest_ms:,.0f} ms"
        )


def silent_tails(
    rows: Sequence[Row], kills: Iterable[tuple[str, float]], epochs: CoordinatorEpochs
) -> list[SilentTail]:
    """List the kills (broker, ms) of a group's coordinator before which its log is silent so long.

    `rows` are the group's logged rows.
    """
    named = (row["partition"] for row in rows if row["template"] and row["partition"] is not None)
    partition = min(named, default=None)
    if partition is None:
        return []
    found = []
    for broker, killed_ms in kills:
        loads = [load for load in epochs.loads.get(partition, ()) if load.at_ms < killed_ms]
        if not loads or loads[-1].broker != broker:
            continue
        signs = [at_ms for at_ms in _signs(rows, broker) if loads[-1].at_ms <= at_ms <= killed_ms]
        given_up = any(
            (event.broker, event.kind) == (broker, "unloaded")
            and loads[-1].at_ms < event.at_ms < killed_ms
            for event in epochs.of_partitions.get(partition, ())
        )
        silences = [after - before for before, after in pairwise(signs)]
        if silences and not given_up and killed_ms - signs[-1] > max(silences):
            found.append(SilentTail(broker, signs[-1], killed_ms, max(silences)))
    return found


def _signs(rows: Iterable[Row], broker: str) -> list[float]:
    """Return when a broker took requests of a group, answered them, or wrote lines about it."""
    of_broker = (row for row in rows if row["broker"] == broker)
    times = (
        (row["at_ms"],) if row["template"] else (row["arrived_ms"], row["answered_ms"])
        for row in of_broker
    )
    return sorted(at_ms for both in times for at_ms in both if at_ms is not None)
