"""Wire scripts in which a second process with an instance id joins while the group is in a state.

The second process replaces the first (KIP-345). The first is fenced: at once if it waits for a
response, otherwise at its next request. The group's state decides whether this costs a rebalance.
Its leader keeps the group in PreparingRebalance or CompletingRebalance meanwhile.
"""

from concurrent.futures import Future
from typing import Any

from kafka_protocol.errors import Error
from loadtest.timing import NO_EXPIRY_MS
from loadtest.wire_scripts.members import (
    Group,
    ScriptedMember,
    await_rebalance,
    complete_rebalance,
    form_group,
    keep_alive,
    rebalance,
    start,
    subscription,
    sync_all,
)


def while_empty(group: Group) -> None:
    """The first process is removed and does not know it yet: its group is Empty."""
    group.session_ms = NO_EXPIRY_MS
    old, new = group.static("a"), group.static("a")
    form_group(old)
    group.static("operator").remove_members({("", "a"): Error.NONE})
    form_group(new)
    expect_fenced(old)
    keep_alive(1, new)


def while_preparing(group: Group) -> None:
    """The first process waits in JoinGroup for a pending member (KIP-394) that does not join."""
    leader, old, new = led_group(group)
    pending = group.dynamic("pending")
    pending.join(Error.MEMBER_ID_REQUIRED)
    joins = [start_rebalance(leader)]
    await_rebalance(old)
    fenced = start(old.join, Error.FENCED_INSTANCE_ID)
    joins.append(start(new.join))
    fenced.result()
    pending.leave()
    complete_rebalance(joins)
    sync_all(leader, new)
    expect_fenced(old)
    keep_alive(1, leader, new)


def while_completing(group: Group) -> None:
    """The first process waits in SyncGroup for a leader that withholds its SyncGroup."""
    leader, old, new = led_group(group)
    complete_rebalance([start_rebalance(leader)], old)
    fenced = start(old.sync, Error.FENCED_INSTANCE_ID)
    joins = [start(new.join)]
    fenced.result()
    leader.sync(Error.REBALANCE_IN_PROGRESS)
    complete_rebalance(joins, leader)
    sync_all(leader, new)
    expect_fenced(old)
    keep_alive(1, leader, new)


def while_stable(group: Group) -> None:
    """The first process sends heartbeats in a Stable group."""
    group.session_ms = NO_EXPIRY_MS
    a, old, new = group.static("a"), group.static("b"), group.static("b")
    form_group(a, old, alive_s=1)
    new.rejoin()
    expect_fenced(old)
    keep_alive(1, a, new)


def led_group(group: Group) -> tuple[ScriptedMember, ScriptedMember, ScriptedMember]:
    """Form a group of a leader and a follower; return them, and a second process of the latter."""
    group.session_ms = group.rebalance_ms = NO_EXPIRY_MS
    leader, follower, second = group.static("leader"), group.static("b"), group.static("b")
    form_group(leader)
    rebalance(follower, leader)
    return leader, follower, second


def start_rebalance(leader: ScriptedMember) -> Future[Any]:
    """Let a leader join with another subscription, which makes every coordinator rebalance."""
    leader.protocols = (("range", subscription(b"another")),)
    return start(leader.join)


def expect_fenced(old: ScriptedMember) -> None:
    """Expect that every request of the first process is fenced."""
    old.heartbeat(Error.FENCED_INSTANCE_ID)
    old.join(Error.FENCED_INSTANCE_ID)
    old.leave(Error.FENCED_INSTANCE_ID)


DUPLICATE_INSTANCE_IDS = (while_empty, while_preparing, while_completing, while_stable)
