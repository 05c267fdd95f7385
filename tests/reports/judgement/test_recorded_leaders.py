"""What real brokers logged of static leaders that restart before their topic grows.

Recorded by `groupquake run NAME --kafka VERSION --seed 1 --no-report`; `skip-assignment` with
longer times than it has in the library, which `experiment.yaml` shows.
"""

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reference_coordinator.replay import ObservedRequest
from reports.judgement.costs import topic_growths
from reports.judgement.digest import Digest, Digester
from reports.judgement.group import check_rows
from reports.judgement.recording import Recording
from tests.recorded.logs import observed

FOLDER = Path(__file__).parents[2] / "recorded" / "leaders"
ADDED = ["orders-4", "orders-5"]
SKIPS = "skip-assignment-4.3.0"
MISSES = "leader-misses-partition-4.3.0"


@cache
def recording(name: str) -> Recording:
    return Recording(FOLDER / name)


def tables(name: str, group: str) -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    judge, rows = recording(name).context, recording(name).rows_by_group[group]
    for table, row in check_rows(judge, group, rows):
        found[table].append({"group": group, **row})
    return found


def last_return(name: str, group: str) -> ObservedRequest:
    """Return the last JoinGroup without a member id: the leader's static rejoin."""
    rows = [row for row in recording(name).rows_by_group[group] if row["template"] is None]
    joins = [observed(row) for row in rows if row["api"] == "JOIN_GROUP" and row["readable"]]
    return [one for one in joins if not one.request["memberId"]][-1]


@pytest.mark.parametrize(
    ("name", "group", "left"),
    [
        (SKIPS, "java", []),
        (SKIPS, "leader_returns", []),
        (SKIPS, "leader_misses", ADDED),
        (MISSES, "old_leader_returns", ADDED),
        (MISSES, "static", []),
    ],
)
def test_owners_of_added_partitions(name: str, group: str, left: list[str]) -> None:
    run, rows = recording(name).run, tables(name, group)
    named = [(name, row) for name in ("assigned", "observed") for row in rows[name]]
    *_, (_, made) = Digester.of(run).digested(group, named)
    assert Digest.from_json(made["digest"]).unowned == left


@pytest.mark.parametrize(
    ("name", "group", "version", "skips"),
    [
        (SKIPS, "java", 9, True),
        (SKIPS, "leader_returns", 9, True),
        (SKIPS, "leader_misses", 9, True),
        (MISSES, "old_leader_returns", 5, None),
        (MISSES, "static", 5, None),
    ],
)
def test_response_to_the_static_rejoin_of_a_leader(
    name: str, group: str, version: int, skips: bool | None
) -> None:
    back = last_return(name, group)
    assert back.api_version == version
    assert back.response_fields.get("skipAssignment") == skips
    leads = back.response["leader"] == back.response["memberId"]
    assert leads == bool(skips)
    assert bool(back.response["members"]) == leads


@pytest.mark.parametrize(
    ("name", "group", "expected"),
    [
        (SKIPS, "java", ("leader_rejoin", "cached metadata has changed")),
        (SKIPS, "leader_returns", ("leader_rejoin", "cached metadata has changed")),
        (SKIPS, "leader_misses", None),
        (MISSES, "old_leader_returns", None),
        (MISSES, "static", ("leader_rejoin", None)),
    ],
)
def test_the_rebalance_that_growth_brought(
    name: str, group: str, expected: tuple[str, str | None] | None
) -> None:
    run, rows = recording(name).run, tables(name, group)
    (one,) = topic_growths(run.faults, rows["observed"], {group: ("orders",)})
    row = one.rebalance
    assert (None if row is None else (row["reason"], row["client_reason"])) == expected
    assert one.delay_ms is None or 0 <= one.delay_ms < 5_000
