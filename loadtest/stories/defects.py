"""Stories of known defects: what they bring about is for the verdict to say, so any answer will do.

Each restarts a static member (KIP-345) in a way that some release has not thought of.
"""

import asyncio

from loadtest.stories.members import (
    BEAT_S,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    beat,
    begin,
    rejoin,
    share_out,
    subscription,
)
from loadtest.stories.stories import Group, form

LIVING = (NONE, REBALANCE_IN_PROGRESS)
"""What a heartbeat may be answered."""


async def stale_sync(group: Group) -> None:
    """A follower dies between JoinGroup and SyncGroup and is back within its session."""
    group.session_ms, group.rebalance_ms = 10_000, 3_000
    a, b = group.static("a"), group.static("b")
    await asyncio.gather(await begin(a.join()), await begin(b.join()))
    leader, follower = (a, b) if a.leader == a.member_id else (b, a)
    follower.wire.cut()
    await leader.sync()
    back = group.static(follower.name)
    await back.join()
    await back.sync()
    for _ in range(round(1.5 * group.rebalance_ms / 1000 / BEAT_S)):
        if REBALANCE_IN_PROGRESS in [await one.heartbeat(*LIVING) for one in (leader, back)]:
            await rejoin(leader, back)
        await asyncio.sleep(BEAT_S)


async def resubscribed(group: Group) -> None:
    """A static member is back within its session and subscribes to more than before."""
    group.session_ms = 10_000
    a, b = group.static("a"), group.static("b")
    await form(a, b)
    await beat(1, a, b)
    b.wire.cut()
    b = group.static("b")
    b.metadata = subscription(b"more")
    back = await begin(b.join(), 1)
    for _ in range(4):
        if await a.heartbeat(*LIVING) == REBALANCE_IN_PROGRESS:
            await a.join()
        await asyncio.sleep(BEAT_S)
    await back
    await share_out(*([a, b] if a.generation == b.generation > 1 else [b]))
    await beat(1, a, b)


async def retimed(group: Group) -> None:
    """A static member is back with a longer session than before, and falls silent for less."""
    group.session_ms = 10_000
    a, b = group.static("a"), group.static("b", session_ms=2_000)
    await form(a, b)
    await beat(1, a, b)
    b.wire.cut()
    b = group.static("b", session_ms=8_000)
    await b.join()
    await b.sync()
    await b.heartbeat()
    for _ in range(round(4 / BEAT_S)):
        if await a.heartbeat(*LIVING) == REBALANCE_IN_PROGRESS:
            await rejoin(a)
        await asyncio.sleep(BEAT_S)
    await b.heartbeat(NONE, UNKNOWN_MEMBER_ID)


async def replaced(group: Group) -> None:
    """A follower is replaced while the group waits for its leader's assignment."""
    group.session_ms = 10_000
    a, b = group.static("a"), group.static("b")
    await asyncio.gather(await begin(a.join()), await begin(b.join()))
    leader, follower = (a, b) if a.leader == a.member_id else (b, a)
    follower.wire.cut()
    back = group.static(follower.name)
    joining = await begin(back.join(), 1)
    if joining.done():  # no rebalance: the leader knows the old id alone
        await joining
        await leader.sync()
        await back.sync()
    else:
        await asyncio.gather(leader.join(), joining)
        await share_out(leader, back)
    await beat(2, leader, back)


DEFECTS = (stale_sync, resubscribed, retimed, replaced)
