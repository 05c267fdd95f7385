"""Small stories, each of a group of its own, one after a rule, all told at the same time.

Where a broker answers otherwise than a story says, it shows nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable

from kafka_protocol.errors import Error
from loadtest.wire_scripts.group import Group, follow_into, form
from loadtest.wire_scripts.members import (
    Member,
    Unexpected,
    beat,
    begin,
    follow,
    hear,
    outlive,
    rejoin,
    share_out,
    subscription,
)

MAX_SIZE = 5
"""What the brokers' `group.max.size` is."""


async def fencing(group: Group) -> None:
    """A second process with an id in use wins, the first is told so whatever it asks for."""
    a, b, twin = (group.static(name) for name in "abb")
    await form(a, b)
    await beat(1, a, b)
    await twin.join()
    share = await twin.sync()
    await b.heartbeat(Error.FENCED_INSTANCE_ID)
    await b.commit(Error.FENCED_INSTANCE_ID)
    await b.sync(Error.FENCED_INSTANCE_ID)
    await b.join(Error.FENCED_INSTANCE_ID)
    await b.leave(Error.FENCED_INSTANCE_ID)
    b.instance = None
    await b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await beat(1, a, twin)
    leads, old = group.static("a"), group.static("a", join_version=5)
    await leads.join()
    if not share or not leads.skip_assignment or len(leads.told) != 2:
        raise Unexpected("fencing: the new processes are told too little")
    await leads.sync()
    await beat(1, leads, twin)
    await old.join()
    await old.sync()
    await beat(1, old, twin)


async def returning(group: Group) -> None:
    """Static members are replaced while the group rebalances, in both states of that."""
    a, b, c = (group.static(name) for name in "abc")
    await form(a, b, c)
    await beat(0.5, a, b, c)
    waits = await begin(a.join())
    await hear(c)
    await c.sync(Error.REBALANCE_IN_PROGRESS)
    await c.commit()
    fenced = await begin(b.join(Error.FENCED_INSTANCE_ID))
    b2, c2 = group.static("b"), group.static("c")
    joins = [waits, await begin(b2.join())]
    await fenced
    await asyncio.gather(*joins, await begin(c2.join()))
    fenced = await begin(b2.sync(Error.FENCED_INSTANCE_ID))
    await c2.heartbeat()
    await c2.commit(Error.REBALANCE_IN_PROGRESS)
    b3 = group.static("b")
    joins = [await begin(b3.join())]
    await fenced
    await follow_into(joins, a, c2)
    await share_out(a, b3, c2)
    await beat(1, a, b3, c2)


async def removal(group: Group) -> None:
    """Members are removed by their instance ids: stopped ones, unknown ones, one that is alive."""
    a, b, c, d = (group.static(name) for name in "abcd")
    await form(a, b, c, d)
    c.wire.cut()
    d.wire.cut()
    await beat(1, a, b)
    operator = group.static("operator")
    await operator.remove(
        {("", "c"): Error.NONE, ("", "d"): Error.NONE, ("", "ghost"): Error.UNKNOWN_MEMBER_ID}
    )
    await follow(a, b)
    await operator.remove(
        {("", "ghost"): Error.UNKNOWN_MEMBER_ID, ("", "c"): Error.UNKNOWN_MEMBER_ID}
    )
    await operator.remove({(a.member_id, "b"): Error.FENCED_INSTANCE_ID})
    await beat(1, a, b)
    await operator.remove({("", "b"): Error.NONE})
    await b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await b.commit(Error.UNKNOWN_MEMBER_ID)
    await b.sync(Error.UNKNOWN_MEMBER_ID)
    await follow(a)
    await beat(0.5, a)
    back = group.static("c")
    joins = [await begin(back.join())]
    await follow_into(joins, a)
    await share_out(a, back)
    await beat(0.5, a, back)


