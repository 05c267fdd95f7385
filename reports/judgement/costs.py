"""What rebalances cost each group: stops, moved partitions, evictions, fences, causes.

Stops and owners come from the client history; without one their numbers are null, which is not
zero. The rest comes from the brokers' logs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from math import ceil, fsum, inf
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from reports.judgement.digest import Digest, with_total
from reports.judgement.run.journal import PHASES
from reports.judgement.run.run_folder import GROWTH, RunFolder

Json = dict[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stop:
    """A member without partitions because all of them were taken away (see `ownership.STOPS`)."""

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
    """A member's ownership of a partition (see `ownership.OWNERSHIP`)."""

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

    @classmethod
    def of(cls, late_ms: Counter[float]) -> "HubGaps | None":
        """Sum up how often the hub ran how late; None if nothing is counted."""
        if not late_ms:
            return None
        ordered = sorted(late_ms.elements())
        place = 0.99 * (len(ordered) - 1)
        below, above = ordered[int(place)], ordered[ceil(place)]
        p99_ms = below + (above - below) * (place - int(place))
        return cls(len(ordered), round(p99_ms, 1), ordered[-1])


T = TypeVar("T")


@dataclass(frozen=True)
class Costs:
    """What rebalances cost the groups that the page shows, each list in order of time.

    `holdings` are those that it draws, and those that overlap with an earlier owner's.
    """

    stops: Sequence[Stop] = ()
    handovers: Sequence[Handover] = ()
    holdings: Sequence[Holding] = ()
    expulsions: Sequence[Expulsion] = ()

    @classmethod
    def of_rows(cls, rows: Mapping[str, Iterable[Row]]) -> "Costs":
        """Take the rows of the tables `stops`, `handovers`, `ownership` and `expulsions`."""
        return cls(
            in_order(Stop, rows["stops"], "from_ms", "group", "member"),
            in_order(Handover, rows["handovers"], "at_ms", "group"),
            in_order(Holding, rows["ownership"], "from_ms", "group", "member", "partition"),
            in_order(Expulsion, rows["expulsions"], "at_ms", "group", "subject", "api"),
        )

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


def in_order(kind: type[T], rows: Iterable[Row], *order: str) -> list[T]:
    """Make objects of rows, ordered by some of their fields."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return sorted((kind(*map(row.get, names)) for row in rows), key=attrgetter(*order))


def add(verdict: Json, hub_gaps: HubGaps | None, digests: Mapping[str, Digest]) -> None:
    """Add the costs of each group to its part of the verdict, and how late the hub ran."""
    if hub_gaps is not None:
        verdict["hub_gaps"] = asdict(hub_gaps)
    for name, about in verdict["groups"].items():
        digest = digests.get(name, Digest())
        moved = digest.moved
        about |= {
            "by_cause": _by_cause(digest),
            "stop_the_world_ms": None if moved is None else summary(digest.stopped_ms),
            "partitions_moved": None if moved is None else with_total(moved),
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
