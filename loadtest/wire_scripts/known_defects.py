"""Wire scripts of known defects. The verdict judges the effect, so scripts accept any response.

Each restarts or removes a static member (KIP-345) in a way that some releases handle wrongly.
"""

import time
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from kafka_protocol.errors import Error
from loadtest.history import now_ms
from loadtest.timing import HEARTBEAT_S, IN_ORDER_S, KILL_WITHIN_S, UNANSWERED_S
from loadtest.wire import WireError
from loadtest.wire.member import UnexpectedResponse
from loadtest.wire_scripts import READY
from loadtest.wire_scripts.members import (
    NONE_OR_REBALANCE,
    Group,
    ScriptedMember,
    complete_rebalance,
    form_group,
    gather,
    heartbeats_for,
    keep_alive,
    leader_first,
    rejoin_all,
    start,
    subscription,
    sync_all,
)


def stale_sync(group: Group) -> None:
    """A follower crashes between JoinGroup and SyncGroup and rejoins within its session."""
    group.session_ms, group.rebalance_ms = 10_000, 3_000
    a, b = group.static("a"), group.static("b")
    gather(start(a.join), start(b.join))
    leader, follower = leader_first(a, b)
    follower.disconnect()
    leader.sync()
    back = group.static(follower.name)
    back.rejoin()
    heartbeats_for(1.5 * group.rebalance_ms / 1000, leader, back)


def resubscribed(group: Group) -> None:
    """A static member rejoins within its session and subscribes to one more topic."""
    group.session_ms = 10_000
    a, b = group.static("a"), group.static("b")
    form_group(a, b, alive_s=1)
    b.disconnect()
    b = group.static("b")
    b.protocols = (("range", subscription(topics=("orders", "payments"))),)
    back = start(b.join, ahead_s=1)
    for _ in range(4):
        if a.heartbeat(*NONE_OR_REBALANCE) == Error.REBALANCE_IN_PROGRESS:
            a.join()
        time.sleep(HEARTBEAT_S)
    back.result()
    sync_all(*([a, b] if a.generation == b.generation > 1 else [b]))
    keep_alive(1, a, b)


def retimed(group: Group) -> None:
    """A static member rejoins with a longer session timeout, then is silent for less than that."""
    group.session_ms = 10_000
    a, b = group.static("a"), group.static("b", session_timeout_ms=2_000)
    form_group(a, b, alive_s=1)
    b.disconnect()
    b = group.static("b", session_timeout_ms=8_000)
    b.rejoin()
    b.heartbeat()
    heartbeats_for(4, a)
    b.heartbeat(Error.NONE, Error.UNKNOWN_MEMBER_ID)


def missed(group: Group) -> None:
    """A static member misses a join phase and stays away, within its session timeout."""
    group.session_ms, group.rebalance_ms = 20_000, 3_000
    a, b = group.static("a"), group.static("b")
    form_group(a, b, alive_s=1)
    a, b = leader_first(a, b)
    b.disconnect()
    a.rejoin()
    heartbeats_for(1.5 * group.rebalance_ms / 1000, a)


def unstored(group: Group) -> None:
    """The coordinator is killed after a static rejoin, between JoinGroup and SyncGroup."""
    group.session_ms, group.rebalance_ms = 60_000, 60_000
    a, b, c = (group.static(name) for name in "abc")
    form_group(a, b, c, alive_s=1)
    a, b, c = leader_first(a, b, c)
    b.disconnect()
    b = group.static(b.name)
    first = start(a.join, ahead_s=IN_ORDER_S)
    complete_rebalance([first, start(b.join)], c)
    await_fault(a, b, c)  # the leader sends no SyncGroup
    await_restart(group)
    for member in (a, b, c):
        member.disconnect()
    if (
        b.heartbeat(Error.NONE, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID)
        == Error.FENCED_INSTANCE_ID
    ):
        time.sleep(IN_ORDER_S)
        b = group.static(b.name)  # the fenced process ends; a new one starts
    gather(*[start(member.join) for member in (a, b, c)])
    sync_all(a, b, c)
    keep_alive(1, a, b, c)


def locked_out(group: Group) -> None:
    """The only broker is killed; members send heartbeats as soon as it listens again."""
    group.session_ms = 6_000
    a, b = group.static("a"), group.static("b")
    form_group(a, b)
    await_fault(a, b)
    for member in (a, b):
        member.disconnect()
    await_restart(group)
    errors = [member.heartbeat(Error.NONE, Error.UNKNOWN_MEMBER_ID) for member in (a, b)]
    if Error.UNKNOWN_MEMBER_ID in errors:
        a, b = group.static("a"), group.static("b")
        form_group(a, b, alive_s=1)