async def sessions(group: Group) -> None:
    """What keeps a session alive, what comes of one that ends, and what is too late then."""
    group.session_ms = 2_000
    a, b = group.static("a", session_ms=4_000), group.static("b")
    await form(a, b)
    for _ in range(5):
        await b.commit()
        await beat(0.5, a)
    b.wire.cut()
    await outlive(a)
    await b.commit(Error.UNKNOWN_MEMBER_ID)
    await b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await b.join(Error.UNKNOWN_MEMBER_ID)
    await a.commit(Error.ILLEGAL_GENERATION, generation=1)
    await a.heartbeat(Error.ILLEGAL_GENERATION, generation=1)
    await a.sync(Error.ILLEGAL_GENERATION, generation=1)
    b = group.static("b")
    await follow_into([await begin(b.join())], a)
    await asyncio.sleep(1.2)
    await share_out(a, b)  # a late one, that restarts the sessions all the same
    await asyncio.sleep(1.2)
    await beat(0.5, a, b)
    b.wire.cut()
    await beat(1, a)
    b = group.static("b")
    await b.join()
    await b.sync()
    await beat(2.5, a, b)
    b = group.static("b")
    await b.join()
    await asyncio.sleep(1.2)
    await b.sync()  # in Stable the two coordinators take it differently
    await asyncio.sleep(1.2)
    await b.heartbeat(Error.NONE, Error.UNKNOWN_MEMBER_ID)


async def absent(group: Group) -> None:
    """Members that miss a join phase: dynamic ones are dropped, static ones kept for a while."""
    a = group.static("a", session_ms=2_000)
    b, c = group.static("b", session_ms=8_000), group.dynamic("c", session_ms=8_000)
    await form(a, b, c)
    await beat(0.5, a, b, c)
    new = group.dynamic("new")
    await follow_into([await begin(new.join(), 0.2)], a)
    await share_out(a, new)
    await c.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await b.heartbeat(Error.ILLEGAL_GENERATION)
    await beat(1.5, a, new)
    await outlive(a, new)
    b = group.static("b")
    await follow_into([await begin(b.join())], a, new)
    await share_out(a, b, new)
    await beat(0.5, a, b, new)


async def leading(group: Group) -> None:
    """Who leads, what a join with a known id does, and what becomes of an absent leader."""
    group.rebalance_ms = 2_000
    a, b, c = (group.static(name) for name in "abc")
    await form(a, b, c)
    await b.join()
    await beat(0.5, a, b, c)
    await follow_into([await begin(a.join())], b, c)
    await share_out(a, b, c)
    c.metadata = subscription(b"more")
    await follow_into([await begin(c.join())], a, b)
    await share_out(a, b, c)
    await beat(0.5, a, b, c)
    await a.leave()
    await follow(b, c)
    leader, other = (b, c) if b.leader == b.member_id else (c, b)
    leader.wire.cut()
    a = group.static("a")
    await follow_into([await begin(a.join())], other)
    await share_out(a, other)
    await outlive(a, other)
    await beat(0.5, a, other)


async def pending(group: Group) -> None:
    """Members that were given an id and do not come back with it: they are waited for, not long."""
    a = group.dynamic("a")
    lost, gone = group.dynamic("lost", session_ms=2_000), group.dynamic("gone")
    await a.commit(Error.GROUP_ID_NOT_FOUND, Error.ILLEGAL_GENERATION, generation=1, version=9)
    await form(a)
    await lost.join(Error.MEMBER_ID_REQUIRED)
    await lost.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await lost.commit(Error.UNKNOWN_MEMBER_ID)
    await rejoin(a)
    await beat(2, a)
    await gone.join(Error.MEMBER_ID_REQUIRED)
    await gone.leave()
    if await a.heartbeat(Error.NONE, Error.REBALANCE_IN_PROGRESS):
        await rejoin(a)
    await beat(0.5, a)
    await a.leave()


async def full(group: Group) -> None:
    """`group.max.size`: whoever is one too many is refused, even an old member with a new id."""
    members = [group.static(name) for name in "abcde"[:MAX_SIZE]]
    joins = [await begin(member.join(), 0.1) for member in members]
    await asyncio.sleep(0.2)
    extra, again, dynamic = group.static("extra"), group.static("a"), group.dynamic("dynamic")
    await extra.join(Error.GROUP_MAX_SIZE_REACHED)
    await asyncio.gather(*joins)
    await share_out(*members)
    await extra.join(Error.GROUP_MAX_SIZE_REACHED)
    await dynamic.join(Error.GROUP_MAX_SIZE_REACHED)
    await again.join(Error.GROUP_MAX_SIZE_REACHED)
    *rest, last = members
    await beat(0.5, *rest)
    await last.leave()
    await follow_into([await begin(extra.join())], *rest)
    await share_out(*rest, extra)
    await beat(0.5, *rest, extra)


