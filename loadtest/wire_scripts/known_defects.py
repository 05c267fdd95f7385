"""Wire scripts of known defects. The verdict judges the effect, so scripts accept any response.

Each restarts or removes a static member (KIP-345) in a way that some releases handle wrongly.
"""

import asyncio
import time
from contextlib import suppress

from kafka_protocol.errors import Error
from loadtest.history import now_ms
from loadtest.wire import WireError
from loadtest.wire_scripts import READY_FOR_KILL
from loadtest.wire_scripts.group import Group, complete_rebalance, form_group, leader_first
from loadtest.wire_scripts.members import (
    HEARTBEAT_INTERVAL_S,
    Member,
    UnexpectedResponse,
    keep_alive,
    rejoin_all,
    start_request,
    subscription,
    sync_all,
)

IN_ORDER_S = 0.5
"""How far apart two requests are whose order has to show: before 2.8 no line names whose return it
is about, and a busy broker may write the lines of requests 250 ms late."""
NONE_OR_REBALANCE = (Error.NONE, Error.REBALANCE_IN_PROGRESS)
"""The error codes of a heartbeat that a member of the group may get."""
KILL_WITHIN_S = 60
"""How long a script waits for its coordinator to be killed, and to be back."""
UNANSWERED_S = 8
"""How long a script waits for a response that may never come."""


async def stale_sync(group: Group) -> None:
    """A follower crashes between JoinGroup and SyncGroup and rejoins within its session."""
    group.session_ms, group.rebalance_ms = 10_000, 3_000
    a, b = group.static("a"), group.static("b")
    await asyncio.gather(await start_request(a.join()), await start_request(b.join()))
    leader, follower = leader_first(a, b)
    follower.wire.disconnect()
    await leader.sync()
    back = group.static(follower.name)
    await back.join()
    await back.sync()
    for _ in range(round(1.5 * group.rebalance_ms / 1000 / HEARTBEAT_INTERVAL_S)):
        if Error.REBALANCE_IN_PROGRESS in [
            await one.heartbeat(*NONE_OR_REBALANCE) for one in (leader, back)
        ]:
            await rejoin_all(leader, back)
        await asyncio.sleep(HEARTBEAT_INTERVAL_S)


async def resubscribed(group: Group) -> None:
    """A static member rejoins within its session and subscribes to one more topic."""
    group.session_ms = 10_000
    a, b = group.static("a"), group.static("b")
    await form_group(a, b)
    await keep_alive(1, a, b)
    b.wire.disconnect()
    b = group.static("b")
    b.metadata = subscription(topics=("orders", "payments"))
    back = await start_request(b.join(), 1)
    for _ in range(4):
        if await a.heartbeat(*NONE_OR_REBALANCE) == Error.REBALANCE_IN_PROGRESS:
            await a.join()
        await asyncio.sleep(HEARTBEAT_INTERVAL_S)
    await back
    await sync_all(*([a, b] if a.generation == b.generation > 1 else [b]))
    await keep_alive(1, a, b)


async def retimed(group: Group) -> None:
    """A static member rejoins with a longer session timeout, then is silent for less than that."""
    group.session_ms = 10_000
    a, b = group.static("a"), group.static("b", session_ms=2_000)
    await form_group(a, b)
    await keep_alive(1, a, b)
    b.wire.disconnect()
    b = group.static("b", session_ms=8_000)
    await b.join()
    await b.sync()
    await b.heartbeat()
    for _ in range(round(4 / HEARTBEAT_INTERVAL_S)):
        if await a.heartbeat(*NONE_OR_REBALANCE) == Error.REBALANCE_IN_PROGRESS:
            await rejoin_all(a)
        await asyncio.sleep(HEARTBEAT_INTERVAL_S)
    await b.heartbeat(Error.NONE, Error.UNKNOWN_MEMBER_ID)


async def missed(group: Group) -> None:
    """A static member misses a join phase and stays away, within its session timeout."""
    group.session_ms, group.rebalance_ms = 20_000, 3_000
    a, b = group.static("a"), group.static("b")
    await form_group(a, b)
    await keep_alive(1, a, b)
    a, b = leader_first(a, b)
    b.wire.disconnect()
    await a.join()
    await a.sync()
    for _ in range(round(1.5 * group.rebalance_ms / 1000 / HEARTBEAT_INTERVAL_S)):
        if await a.heartbeat(*NONE_OR_REBALANCE) == Error.REBALANCE_IN_PROGRESS:
            await rejoin_all(a)
        await asyncio.sleep(HEARTBEAT_INTERVAL_S)


