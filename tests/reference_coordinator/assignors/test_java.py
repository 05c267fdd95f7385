"""What Kafka's own assignors answered to random groups (`record` says how they were asked)."""

import json
import lzma
from base64 import b64decode
from functools import cache

import pytest

from reference_coordinator.assignors import (
    ASSIGNORS,
    Assignment,
    AssignorError,
    Member,
    Subscription,
)
from tests.reference_coordinator.assignors.record import EACH, RECORD


@cache
def recorded() -> list[dict]:
    return json.loads(lzma.decompress(RECORD.read_bytes()))["groups"]


def members(group: dict) -> list[Member]:
    return [
        Member(member_id, Subscription.decode(b64decode(blob)), instance)
        for member_id, instance, blob in group["members"]
    ]


def computed(group: dict) -> dict:
    """What ours say, in the form of the record."""
    try:
        shares = ASSIGNORS[group["assignor"]](members(group), group["partitions"])
    except AssignorError:
        return {"exception": "java.lang.NullPointerException"}
    return {"shares": {key: Assignment(tuple(share)).encode() for key, share in shares.items()}}


def answered(group: dict) -> dict:
    if "exception" in group:
        return {"exception": group["exception"]}
    return {"shares": {key: b64decode(blob) for key, blob in group["shares"].items()}}


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_every_byte_is_the_same(assignor):
    """Which partitions, in which order, in which blob: a Java leader would send just this."""
    mine = [group for group in recorded() if group["assignor"] == assignor]
    for group in mine:
        assert computed(group) == answered(group), group
    assert len(mine) >= 4 * EACH


def test_the_record_covers_the_rules():
    """Both ways of the sticky ones, outdated and disputed claims, static members, growth."""
    groups = [(group, members(group)) for group in recorded()]
    topics = [{frozenset(member.subscription.topics) for member in all_} for _, all_ in groups]
    assert sum(len(of_one) > 1 for of_one in topics) > 100
    assert sum("exception" in group for group, _ in groups) >= 3
    claims = [[p for member in all_ for p in member.subscription.owned] for _, all_ in groups]
    assert sum(len(of_one) > len(set(of_one)) for of_one in claims) > 15
    static = [{member.group_instance_id is None for member in all_} for _, all_ in groups]
    assert sum(len(kinds) == 2 for kinds in static) > 100
