"""What rebalances cost each group: stops, moved partitions, evictions, fences, causes.

Stops and owners come from the client history; without one their numbers are null, which is not
zero. The rest comes from the brokers' logs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, fsum, inf
from operator import itemgetter
from typing import NamedTuple

from kafka_protocol.join_reason import JoinReason
from reports.judgement.causes import BY
from reports.judgement.digest import Digest, with_total
from reports.judgement.rows import Json, Row
from reports.judgement.run.journal import PHASES
from reports.judgement.run.run_folder import GROWTH


def hub_gaps(late_ms: Counter[float]) -> Json | None:
    """Sum up how late gevent's hub ran in the load: the longest delay of each second, in ms.

    What clients report may be as late. With several workers a second of each counts. None if
    nothing is counted.
    """
    if not late_ms:
        return None
    ordered = sorted(late_ms.elements())
    place = 0.99 * (len(ordered) - 1)
    below, above = ordered[int(place)], ordered[ceil(place)]
    p99_ms = below + (above - below) * (place - int(place))
    return {"seconds": len(ordered), "p99_ms": round(p99_ms, 1), "longest_ms": ordered[-1]}


def add(verdict: Json, gaps: Json | None, digests: Mapping[str, Digest]) -> None:
    """Add the costs of each group to its part of the verdict, and how late the hub ran."""
    if gaps is not None:
        verdict["hub_gaps"] = gaps
    for name, about in verdict["groups"].items():
        digest = digests.get(name, Digest())
        causes: dict[str, Counter[str]] = {phase: Counter() for phase in PHASES}
        for (phase, reason), count in digest.begun.items():
            causes[phase][reason or "none"] += count
        moved = digest.moved
        about |= {
            "rebalances_by_cause": {by: digest.causes[by] for by in BY},
            "rebalances_by_client": dict(sorted(digest.by_client.items())),
            "by_cause": {phase: dict(sorted(counts.items())) for phase, counts in causes.items()},
            "stop_the_world_ms": None if moved is None else summary(digest.stopped_ms),
            "partitions_moved": None if moved is None else with_total(moved),
            "unowned_partition_s": None if moved is None else round(digest.unowned_ms / 1000, 3),
            "evictions": with_total(digest.evictions),
            "fences": with_total(digest.fences),
        }


def summary(stopped_ms: Iterable[float]) -> Json:
    """Summarize stops: their number, percentiles (nearest rank), the longest and the sum, in ms."""
    lengths = sorted(stopped_ms)
    rank = lambda share: lengths[ceil(share * len(lengths)) - 1] if lengths else 0.0
    return {
        "stops": len(lengths),
        "p50": rank(0.5),
        "p99": rank(0.99),
        "max": rank(1.0),
        "total": round(fsum(lengths), 1),
    }


METADATA_CHANGED = ("cached metadata has changed", JoinReason.TOPIC_METADATA_CHANGE.name)
"""The reason of a client whose topics changed, in the Java consumer's words and in KIP-423's."""


class TopicGrowth(NamedTuple):
    """A topic that grew, and the rebalance in which a group assigned the added partitions.

    `rebalance` is a row of the observed timeline, `delay_ms` how long after the growth it began;
    both are None if the group had none for it.
    """

    group: str
    topic: str
    at_ms: float
    rebalance: Row | None
    delay_ms: float | None


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
        mine = sorted((one for one in grown if one[0] in subscribed), key=itemgetter(1))
        about = [row for row in observed if row["group"] == group and _is_about_metadata(row)]
        nexts = [*(meant_ms for _, meant_ms, _ in mine[1:]), inf][: len(mine)]
        for (topic, meant_ms, at_ms), until_ms in zip(mine, nexts, strict=True):
            after = (row for row in about if meant_ms <= row["started_ms"] < until_ms)
            first = min(after, key=itemgetter("started_ms"), default=None)
            delay_ms = None if first is None else max(0.0, float(first["started_ms"] - at_ms))
            found.append(TopicGrowth(group, topic, at_ms, first, delay_ms))
    return found


def _is_about_metadata(row: Row) -> bool:
    if row["started_ms"] is None:
        return False
    given = row["client_reason"]
    return given in METADATA_CHANGED or (given is None and row["reason"] == "leader_rejoin")