async def unstored(group: Group) -> None:
    """The coordinator is killed after a static rejoin, between JoinGroup and SyncGroup."""
    group.session_ms, group.rebalance_ms = 60_000, 60_000
    a, b, c = (group.static(name) for name in "abc")
    await form_group(a, b, c)
    await keep_alive(1, a, b, c)
    a, b, c = leader_first(a, b, c)
    b.wire.disconnect()
    b = group.static(b.name)
    first = await start_request(a.join(), IN_ORDER_S)
    await complete_rebalance([first, await start_request(b.join())], c)
    await await_kill(a, b, c)  # the leader sends no SyncGroup
    await await_restart(group)
    for member in (a, b, c):
        member.wire.disconnect()
    if (
        await b.heartbeat(Error.NONE, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID)
        == Error.FENCED_INSTANCE_ID
    ):
        await asyncio.sleep(IN_ORDER_S)
        b = group.static(b.name)  # the fenced process ends; a new one starts
    await asyncio.gather(*[await start_request(member.join()) for member in (a, b, c)])
    await sync_all(a, b, c)
    await keep_alive(1, a, b, c)


async def locked_out(group: Group) -> None:
    """The only broker is killed; members send heartbeats as soon as it listens again."""
    group.session_ms = 6_000
    a, b = group.static("a"), group.static("b")
    await form_group(a, b)
    await await_kill(a, b)
    for member in (a, b):
        member.wire.disconnect()
    await await_restart(group)
    errors = [await member.heartbeat(Error.NONE, Error.UNKNOWN_MEMBER_ID) for member in (a, b)]
    if Error.UNKNOWN_MEMBER_ID in errors:
        a, b = group.static("a"), group.static("b")
        await form_group(a, b)
    await keep_alive(1, a, b)


async def await_kill(*members: Member) -> None:
    """Print that the script is ready for the kill; send heartbeats until the broker is gone."""
    print(f"{members[0].group}: {READY_FOR_KILL}", flush=True)
    deadline = time.monotonic() + KILL_WITHIN_S
    while time.monotonic() < deadline:
        # before 2.6.1 heartbeats are refused while the leader's SyncGroup is awaited (KAFKA-10134)
        heartbeats = (member.heartbeat(*NONE_OR_REBALANCE) for member in members)
        ends = await asyncio.gather(*heartbeats, return_exceptions=True)
        if any(isinstance(one, WireError) for one in ends):
            return
        if other := [one for one in ends if isinstance(one, BaseException)]:
            raise other[0]
        await asyncio.sleep(HEARTBEAT_INTERVAL_S)
    raise UnexpectedResponse(
        f"{members[0].group}: its coordinator was not killed; add a broker.kill fault"
    )


async def await_restart(group: Group) -> None:
    """Wait until the group has a coordinator that serves it."""
    deadline = time.monotonic() + KILL_WITHIN_S
    while time.monotonic() < deadline:
        try:
            return await group.find()
        except WireError:
            await asyncio.sleep(HEARTBEAT_INTERVAL_S / 5)
    raise UnexpectedResponse(
        f"{group.name}: no broker serves it within {KILL_WITHIN_S} s of the kill"
    )


async def replaced(group: Group) -> None:
    """A follower rejoins while the group waits for the leader's assignment."""
    group.session_ms = 10_000
    a, b = group.static("a"), group.static("b")
    await asyncio.gather(await start_request(a.join()), await start_request(b.join()))
    leader, follower = (a, b) if a.leader == a.member_id else (b, a)
    follower.wire.disconnect()
    back = group.static(follower.name)
    joining = await start_request(back.join(), 1)
    if joining.done():  # no rebalance: the leader knows only the old member id
        await joining
        await leader.sync()
        await back.sync()
    else:
        await asyncio.gather(leader.join(), joining)
        await sync_all(leader, back)
    await keep_alive(2, leader, back)


async def removed_in_sync(group: Group) -> None:
    """A follower is removed while its SyncGroup waits for the leader's assignment."""
    group.session_ms = group.rebalance_ms = 20_000
    a, b = group.static("a"), group.static("b")
    await asyncio.gather(await start_request(a.join()), await start_request(b.join()))
    leader, follower = leader_first(a, b)
    sent_ms = now_ms()
    syncing = await start_request(follower.sync(Error.UNKNOWN_MEMBER_ID), 0.5)
    await leader.remove({("", follower.instance): Error.NONE})
    await rejoin_all(leader)
    await keep_alive(UNANSWERED_S, leader)
    if not syncing.done():
        group.history.write(
            "unanswered",
            member=follower.wire.client_id,
            group=group.name,
            kind="static",
            api="SYNC_GROUP",
            sent_at_ms=sent_ms,
            member_id=follower.member_id,
            instance_id=follower.instance,
        )
    follower.wire.disconnect()
    with suppress(WireError):  # the connection is closed
        await syncing


KNOWN_DEFECTS = (
    stale_sync, resubscribed, retimed, replaced, missed, unstored, locked_out, removed_in_sync,
)  # fmt: skip
