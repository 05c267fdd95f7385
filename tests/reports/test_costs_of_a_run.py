"""A whole run's costs, counted again with nothing but a search in its files."""

import json
import re

import pytest

from reports.judgement.run.run_folder import RunFolder

pytestmark = pytest.mark.spark


def found(folder, group, pattern):
    """Count the lines of the brokers about a group that a pattern matches."""
    lines = [
        line
        for log in folder.glob("brokers/*/group.log")
        for line in log.read_text().splitlines()
        if f'"groupId":"{group}"' in line or f" in group {group} " in line
    ]
    return sum(bool(re.search(pattern, line)) for line in lines)


def write_history(folder, group):
    """Let a member lose its partition to another in the impact phase; the last line is cut off."""
    began_ms = dict(RunFolder(folder).phases)["impact"]
    lines = [
        json.dumps({
            "at_ms": began_ms + after_ms, "member": member, "group": group, "kind": "static",
            "event": event, "partitions": [f"orders-{number}"],
        })
        for after_ms, member, event, number in (
            (100, "a", "assigned", 0), (200, "a", "revoked", 0), (230, "b", "assigned", 0),
            (250, "a", "assigned", 0), (260, "b", "assigned", 47), (260, "b", "assigned", 48),
        )
    ]  # fmt: skip
    (folder / "history.jsonl").write_text("\n".join([*lines, lines[0][:-30]]))


def test_costs_are_those_that_a_search_finds(recorded, judge):
    first, *others = [group.name for group in RunFolder(recorded).experiment.workload.groups]
    write_history(recorded, first)
    groups = judge(recorded)["groups"]
    assert groups[first]["stop_the_world_ms"] == {
        "stops": 1, "p50": 50.0, "p99": 50.0, "max": 50.0, "total": 50.0
    }  # fmt: skip
    assert groups[first]["partitions_moved"]["impact"] == 2
    assert all(groups[name]["partitions_moved"] is None for name in others)
    for name, group in groups.items():
        assert group["fences"]["total"] == found(recorded, name, r'"errorCode":82\b')
        assert group["evictions"]["total"] == found(recorded, name, "has failed, removing it")
        causes = sum(sum(counts.values()) for counts in group["by_cause"].values())
        assert causes == group["rebalances_observed"]["total"]
    assert sum(group["fences"]["total"] for group in groups.values()) > 0
    assert sum(group["evictions"]["total"] for group in groups.values()) > 0
    page = (recorded / "report.html").read_text()
    assert page.count('id="owners-') == 1
    assert '"orders-47"' in page
    assert '"orders-48"' not in page  # the owners of the first 48 partitions are drawn
