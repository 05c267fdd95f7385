"""What may have happened to a group that no log has: as a broker was killed, or was cut off.

A broker logs a request with its answer. What it had not answered when it was killed, it never logs,
though the group may have changed. What a broker that is cut off wrote just before may not have
reached its replicas; then the broker that takes over loads an older state. Neither is a gap of the
logs: these rows (see `gaps.UNLOGGED`) are not `sure`.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from reference_coordinator.replay import Parting
from reports.judgement.coordinators.coordinator_epochs import Load
from reports.judgement.logged import LoggedRow
from reports.judgement.missing.gaps import unlogged_row
from reports.judgement.run.disturbance import Kill
from reports.judgement.timelines.member_lines import ENTERED, OF_LOADS
from reports.timing import HANDLED_MS, WAITS_MS

Json = dict[str, Any]

BEGINS, ENDS = "preparing", ("assignment", "empty")


def in_flight(kill: Kill, lines: Sequence[LoggedRow], longest_ms: float) -> Iterator[Json]:
    """Yield since when requests may have waited as a broker was killed; `lines` are the group's.

    A JoinGroup or SyncGroup waits since its rebalance began, if that was not long over, and for no
    longer than the group's longest rebalance timeout.
    """
    broker, _, killed_ms = kill
    mine = [one for one in lines if one["broker"] == broker and one["at_ms"] <= killed_ms]
    if not mine:
        return
    steps = [line for line in mine if line["template"] in ENTERED]
    began_ms = [line["at_ms"] for line in steps if line["template"] == BEGINS]
    ended = bool(steps) and steps[-1]["template"] in ENDS
    from_ms = killed_ms - WAITS_MS
    if began_ms and not (ended and steps[-1]["at_ms"] < from_ms):
        from_ms = min(from_ms, max(began_ms[-1], killed_ms - longest_ms))
    what = f"what broker {broker} had not answered when it was killed is in no log"
    line = mine[-1]["line"]
    yield unlogged_row(broker, line, from_ms - HANDLED_MS, killed_ms, what, sure=False)


def unreplicated(
    partings: Sequence[Parting],
    loads: Sequence[Load],
    lines: Sequence[LoggedRow],
    timers_ms: float,
) -> Iterator[Json]:
    """Yield when a broker took over that may lack what the one before wrote as it was cut off.

    What it loaded shows until the group's timers, `timers_ms` at most, have run out.
    """
    for before, load in pairwise(loads):
        for parting in partings:
            lost = [
                line
                for line in lines
                if line["broker"] == parting.broker == before.broker != load.broker
                and parting.earliest_ms <= line["at_ms"] <= min(parting.from_ms, load.at_ms)
            ]
            if lost and load.at_ms <= parting.until_ms:
                what = (
                    f"what broker {parting.broker} wrote just before it was cut off from the others"
                    " may not have reached them"
                )
                until_ms = _begun_ms(load, lines) + timers_ms
                place = load.broker, load.line, lost[0]["at_ms"], until_ms
                yield unlogged_row(*place, what, sure=False)


def _begun_ms(load: Load, lines: Sequence[LoggedRow]) -> float:
    """Return when a broker began to load a group: its lines about that come before the last one."""
    times = [
        line["at_ms"]
        for line in lines
        if line["broker"] == load.broker
        and line["template"] in OF_LOADS
        and load.at_ms - HANDLED_MS <= line["at_ms"] <= load.at_ms
    ]
    return min([*times, load.scheduled_ms])
