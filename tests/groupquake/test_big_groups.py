"""Big groups of groupquake's own members, bounced in waves on real brokers."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scenarios import find
from tests.groupquake.conftest import Command

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.usefixtures("spark")]

SMALL = {"shop-01": 25, "shop-02": 25, "shop-03": 25, "shop-04": 25, "depot": 100}


def small(folder: Path) -> Path:
    """Write the experiments of the library as one, with fewer members and shorter times."""
    groups = [
        {
            "name": name,
            "topics": ["orders"],
            "session_timeout": "10s",
            "heartbeat_interval": "500ms",
            "commit_interval": "2s",
            "members": [
                {"kind": "static", "count": size, "instance_id": f"{name}-{{n}}", "client": "wire"}
            ],
        }
        for name, size in SMALL.items()
    ]
    file = folder / "small.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "name": "small-big-groups",
                "cluster": {"brokers": 1, "config": {"group.initial.rebalance.delay.ms": 1_500}},
                "workload": {"topics": [{"name": "orders", "partitions": 100}], "groups": groups},
                "steady_state": {
                    "within": "60s",
                    "probes": [
                        {"name": f"{name} {what}", "group": name, "probe": what, "tolerance": is_}
                        for name in SMALL
                        for what, is_ in (("group.members", "all"), ("group.state", "Stable"))
                    ],
                },
                "faults": [
                    {
                        "fault": "group.bounce",
                        "target": "all",
                        "group": name,
                        "at": "1s",
                        "down_for": "1500ms",
                        "every": "4s",
                        "at_once": size // 2,
                    }
                    for name, size in SMALL.items()
                ],
                "phases": {"impact": "12s", "recovery": "1s"},
                "expect": [{"group": name, "phase": "impact", "rebalances": 0} for name in SMALL],
            }
        )
    )
    return file


def stored_alone(data: Path, group: str) -> Iterator[int]:
    """Yield the sizes of batches with the record of a group, of its first record if with others.

    A batch of format 2 (KIP-98) has a header of 61 bytes; then each record begins with its length,
    attributes, the two differences to the batch's time and offset (0 in the first), and the key.
    """
    key = struct.pack(">hh", 2, len(group)) + group.encode()
    for log in data.glob("**/__consumer_offsets-*/*.log"):
        content, at = log.read_bytes(), 0
        while at + 61 < len(content):
            (length,) = struct.unpack_from(">i", content, at + 8)
            if length <= 0:  # the file is longer than what is written
                break
            size, begin = varint(content, at + 61)
            key_size, key_at = varint(content, begin + 3)
            if content[key_at : key_at + key_size] == key:
                yield begin + size - at
            at += 12 + length


def varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a number in zigzag form, and where it ends."""
    number = shift = 0
    while True:
        byte = content[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at


def verdict_of(runs: Path) -> dict[str, Any]:
    verdict: dict[str, Any] = json.loads((runs / "latest" / "verdict.json").read_text())
    return verdict


def test_waves_cost_no_rebalance_and_records_are_as_large_as_on_disk(
    groupquake: Command, tmp_path: Path
) -> None:
    done = groupquake("run", small(tmp_path), "--seed", 1)
    assert done.code == 0, done.out + done.err
    verdict = verdict_of(tmp_path / "runs")
    for name, size in SMALL.items():
        group = verdict["groups"][name]
        assert group["rebalances_observed"]["impact"] == 0
        assert group["faults"] == {"member.restart": size}
        assert group["responses_explained"] == group["responses_checked"] > 5 * size
        found = set(stored_alone(tmp_path / "runs" / "latest" / "brokers" / "1" / "data", name))
        assert group["record_bytes"] in found
        assert group["record_limit_bytes"] == 1_048_588
    assert all(fault["verified"] and fault["healed"] for fault in verdict["faults"])
    journal = (tmp_path / "runs" / "latest" / "journal.jsonl").read_text().splitlines()
    intents = [e for e in map(json.loads, journal) if e["event"] == "intent"]
    waves = {entry["fault_id"].rpartition(".")[0] for entry in intents}
    assert len(waves) == 4 * 3 + 2, "25 members are waves of 12, 12 and 1"
    page = (tmp_path / "runs" / "latest" / "report.html").read_text()
    assert "1,024.0 KiB" in page


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["big-group", "big-groups"])
def test_the_library_at_full_size(name: str, groupquake: Command, tmp_path: Path) -> None:
    done = groupquake("run", name, "--seed", 1)
    assert done.code == 0, done.out + done.err
    groups = verdict_of(tmp_path / "runs")["groups"]
    sizes = {group.name: group.members[0].count for group in find(name).workload.groups}
    assert groups.keys() == sizes.keys()
    for group, size in sizes.items():
        assert groups[group]["rebalances_observed"]["impact"] == 0
        assert groups[group]["faults"] == {"member.restart": size}
        assert groups[group]["record_bytes"] > 100 * size