async def forming(group: Group) -> None:
    """The initial delay: who comes meanwhile extends it, not for ever; then a new one."""
    group.rebalance_ms = 700
    a, b, c = (group.dynamic(name) for name in "abc")
    joins = [await begin(a.join(), 0.4), await begin(b.join(), 0.27), await begin(c.join())]
    await asyncio.gather(*joins)
    await share_out(a, b, c)
    members: tuple[Member, ...] = (b, c, a)
    for _ in range(2):  # in Scala the first newcomers are remembered the first time, no others
        for member in members:
            await member.leave()
        a, b = group.dynamic("a"), group.dynamic("b")
        await asyncio.gather(await begin(a.join(), 0.3), await begin(b.join()))
        await share_out(a, b)
        members = (b, a)
    await beat(0.5, a, b)


async def silent(group: Group) -> None:
    """Members that never ask for their share are removed, heartbeats or not; the leader too."""
    group.rebalance_ms = 2_500
    a, b = group.dynamic("a"), group.dynamic("b")
    await asyncio.gather(await begin(a.join()), await begin(b.join()))
    await a.sync()
    await beat(1, a, b)
    await outlive(a)
    await b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    b = group.dynamic("b")
    await follow_into([await begin(b.join())], a)
    refused = await begin(b.sync(Error.REBALANCE_IN_PROGRESS))
    await beat(1, a)
    await refused
    await a.heartbeat(Error.UNKNOWN_MEMBER_ID)
    await rejoin(b)
    await beat(0.5, b)


async def mixed(group: Group) -> None:
    """A static and a dynamic member: each comes back, then each becomes of the other kind."""
    s, d = group.static("s", session_ms=2_000), group.dynamic("d")
    await form(s, d)
    await beat(0.5, s, d)
    s.wire.cut()
    await beat(0.5, d)
    s = group.static("s", session_ms=2_000)
    await s.join()
    await s.sync()
    await beat(0.5, s, d)
    for kind in (group.dynamic, group.static):
        await d.leave()
        await follow(s)
        d = kind("d")
        await follow_into([await begin(d.join())], s)
        await share_out(s, d)
        await beat(0.5, s, d)
    s.wire.cut()
    s = group.dynamic("s")
    await follow_into([await begin(s.join(), 0.2)], d)
    await share_out(d, s)
    await beat(0.5, s, d)


async def elsewhere(group: Group) -> None:
    """A broker that does not coordinate the group is asked what its coordinator would answer."""
    a, b = group.static("a"), group.static("b")
    await form(a, b)
    lost = group.static("b")
    lost.member_id, lost.generation = b.member_id, b.generation
    lost.wire.port = next(p for id_, p in group.ports.items() if id_ != group.coordinator)
    for _ in range(3):
        await lost.heartbeat(Error.NOT_COORDINATOR)
        await lost.commit(Error.NOT_COORDINATOR)
        await beat(0.5, a, b)


async def failover(group: Group, kill: Callable[[], Awaitable[None]]) -> None:
    """The coordinator is killed: its successor knows everybody, and every session begins anew."""
    a, b, c = (group.static(name) for name in "abc")
    d = group.dynamic("d")
    await form(a, b, c, d)
    await d.leave()
    await follow(a, b, c)
    d = group.dynamic("d")
    await follow_into([await begin(d.join())], a, b, c)
    await share_out(a, b, c, d)
    b.wire.cut()
    b = group.static("b")
    await b.join()
    await b.sync()
    await beat(1, a, b, c, d)
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
        member.wire.cut()
        member.wire.port = elsewhere.wire.port
        await member.find(group.coordinator)
    await beat(1, a, b, d)
    await b.commit()
    a.wire.cut()
    a, port = group.static("a"), b.wire.port
    a.wire.port = port
    await a.join()
    await a.sync()
    await outlive(a, b, d)
    await beat(1, a, b, d)


STORIES = (
    fencing, returning, removal, sessions, absent, leading, pending, full, forming, silent, mixed,
    elsewhere,
)  # fmt: skip
