"""Big groups of groupquake's own members, bounced in waves on real brokers."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from scenarios import find
from tests.groupquake.conftest import Command
from tests.groupquake.whole_run.conftest import WholeRun

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


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


def test_waves_cost_no_rebalance(whole_run: WholeRun) -> None:
    shop = whole_run.verdict["groups"]["shop"]
    assert shop["rebalances_observed"]["impact"] == 0
    assert shop["faults"] == {"member.restart": 25}
    assert shop["responses_checked"] > 5 * 25
    intents = [one for one in whole_run.journal if one["event"] == "intent"]
    waves = {one["fault_id"].rpartition(".")[0] for one in intents if "shop-" in one["target"]}
    assert len(waves) == 3, "25 members are waves of 12, 12 and 1"


def test_records_are_as_large_as_on_disk(whole_run: WholeRun) -> None:
    for name, group in whole_run.verdict["groups"].items():
        found = set(stored_alone(whole_run.folder / "brokers" / "1" / "data", name))
        assert group["record_bytes"] in found
        assert group["record_limit_bytes"] == 1_048_588
    assert "1,024.0 KiB" in (whole_run.folder / "report.html").read_text()


@pytest.mark.usefixtures("spark")
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["big-group", "big-groups"])
def test_the_library_at_full_size(name: str, groupquake: Command, tmp_path: Path) -> None:
    done = groupquake("run", name, "--seed", 1)
    assert done.code == 0, done.out + done.err
    groups = json.loads((tmp_path / "runs" / "latest" / "verdict.json").read_text())["groups"]
    sizes = {group.name: group.members[0].count for group in find(name).workload.groups}
    assert groups.keys() == sizes.keys()
    for group, size in sizes.items():
        assert groups[group]["rebalances_observed"]["impact"] == 0
        assert groups[group]["faults"] == {"member.restart": size}
        assert groups[group]["record_bytes"] > 100 * size
