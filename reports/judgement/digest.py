"""Digests: what verdict and page count of a group, made where the group is judged.

A run may have 100,000 groups and millions of rebalances. Their rows stay where they are; a digest
of each group is all that is read of most groups.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from reports.judgement.log.log_places import Level
from reports.judgement.rows import Json, Row
from reports.judgement.run.journal import PHASES, phase_of

if TYPE_CHECKING:
    from reports.judgement.run.run_folder import RunFolder

DIGESTS = "group STRING, digest STRING"
"""The columns of the table of digests, which is not stored: `digest` is the JSON of a `Digest`."""
LAST = {"assigned": "at_ms", "observed": "started_ms"}
"""The tables of which the last row tells who owns partitions in the end, and when rows happened."""


@dataclass
class Digest:
    """What is counted of one group."""

    begun: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Observed rebalances whose begin is logged, by phase and reason (empty: none is known)."""
    expected: Counter[str] = field(default_factory=Counter)
    """Expected rebalances, by phase."""
    generations: int = 0  # how many generations with members were observed
    evictions: Counter[str] = field(default_factory=Counter)
    """Members whose session expired, by phase."""
    fences: Counter[str] = field(default_factory=Counter)
    """Responses FENCED_INSTANCE_ID, by phase."""
    rows: Counter[str] = field(default_factory=Counter)  # the group's rows, by table
    clients: Counter[str] = field(default_factory=Counter)
    """What was compared of the client history, and what is counted beside it, by name."""
    witnesses: Counter[str] = field(default_factory=Counter)
    """The requests that brokers and tap have, by what was compared (`WITNESSES`)."""
    different: int = 0  # how many rows of the comparison are no match
    unowned: list[str] | None = None
    """The partitions without an owner when the load is stopped; None without any assignment."""
    joiners: list[str] | None = None
    """The client.ids that asked to join a group of the experiment; None where that is not known."""
    moved: Counter[str] | None = None
    """Partitions that moved to another member, by phase; None where clients tell nothing."""
    unowned_ms: float = 0.0
    """How long partitions had no owner, in ms, summed up over what was assigned in the impact."""
    records: Counter[str] = field(default_factory=Counter)
    """How many records members processed, and what became of them; empty where none tells."""
    stopped_ms: list[float] = field(default_factory=list)
    """How long members were stopped, in ms: the stops that began in the impact phase."""
    causes: Counter[str] = field(default_factory=Counter)
    """Rebalances by who caused them (`causes.BY`)."""
    by_client: Counter[str] = field(default_factory=Counter)
    """Rebalances that each client caused by itself."""
    not_on_wire: int = 0
    """How many rebalances no answer tells of, at level `wire`: the replay alone has them."""

    @property
    def wrong(self) -> int:
        """How many of its rows show a difference."""
        of_rows = ("violations", "member_lines", "breaches")
        return self.different + sum(self.rows[table] for table in of_rows)

    @property
    def observed(self) -> Counter[str]:
        """Observed rebalances whose begin is logged, by phase."""
        counts = Counter[str]()
        for (phase, _), count in self.begun.items():
            counts[phase] += count
        return counts

    @property
    def application(self) -> Json | None:
        """What became of records, as in `verdict.json`; None where no member tells."""
        known, same = self.records, ("processed", "out_of_order", "after_given_up", "misnumbered")
        counts = {name: known[name] for name in same} | {
            "lost": None if known["unnoted"] else known["lost"],
            "twice": known["twice"] + known["again"],
            "twice_allowed": known["twice"],
        }
        return counts if known["processed"] else None

    def to_json(self) -> str:
        """Write it as JSON."""
        begun = [[*key, count] for key, count in sorted(self.begun.items())]
        return json.dumps(vars(self) | {"begun": begun})

    @classmethod
    def from_json(cls, text: str) -> "Digest":
        """Read what `to_json` wrote."""
        values = json.loads(text)
        values["begun"] = {(at, reason): count for at, reason, count in values["begun"]}
        read: Json = {
            name: Counter(value) if isinstance(value, dict) else value
            for name, value in values.items()
        }
        return cls(**read)


