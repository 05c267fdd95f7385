"""What the page draws of each member: when it was in its group, and in which generation.

Told by the members' own requests as the brokers logged them, so a member that is down shows as a
gap, and a generation that it never heard of does not colour its lane.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reports.grammar import GROUP_APIS
from reports.tables import Tables

T = TypeVar("T")

GROUPS_DRAWN = 12
"""How many groups a page draws: those with differences first, then those that rebalanced most."""
ACCEPTED = (0, 27)
"""Answers to one who is in the group: NONE and REBALANCE_IN_PROGRESS."""


def identity(client: str) -> str:
    """Name the member that a client is: its second process goes by its name, with an ending."""
    return client.removesuffix(".duplicate")


@dataclass(frozen=True, slots=True)
class Join:
    """A JOIN answered NONE: from `at_ms` on the client is `member_id` in `generation`."""

    group: str
    client: str
    member_id: str
    generation: int
    at_ms: float
    static: bool = False

    @property
    def kind(self) -> str:
        """What kind of member it is."""
        return "static" if self.static else "dynamic"


@dataclass(frozen=True, slots=True)
class Scenes:
    """The groups to draw, the joins in order of time, and when each member id was last heard of.

    `last_ms` maps (group, member id) to the last answer that took it for a member.
    """

    groups: tuple[str, ...]
    joins: tuple[Join, ...]
    last_ms: Mapping[tuple[str, str], float]

    def clients(self) -> dict[str, str]:
        """Name the client behind each member id."""
        return {join.member_id: join.client for join in self.joins}

    def kinds(self) -> dict[str, str]:
        """Say of each member id whether it joined with an instance id: `static`, or `dynamic`."""
        return {join.member_id: join.kind for join in self.joins}

    def kind_at(self, client: str, at_ms: float) -> str | None:
        """Say what a client was when it last joined before a time; some change (KIP-345)."""
        kinds = [j.kind for j in self.joins if j.client == client and j.at_ms <= at_ms]
        return kinds[-1] if kinds else None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A client in one generation of its group, without a break."""

    client: str
    member_id: str
    generation: int
    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True)
class Period:
    """A part of a group's life: rebalancing, or standing in a generation."""

    rebalancing: bool
    generation: int | None
    start_ms: float
    end_ms: float
    row: Mapping[str, Any]


def collect(tables: Tables) -> Scenes:
    """Bring the few rows that the page draws to the driver."""
    different = F.sum((F.col("outcome") != "match").cast("int"))
    drawn = (
        tables.comparison.groupBy("group")
        .agg(different.alias("different"), F.count("*").alias("rebalances"))
        .orderBy(F.desc("different"), F.desc("rebalances"), "group")
        .limit(GROUPS_DRAWN)
    )
    groups = tuple(row["group"] for row in drawn.collect())
    heard = tables.requests.where(
        F.col("readable") & F.col("api").isin(*GROUP_APIS) & F.col("group").isin(*groups)
    )
    return Scenes(groups, _joins(heard), _last_heard(heard))


def _joins(requests: DataFrame) -> tuple[Join, ...]:
    rows = (
        requests.where((F.col("api") == "JOIN_GROUP") & (F.col("error_code") == 0))
        .select(
            "group",
            "client_id",
            F.get_json_object("response", "$.memberId").alias("member_id"),
            F.get_json_object("response", "$.generationId").cast("int").alias("generation"),
            "answered_ms",
            F.get_json_object("request", "$.groupInstanceId").isNotNull().alias("static"),
        )
        .orderBy("answered_ms", "group", "member_id")
    )
    return tuple(Join(*row) for row in rows.collect())


def _last_heard(requests: DataFrame) -> dict[tuple[str, str], float]:
    member_id = F.coalesce(
        F.get_json_object("request", "$.members[0].memberId"),
        F.when(F.col("api") == "JOIN_GROUP", F.get_json_object("response", "$.memberId")),
        F.get_json_object("request", "$.memberId"),
    )
    rows = (
        requests.where(F.coalesce("error_code", F.lit(0)).isin(*ACCEPTED))
        .groupBy("group", member_id.alias("member_id"))
        .agg(F.max("answered_ms").alias("last_ms"))
    )
    return {(row["group"], row["member_id"]): row["last_ms"] for row in rows.collect()}


def stretches(scenes: Scenes, group: str) -> list[Stretch]:
    """List when each client was in the group: until its next join, or its last word."""
    by_client: dict[str, list[Join]] = defaultdict(list)
    for join in scenes.joins:
        if join.group == group:
            by_client[join.client].append(join)
    found = []
    for joins in by_client.values():
        for join, following in _with_next(joins):
            end_ms = scenes.last_ms.get((group, join.member_id), join.at_ms)
            if following is not None:
                end_ms = min(end_ms, following.at_ms)
            found.append(Stretch(join.client, join.member_id, join.generation, join.at_ms, end_ms))
    return found


def periods(rows: Sequence[Mapping[str, Any]], side: str, end_ms: float) -> list[Period]:
    """Cut a group's time into rebalances and what stands between them.

    `rows` are the group's rows of the comparison, `side` is `observed` or `expected`. A rebalance
    reaches from its start to its assignment; to the end of its join phase where it leaves nobody.
    """

    def at(row: Mapping[str, Any], name: str) -> float | None:
        value: float | None = row[f"{side}_{name}_ms"]
        return value

    here = [(at(row, "started") or at(row, "joined"), row) for row in rows]
    begun = sorted(((at_ms, row) for at_ms, row in here if at_ms), key=lambda pair: pair[0])
    found = []
    for (start_ms, row), following in _with_next(begun):
        next_ms = following[0] if following else end_ms
        empty = row[f"{side}_ended_as"] == "empty"
        stands_ms = at(row, "assigned") or (at(row, "joined") if empty else None) or next_ms
        generation = row[f"{side}_generation"]
        found.append(Period(True, generation, start_ms, stands_ms, row))
        if not empty and stands_ms < next_ms:
            found.append(Period(False, generation, stands_ms, next_ms, row))
    return found


def _with_next(items: Sequence[T]) -> Iterator[tuple[T, T | None]]:
    following: list[T | None] = [*items[1:], None]
    return zip(items, following[: len(items)], strict=True)