def await_fault(*members: ScriptedMember) -> None:
    """Print that the script is ready; send heartbeats until the broker is gone, or was moved."""
    print(f"{members[0].group}: {READY}", flush=True)
    deadline = time.monotonic() + KILL_WITHIN_S
    while time.monotonic() < deadline:
        # before 2.6.1 heartbeats are refused while the leader's SyncGroup is awaited (KAFKA-10134)
        fine = (*NONE_OR_REBALANCE, Error.NOT_COORDINATOR)
        asked = [start(member.heartbeat, *fine, ahead_s=0) for member in members]
        if any(isinstance(one.exception(), WireError) for one in asked):
            return
        gather(*asked)
        if Error.NOT_COORDINATOR in (one.result() for one in asked):
            return
        time.sleep(HEARTBEAT_S)
    raise UnexpectedResponse(f"{members[0].group}: no fault came to its coordinator; add one")


def await_restart(group: Group) -> None:
    """Wait until the group has a coordinator that serves it."""
    deadline = time.monotonic() + KILL_WITHIN_S
    while time.monotonic() < deadline:
        try:
            return group.find()
        except WireError:
            time.sleep(HEARTBEAT_S / 5)
    raise UnexpectedResponse(
        f"{group.name}: no broker serves it within {KILL_WITHIN_S} s of the kill"
    )


def replaced(group: Group) -> None:
    """A follower rejoins while the group waits for the leader's assignment."""
    group.session_ms = 10_000
    a, b = group.static("a"), group.static("b")
    gather(start(a.join), start(b.join))
    leader, follower = leader_first(a, b)
    follower.disconnect()
    back = group.static(follower.name)
    joining = start(back.join, ahead_s=1)
    if joining.done():  # no rebalance: the leader knows only the old member id
        joining.result()
        leader.sync()
        back.sync()
    else:
        leader.join()
        gather(joining)
        sync_all(leader, back)
    keep_alive(2, leader, back)


def removed_in_sync(group: Group) -> None:
    """A follower is removed while its SyncGroup waits for the leader's assignment."""
    group.session_ms = group.rebalance_ms = 20_000
    a, b = group.static("a"), group.static("b")
    gather(start(a.join), start(b.join))
    leader, follower = leader_first(a, b)
    sent_ms = now_ms()
    syncing = start(follower.sync, Error.UNKNOWN_MEMBER_ID, ahead_s=0.5)
    leader.remove_members({("", follower.instance_id): Error.NONE})
    rejoin_all(leader)
    keep_alive(UNANSWERED_S, leader)
    _end(group, follower, syncing, sent_ms)


def given_up(group: Group) -> None:
    """Its coordinator gives the group up while a SyncGroup waits, and a batch of records is open.

    Others keep the batch open: members of another group in this partition commit all the time.
    """
    group.session_ms = group.rebalance_ms = 60_000
    a, b = group.static("a"), group.static("b")
    gather(start(a.join), start(b.join))
    leader, follower = leader_first(a, b)
    sent_ms = now_ms()
    syncing = start(follower.sync, Error.NOT_COORDINATOR)
    await_fault(leader)
    for _ in range(round(UNANSWERED_S / HEARTBEAT_S)):
        leader.heartbeat(Error.NOT_COORDINATOR)
        time.sleep(HEARTBEAT_S)
    _end(group, follower, syncing, sent_ms)
    group.find()
    form_group(group.static("a"), group.static("b"), alive_s=1)


def _end(group: Group, follower: ScriptedMember, syncing: Future[Any], sent_ms: float) -> None:
    """Write down that a SyncGroup had no response, if it had none, and end its process."""
    if not syncing.done():
        group.history.write(
            "unanswered",
            member=follower.client_id,
            group=group.name,
            kind="static",
            api="SYNC_GROUP",
            sent_at_ms=sent_ms,
            member_id=follower.member_id,
            instance_id=follower.instance_id,
        )
    follower.disconnect()
    with suppress(WireError):  # the connection is closed
        syncing.result()


KNOWN_DEFECTS = (
    stale_sync, resubscribed, retimed, replaced, missed, unstored, locked_out, removed_in_sync,
    given_up,
)  # fmt: skip
