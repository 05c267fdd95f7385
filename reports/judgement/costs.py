"""What rebalances cost each group: stops, moved partitions, evictions, fences, causes.

Stops and owners come from the client history; without one their numbers are null, which is not
zero. The rest comes from the brokers' logs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import ceil, fsum, inf
from operator import itemgetter
from typing import Any

from reports.judgement.digest import Digest, with_total
from reports.judgement.run.journal import PHASES
from reports.judgement.run.run_folder import GROWTH, RunFolder

Json = dict[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stop:
    """A member without partitions because all of them were taken away (see `ownership.stops`)."""

    group: str
    member: str
    kind: str
    from_ms: float
    stopped_ms: float


@dataclass(frozen=True, slots=True)
class Handover:
    """The partitions that members of a group were assigned at one instant.

    `moved` of them had another owner before; `unowned_ms` sums up how long each had no owner.
    """

    group: str
    at_ms: float
    moved: int
    unowned_ms: float


@dataclass(frozen=True, slots=True)
class Holding:
    """A member's ownership of a partition (see `ownership.intervals`)."""

    group: str
    partition: str
    member: str
    from_ms: float
    until_ms: float
    ended_as: str
    overlap_ms: float
    overlaps: str | None


@dataclass(frozen=True, slots=True)
class Expulsion:
    """An eviction of a member id (`api` is empty), or a response that fences a client."""

    group: str
    at_ms: float
    subject: str
    api: str = ""


@dataclass(frozen=True, slots=True)
class HubGaps:
    """How late gevent's hub ran in the load: the longest delay of each of so many `seconds`, in ms.

    What clients report may be as late. With several workers a second of each counts.
    """

    seconds: int
    p99_ms: float
    longest_ms: float


@dataclass(frozen=True)
class Costs:
    """What rebalances cost, each list in order of time.

    `holdings` are those that the page draws, and those that overlap with an earlier owner's.
    `expulsions` are those of groups that the page shows. `hub_gaps` is None without a history.
    """

    stops: Sequence[Stop] = ()
    handovers: Sequence[Handover] = ()
    holdings: Sequence[Holding] = ()
    expulsions: Sequence[Expulsion] = ()
    hub_gaps: HubGaps | None = None

    @cached_property
    def _by_group(self) -> Mapping[str, "Costs"]:
        found: dict[str, Costs] = defaultdict(lambda: Costs([], [], [], []))
        for name in ("stops", "handovers", "holdings", "expulsions"):
            for one in getattr(self, name):
                getattr(found[one.group], name).append(one)
        return found

    def of(self, group: str) -> "Costs":
        """Return the costs of one group."""
        return self._by_group[group]

    def has_history(self, group: str) -> bool:
        """Whether the client history has assignments of a group."""
        return bool(self.of(group).handovers)

    @property
    def evictions(self) -> list[Expulsion]:
        """Members whose session expired."""
        return [expulsion for expulsion in self.expulsions if not expulsion.api]

    @property
    def fences(self) -> list[Expulsion]:
        """Responses FENCED_INSTANCE_ID."""
        return [expulsion for expulsion in self.expulsions if expulsion.api]


def add(verdict: Json, costs: Costs, run: RunFolder, digests: Mapping[str, Digest]) -> None:
    """Add the costs of each group to its part of the verdict, and how late the hub ran."""
    if costs.hub_gaps is not None:
        verdict["hub_gaps"] = asdict(costs.hub_gaps)
    for name, about in verdict["groups"].items():
        digest, mine, known = digests.get(name, Digest()), costs.of(name), costs.has_history(name)
        moved = Counter[str]()
        for handover in mine.handovers:
            moved[run.phase_at(handover.at_ms)] += handover.moved
        about |= {
            "by_cause": _by_cause(digest),
            "stop_the_world_ms": summary(impact(run, mine.stops)) if known else None,
            "partitions_moved": with_total(moved) if known else None,
            "evictions": with_total(digest.evictions),
            "fences": with_total(digest.fences),
        }


def _by_cause(digest: Digest) -> dict[str, dict[str, int]]:
    """Return the rebalances that began, by phase and reason class."""
    causes: dict[str, Counter[str]] = {phase: Counter() for phase in PHASES}
    for (phase, reason), count in digest.begun.items():
        causes[phase][reason or "none"] += count
    return {phase: dict(sorted(counts.items())) for phase, counts in causes.items()}


def impact(run: RunFolder, stops: Iterable[Stop]) -> list[Stop]:
    """Return the stops that began in the impact phase."""
    return [stop for stop in stops if run.phase_at(stop.from_ms) == "impact"]


def summary(stops: Sequence[Stop]) -> Json:
    """Summarize stops: their number, percentiles (nearest rank), the longest and the sum, in ms."""
    lengths = sorted(stop.stopped_ms for stop in stops)
    rank = lambda share: lengths[ceil(share * len(lengths)) - 1] if lengths else 0.0
    return {
        "stops": len(lengths),
        "p50": rank(0.5),
        "p99": rank(0.99),
        "max": rank(1.0),
        "total": round(fsum(lengths), 1),
    }


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
        mine = sorted((one for one in grown if one[0] in subscribed), key=itemgetter(1))
        about = [row for row in observed if row["group"] == group and _is_about_metadata(row)]
        nexts = [*(meant_ms for _, meant_ms, _ in mine[1:]), inf][: len(mine)]
        for (topic, meant_ms, at_ms), until_ms in zip(mine, nexts, strict=True):
            after = (row for row in about if meant_ms <= row["started_ms"] < until_ms)
            first = min(after, key=itemgetter("started_ms"), default=None)
            found.append(TopicGrowth(group, topic, at_ms, first))
    return found


def _is_about_metadata(row: Row) -> bool:
    if row["started_ms"] is None:
        return False
    given = row["client_reason"]
    return given in METADATA_CHANGED or (given is None and row["reason"] == "leader_rejoin")
