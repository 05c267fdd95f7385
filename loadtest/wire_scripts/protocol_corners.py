"""Wire scripts for the rules of the classic protocol, one group for each rule.

They run at the same time. A script ends with an error if a response is not the expected one.
"""

import asyncio
from collections.abc import Awaitable, Callable

from kafka_protocol.errors import Error
from loadtest.wire_scripts.group import Group, complete_rebalance, form_group
from loadtest.wire_scripts.members import (
    Member,
    UnexpectedResponse,
    await_expiry_rebalance,
    await_rebalance,
    join_rebalance,
    keep_alive,
    rejoin_all,
    start_request,
    subscription,
    sync_all,
)

MAX_SIZE = 5
"""The brokers' `group.max.size`."""


async def fencing(group: Group) -> None:
    """A second process with an instance id replaces the first, whose requests are all fenced."""
    a, b, second = (group.static(name) for name in "abb")
    await form_group(a, b)
    await keep_alive(1, a, b)
    await second.join()
    share = await second.sync()
    await b.heartbeat(Error.FENCED_INSTANCE_ID)
    await b.commit(Error.FENCED_INSTANCE_ID)
    await b.sync(Error.FENCED_INSTANCE_ID)
    await b.join(Error.FENCED_INSTANCE_ID)
    await b.leave(Error.FENCED_INSTANCE_ID)
    b.instance = None
    await b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await keep_alive(1, a, second)
    leads, old = group.static("a"), group.static("a", join_version=5)
    await leads.join()
    if not share or not leads.skip_assignment or len(leads.joined_member_ids) != 2:
        raise UnexpectedResponse(
            "fencing: the new processes lack assignment, skipAssignment or members"
        )
    await leads.sync()
    await keep_alive(1, leads, second)
    await old.join()
    await old.sync()
    await keep_alive(1, old, second)


async def returning(group: Group) -> None:
    """Static members are replaced in PreparingRebalance and in CompletingRebalance."""
    a, b, c = (group.static(name) for name in "abc")
    await form_group(a, b, c)
    await keep_alive(0.5, a, b, c)
    waits = await start_request(a.join())
    await await_rebalance(c)
    await c.sync(Error.REBALANCE_IN_PROGRESS)
    await c.commit()
    fenced = await start_request(b.join(Error.FENCED_INSTANCE_ID))
    b2, c2 = group.static("b"), group.static("c")
    joins = [waits, await start_request(b2.join())]
    await fenced
    await asyncio.gather(*joins, await start_request(c2.join()))
    fenced = await start_request(b2.sync(Error.FENCED_INSTANCE_ID))
    await c2.heartbeat()
    await c2.commit(Error.REBALANCE_IN_PROGRESS)
    b3 = group.static("b")
    joins = [await start_request(b3.join())]
    await fenced
    await complete_rebalance(joins, a, c2)
    await sync_all(a, b3, c2)
    await keep_alive(1, a, b3, c2)


async def removal(group: Group) -> None:
    """LeaveGroup by instance id, of stopped members, unknown ids and a live member."""
    a, b, c, d = (group.static(name) for name in "abcd")
    await form_group(a, b, c, d)
    c.wire.disconnect()
    d.wire.disconnect()
    await keep_alive(1, a, b)
    operator = group.static("operator")
    await operator.remove(
        {("", "c"): Error.NONE, ("", "d"): Error.NONE, ("", "ghost"): Error.UNKNOWN_MEMBER_ID}
    )
    await join_rebalance(a, b)
    await operator.remove(
        {("", "ghost"): Error.UNKNOWN_MEMBER_ID, ("", "c"): Error.UNKNOWN_MEMBER_ID}
    )
    await operator.remove({(a.member_id, "b"): Error.FENCED_INSTANCE_ID})
    await keep_alive(1, a, b)
    await operator.remove({("", "b"): Error.NONE})
    await b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await b.commit(Error.UNKNOWN_MEMBER_ID)
    await b.sync(Error.UNKNOWN_MEMBER_ID)
    await join_rebalance(a)
    await keep_alive(0.5, a)
    back = group.static("c")
    joins = [await start_request(back.join())]
    await complete_rebalance(joins, a)
    await sync_all(a, back)
    await keep_alive(0.5, a, back)


