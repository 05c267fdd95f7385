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


CHANGED = ("leader_rejoin", "cached metadata has changed")


@pytest.mark.parametrize(
    ("name", "group", "version", "skips", "left", "brought"),
    [
        (SKIPS, "java", 9, True, [], CHANGED),
        (SKIPS, "leader_returns", 9, True, [], CHANGED),
        (SKIPS, "leader_misses", 9, True, ADDED, None),
        (MISSES, "old_leader_returns", 5, None, ADDED, None),
        (MISSES, "static", 5, None, [], ("leader_rejoin", None)),
    ],
)
def test_a_static_leader_that_returns_before_its_topic_grows(
    name, group, version, skips, left, brought
):
    """Its answer, the owners of the added partitions, and the rebalance that growth brought."""
    back = last_return(name, group)
    assert back.api_version == version
    assert back.response_fields.get("skipAssignment") == skips
    leads = back.response["leader"] == back.response["memberId"]
    assert bool(back.response["members"]) == leads == bool(skips)

    run, rows = recording(name).run, tables(name, group)
    named = [(name, row) for name in ("assigned", "observed") for row in rows[name]]
    *_, (_, made) = Digester.of(run).digested(group, named)
    assert Digest.from_json(made["digest"]).unowned == left

    (one,) = topic_growths(run.faults, rows["observed"], {group: ("orders",)})
    row = one.rebalance
    assert (None if row is None else (row["reason"], row["client_reason"])) == brought
    assert one.delay_ms is None or 0 <= one.delay_ms < 5_000