@dataclass(frozen=True)
class Digester:
    """Makes digests of the groups of a run: its phases, when its load is stopped, its topics."""

    phases: Sequence[tuple[str, float]]
    end_ms: float
    topics: Mapping[str, Sequence[str]]  # the topics of each group of the experiment
    partitions: Mapping[str, int]
    """How many partitions each topic of the experiment has in the end, but for deleted ones."""
    level: Level = Level.REQUESTS
    """At level `wire` the replay alone tells when a rebalance began, and why."""

    @classmethod
    def of(cls, run: "RunFolder") -> "Digester":
        """Take what it has to know from a run folder."""
        topics = {group.name: tuple(group.topics) for group in run.experiment.workload.groups}
        end_ms = dict(run.phases).get("teardown", inf)
        partitions = {name: n for name, n in run.partitions.items() if name not in run.deleted}
        return cls(run.phases, end_ms, topics, partitions, run.level)

    def unowned(self, group: str, last: Mapping[str, Row] = {}) -> list[str]:
        """List the partitions of a group that have no owner when the load is stopped.

        `last` has the rows of `LAST` by then, by table. If a rebalance started after the last
        assignment that was accepted, no partition is assigned.
        """
        given, begun = last.get("assigned"), last.get("observed")
        topics, owned = self.topics.get(group, tuple(self.partitions)), set[str]()
        if given is not None:
            topics = given["topics"].split(",")
            if begun is None or begun["started_ms"] <= given["at_ms"]:
                owned.update(given["partitions"].split(","))
        due = (f"{topic}-{n}" for topic in topics for n in range(self.partitions.get(topic, 0)))
        return [partition for partition in due if partition not in owned]

    def digested(
        self, group: str, rows: Iterable[tuple[str, Json]], joiners: Collection[str] | None = None
    ) -> Iterator[tuple[str, Json]]:
        """Pass the rows of a judged group on, with the names of their tables; then its digest."""
        digest = Digest()
        last: dict[str, Row] = {}
        for name, row in rows:
            digest.rows[name] += 1
            self._count(digest, name, row)
            if name in LAST and self._is_later(row, last.get(name), LAST[name]):
                last[name] = row
            yield name, row
        if digest.rows["assigned"]:
            digest.unowned = self.unowned(group, last)
        if joiners is not None and group in self.topics:
            digest.joiners = sorted(joiners)
        yield "digests", {"digest": digest.to_json()}

    def _is_later(self, row: Row, last: Row | None, at: str) -> bool:
        """Tell whether a row is not after the end, and later than the last one; not its equal."""
        at_ms = row[at]
        return at_ms is not None and at_ms <= self.end_ms and (last is None or at_ms > last[at])

    def _phase(self, at_ms: float) -> str:
        return phase_of(self.phases, at_ms)

    def _count(self, digest: Digest, name: str, row: Row) -> None:
        if name == "observed":
            if row["started_ms"] is not None:
                digest.begun[self._phase(row["started_ms"]), row["reason"] or ""] += 1
            digest.generations += row["generation"] is not None and row["members"] != 0
        elif name == "comparison":
            self._count_compared(digest, row)
        elif name == "expected" and row["started_ms"] is not None:
            digest.expected[self._phase(row["started_ms"])] += 1
        elif name == "causes":
            digest.causes[row["by"]] += 1
            if row["by"] == "client":
                digest.by_client[row["who"]] += 1
        elif name in ("clients", "witnesses"):
            getattr(digest, name)[row["name"]] += row["count"]
        elif name == "records":
            digest.records[row["what"]] += row["records"]
        elif name == "handovers":
            digest.moved = Counter() if digest.moved is None else digest.moved
            phase = self._phase(row["at_ms"])
            digest.moved[phase] += row["moved"]
            digest.unowned_ms += row["unowned_ms"] if phase == "impact" else 0.0
        elif name == "stops" and self._phase(row["from_ms"]) == "impact":
            digest.stopped_ms.append(row["stopped_ms"])
        elif name == "expulsions":
            counts = digest.fences if row["api"] else digest.evictions
            counts[self._phase(row["at_ms"])] += 1

    def _count_compared(self, digest: Digest, row: Row) -> None:
        digest.different += row["outcome"] != "match"
        if self.level is Level.WIRE:  # an answer tells of it, or the replay alone
            began_ms = row["expected_started_ms"] or row["observed_joined_ms"]
            digest.begun[self._phase(began_ms), row["expected_reason"] or ""] += 1
            digest.not_on_wire += row["observed_generation"] is None


def with_total(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts of every phase, and their sum."""
    return {phase: counts.get(phase, 0) for phase in PHASES} | {"total": sum(counts.values())}