async def sessions(group: Group) -> None:
    """Which requests renew a session, what follows its expiry, and requests after that."""
    group.session_ms = 2_000
    a, b = group.static("a", session_ms=4_000), group.static("b")
    await form_group(a, b)
    for _ in range(5):
        await b.commit()
        await keep_alive(0.5, a)
    b.wire.disconnect()
    await await_expiry_rebalance(a)
    await b.commit(Error.UNKNOWN_MEMBER_ID)
    await b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await b.join(Error.UNKNOWN_MEMBER_ID)
    await a.commit(Error.ILLEGAL_GENERATION, generation=1)
    await a.heartbeat(Error.ILLEGAL_GENERATION, generation=1)
    await a.sync(Error.ILLEGAL_GENERATION, generation=1)
    b = group.static("b")
    await complete_rebalance([await start_request(b.join())], a)
    await asyncio.sleep(1.2)
    await sync_all(a, b)  # late, but it renews the sessions
    await asyncio.sleep(1.2)
    await keep_alive(0.5, a, b)
    b.wire.disconnect()
    await keep_alive(1, a)
    b = group.static("b")
    await b.join()
    await b.sync()
    await keep_alive(2.5, a, b)
    b = group.static("b")
    await b.join()
    await asyncio.sleep(1.2)
    await b.sync()  # in Stable the Scala and the Java coordinator differ
    await asyncio.sleep(1.2)
    await b.heartbeat(Error.NONE, Error.UNKNOWN_MEMBER_ID)


async def absent(group: Group) -> None:
    """Members miss a join phase: dynamic ones are removed, static ones stay for their session."""
    a = group.static("a", session_ms=2_000)
    b, c = group.static("b", session_ms=8_000), group.dynamic("c", session_ms=8_000)
    await form_group(a, b, c)
    await keep_alive(0.5, a, b, c)
    new = group.dynamic("new")
    await complete_rebalance([await start_request(new.join(), 0.2)], a)
    await sync_all(a, new)
    await c.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await b.heartbeat(Error.ILLEGAL_GENERATION)
    await keep_alive(1.5, a, new)
    await await_expiry_rebalance(a, new)
    b = group.static("b")
    await complete_rebalance([await start_request(b.join())], a, new)
    await sync_all(a, b, new)
    await keep_alive(0.5, a, b, new)


async def leading(group: Group) -> None:
    """The choice of the leader, rejoins with a known member id, and an absent leader."""
    group.rebalance_ms = 2_000
    a, b, c = (group.static(name) for name in "abc")
    await form_group(a, b, c)
    await b.join()
    await keep_alive(0.5, a, b, c)
    await complete_rebalance([await start_request(a.join())], b, c)
    await sync_all(a, b, c)
    c.metadata = subscription(b"more")
    await complete_rebalance([await start_request(c.join())], a, b)
    await sync_all(a, b, c)
    await keep_alive(0.5, a, b, c)
    await a.leave()
    await join_rebalance(b, c)
    leader, other = (b, c) if b.leader == b.member_id else (c, b)
    leader.wire.disconnect()
    a = group.static("a")
    await complete_rebalance([await start_request(a.join())], other)
    await sync_all(a, other)
    await await_expiry_rebalance(a, other)
    await keep_alive(0.5, a, other)


async def pending(group: Group) -> None:
    """Pending members (KIP-394) do not join: the group waits for them until their timeout."""
    a = group.dynamic("a")
    lost, gone = group.dynamic("lost", session_ms=2_000), group.dynamic("gone")
    await a.commit(Error.GROUP_ID_NOT_FOUND, Error.ILLEGAL_GENERATION, generation=1, version=9)
    await form_group(a)
    await lost.join(Error.MEMBER_ID_REQUIRED)
    await lost.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await lost.commit(Error.UNKNOWN_MEMBER_ID)
    await rejoin_all(a)
    await keep_alive(2, a)
    await gone.join(Error.MEMBER_ID_REQUIRED)
    await gone.leave()
    if await a.heartbeat(Error.NONE, Error.REBALANCE_IN_PROGRESS):
        await rejoin_all(a)
    await keep_alive(0.5, a)
    await a.leave()


async def full(group: Group) -> None:
    """`group.max.size`: one member too many is refused, even a rejoining static member."""
    members = [group.static(name) for name in "abcde"[:MAX_SIZE]]
    joins = [await start_request(member.join(), 0.1) for member in members]
    await asyncio.sleep(0.2)
    extra, again, dynamic = group.static("extra"), group.static("a"), group.dynamic("dynamic")
    await extra.join(Error.GROUP_MAX_SIZE_REACHED)
    await asyncio.gather(*joins)
    await sync_all(*members)
    await extra.join(Error.GROUP_MAX_SIZE_REACHED)
    await dynamic.join(Error.GROUP_MAX_SIZE_REACHED)
    await again.join(Error.GROUP_MAX_SIZE_REACHED)
    *rest, last = members
    await keep_alive(0.5, *rest)
    await last.leave()
    await complete_rebalance([await start_request(extra.join())], *rest)
    await sync_all(*rest, extra)
    await keep_alive(0.5, *rest, extra)


