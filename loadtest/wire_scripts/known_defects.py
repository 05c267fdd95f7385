"""Stories of known defects: what they bring about is for the verdict to say, so any answer will do.

Each restarts a static member (KIP-345) in a way that some release has not thought of.
"""

import asyncio
import time

from kafka_protocol.errors import Error
from loadtest.wire import WireError
from loadtest.wire_scripts.group import Group, follow_into, form, led
from loadtest.wire_scripts.members import (
    BEAT_S,
    Member,
    Unexpected,
    beat,
    begin,
    rejoin,
    share_out,
    subscription,
)

LIVING = (Error.NONE, Error.REBALANCE_IN_PROGRESS)
"""What a heartbeat may be answered."""
PATIENCE_S = 60
"""How long a story waits for its coordinator to be killed, and for it to be back."""


async def stale_sync(group: Group) -> None:
    """A follower dies between JoinGroup and SyncGroup and is back within its session."""
    group.session_ms, group.rebalance_ms = 10_000, 3_000
    a, b = group.static("a"), group.static("b")
    await asyncio.gather(await begin(a.join()), await begin(b.join()))
    leader, follower = led(a, b)
    follower.wire.cut()
    await leader.sync()
    back = group.static(follower.name)
    await back.join()
    await back.sync()
    for _ in range(round(1.5 * group.rebalance_ms / 1000 / BEAT_S)):
        if Error.REBALANCE_IN_PROGRESS in [await one.heartbeat(*LIVING) for one in (leader, back)]:
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
    b.metadata = subscription(topics=("orders", "payments"))
    back = await begin(b.join(), 1)
    for _ in range(4):
        if await a.heartbeat(*LIVING) == Error.REBALANCE_IN_PROGRESS:
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
        if await a.heartbeat(*LIVING) == Error.REBALANCE_IN_PROGRESS:
            await rejoin(a)
        await asyncio.sleep(BEAT_S)
    await b.heartbeat(Error.NONE, Error.UNKNOWN_MEMBER_ID)


async def missed(group: Group) -> None:
    """A static member is away for a join phase, and within its session for longer."""
    group.session_ms, group.rebalance_ms = 20_000, 3_000
    a, b = group.static("a"), group.static("b")
    await form(a, b)
    await beat(1, a, b)
    a, b = led(a, b)
    b.wire.cut()
    await a.join()
    await a.sync()
    for _ in range(round(1.5 * group.rebalance_ms / 1000 / BEAT_S)):
        if await a.heartbeat(*LIVING) == Error.REBALANCE_IN_PROGRESS:
            await rejoin(a)
        await asyncio.sleep(BEAT_S)


async def unstored(group: Group) -> None:
    """The coordinator dies between JoinGroup and SyncGroup, after a static member's return."""
    group.session_ms, group.rebalance_ms = 60_000, 60_000
    a, b, c = (group.static(name) for name in "abc")
    await form(a, b, c)
    await beat(1, a, b, c)
    a, b, c = led(a, b, c)
    b.wire.cut()
    b = group.static(b.name)
    await follow_into([await begin(a.join()), await begin(b.join())], c)
    await until_killed(a, b, c)  # the leader does not say who gets what
    await until_back(group)
    for member in (a, b, c):
        member.wire.cut()
    if (
        await b.heartbeat(Error.NONE, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID)
        == Error.FENCED_INSTANCE_ID
    ):
        b = group.static(b.name)  # that process ends, and another is started
    await asyncio.gather(*[await begin(member.join()) for member in (a, b, c)])
    await share_out(a, b, c)
    await beat(1, a, b, c)


async def locked_out(group: Group) -> None:
    """The only broker is killed; members say that they live as soon as it listens again."""
    group.session_ms = 6_000
    a, b = group.static("a"), group.static("b")
    await form(a, b)
    await until_killed(a, b)
    for member in (a, b):
        member.wire.cut()
    await until_back(group)
    told = [await member.heartbeat(Error.NONE, Error.UNKNOWN_MEMBER_ID) for member in (a, b)]
    if Error.UNKNOWN_MEMBER_ID in told:
        a, b = group.static("a"), group.static("b")
        await form(a, b)
    await beat(1, a, b)


async def until_killed(*members: Member) -> None:
    """Let members live until their broker is gone; that it may be is said aloud."""
    print(f"{members[0].group}: holds", flush=True)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        lives = (member.heartbeat() for member in members)
        told = await asyncio.gather(*lives, return_exceptions=True)
        if any(isinstance(one, WireError) for one in told):
            return
        if other := [one for one in told if isinstance(one, BaseException)]:
            raise other[0]
        await asyncio.sleep(BEAT_S)
    raise Unexpected(f"{members[0].group}: nobody kills its coordinator")


async def until_back(group: Group) -> None:
    """Wait until a broker coordinates the group and takes requests."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            return await group.find()
        except WireError:
            await asyncio.sleep(BEAT_S / 5)
    raise Unexpected(f"{group.name}: its broker does not come back")


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


DEFECTS = (stale_sync, resubscribed, retimed, replaced, missed, unstored, locked_out)