async def forming(group: Group) -> None:
    """Joins extend the initial rebalance delay, up to the rebalance timeout; then a new delay."""
    group.rebalance_ms = 700
    a, b, c = (group.dynamic(name) for name in "abc")
    joins = [
        await start_request(a.join(), 0.4),
        await start_request(b.join(), 0.27),
        await start_request(c.join()),
    ]
    await asyncio.gather(*joins)
    await sync_all(a, b, c)
    members: tuple[Member, ...] = (b, c, a)
    for _ in range(2):  # Scala remembers new members of the first time only
        for member in members:
            await member.leave()
        a, b = group.dynamic("a"), group.dynamic("b")
        await asyncio.gather(await start_request(a.join(), 0.3), await start_request(b.join()))
        await sync_all(a, b)
        members = (b, a)
    await keep_alive(0.5, a, b)


async def silent(group: Group) -> None:
    """Members that send no SyncGroup are removed, in spite of heartbeats; the leader too."""
    group.rebalance_ms = 2_500
    a, b = group.dynamic("a"), group.dynamic("b")
    await asyncio.gather(await start_request(a.join()), await start_request(b.join()))
    await a.sync()
    await keep_alive(1, a, b)
    await await_expiry_rebalance(a)
    await b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    b = group.dynamic("b")
    await complete_rebalance([await start_request(b.join())], a)
    refused = await start_request(b.sync(Error.REBALANCE_IN_PROGRESS))
    await keep_alive(1, a)
    await refused
    await a.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await rejoin_all(b)
    await keep_alive(0.5, b)


async def mixed(group: Group) -> None:
    """A static and a dynamic member restart, then each changes to the other kind."""
    s, d = group.static("s", session_ms=2_000), group.dynamic("d")
    await form_group(s, d)
    await keep_alive(0.5, s, d)
    s.wire.disconnect()
    await keep_alive(0.5, d)
    s = group.static("s", session_ms=2_000)
    await s.join()
    await s.sync()
    await keep_alive(0.5, s, d)
    for kind in (group.dynamic, group.static):
        await d.leave()
        await join_rebalance(s)
        d = kind("d")
        await complete_rebalance([await start_request(d.join())], s)
        await sync_all(s, d)
        await keep_alive(0.5, s, d)
    s.wire.disconnect()
    s = group.dynamic("s")
    await complete_rebalance([await start_request(s.join(), 0.2)], d)
    await sync_all(d, s)
    await keep_alive(0.5, s, d)


async def elsewhere(group: Group) -> None:
    """Requests to a broker that does not coordinate the group."""
    a, b = group.static("a"), group.static("b")
    await form_group(a, b)
    lost = group.static("b")
    lost.member_id, lost.generation = b.member_id, b.generation
    lost.wire.port = next(p for id_, p in group.ports.items() if id_ != group.coordinator)
    for _ in range(3):
        await lost.heartbeat(Error.NOT_COORDINATOR)
        await lost.commit(Error.NOT_COORDINATOR)
        await keep_alive(0.5, a, b)


async def failover(group: Group, kill: Callable[[], Awaitable[None]]) -> None:
    """The coordinator is killed: its successor knows all members and restarts all sessions."""
    a, b, c = (group.static(name) for name in "abc")
    d = group.dynamic("d")
    await form_group(a, b, c, d)
    await d.leave()
    await join_rebalance(a, b, c)
    d = group.dynamic("d")
    await complete_rebalance([await start_request(d.join())], a, b, c)
    await sync_all(a, b, c, d)
    b.wire.disconnect()
    b = group.static("b")
    await b.join()
    await b.sync()
    await keep_alive(1, a, b, c, d)
    elsewhere = group.static("b")
    elsewhere.member_id, elsewhere.generation = b.member_id, b.generation
    elsewhere.wire.port = next(p for id_, p in group.ports.items() if id_ != group.coordinator)
    await elsewhere.heartbeat(Error.NOT_COORDINATOR)
    await elsewhere.commit(Error.NOT_COORDINATOR)
    await elsewhere.sync(Error.NOT_COORDINATOR)
    await elsewhere.join(Error.NOT_COORDINATOR)
    elsewhere.session_ms = 1
    await elsewhere.join(Error.INVALID_SESSION_TIMEOUT, Error.NOT_COORDINATOR)
    await kill()
    for member in (a, b, d):
        member.wire.disconnect()
        member.wire.port = elsewhere.wire.port
        await member.find(group.coordinator)
    await keep_alive(1, a, b, d)
    await b.commit()
    a.wire.disconnect()
    a, port = group.static("a"), b.wire.port
    a.wire.port = port
    await a.join()
    await a.sync()
    await await_expiry_rebalance(a, b, d)
    await keep_alive(1, a, b, d)


PROTOCOL_CORNERS = (
    fencing, returning, removal, sessions, absent, leading, pending, full, forming, silent, mixed,
    elsewhere,
)  # fmt: skip
