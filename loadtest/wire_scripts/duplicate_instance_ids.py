"""Stories of two processes with one instance id, the second of which comes in a certain state.

The later one wins (KIP-345): the older is fenced, at once if it waits for an answer. What that
costs the group depends on its state. A holder keeps it inside a rebalance meanwhile.
"""

import asyncio

from kafka_protocol.errors import Error
from loadtest.wire import Connection, Holder, WireMember, negotiate
from loadtest.wire.member import Told
from loadtest.wire_scripts.group import Group, form
from loadtest.wire_scripts.members import (
    BEAT_S,
    HOST,
    Member,
    beat,
    begin,
    hear,
    in_base64,
    subscription,
)

SESSION_MS = 120_000
"""Longer than all of it takes: no session ends."""


async def while_empty(group: Group) -> None:
    """The older process was removed and does not know it yet: its group is Empty."""
    group.session_ms = SESSION_MS
    old, new = group.static("a"), group.static("a")
    await form(old)
    await group.static("operator").remove({("", "a"): Error.NONE})
    await form(new)
    await lost(old)
    await beat(1, new)


async def while_preparing(group: Group) -> None:
    """The older process waits in JoinGroup for a member that does not come."""
    group.session_ms = SESSION_MS
    old, new = group.static("b"), group.static("b")
    holder = await held_by(group, old)
    await asyncio.to_thread(holder.hold_joining)
    await hear(old)
    fenced = await begin(old.join(Error.FENCED_INSTANCE_ID))
    joins = await begin(new.join())
    await fenced
    await asyncio.to_thread(holder.release)
    await joins
    await new.sync()
    await lost(old)
    await beat(1, new)


async def while_completing(group: Group) -> None:
    """The older process waits in SyncGroup for a leader that withholds its own."""
    group.session_ms = SESSION_MS
    old, new = group.static("b"), group.static("b")
    holder = await held_by(group, old)
    holds = await begin(asyncio.to_thread(holder.hold_assigning))
    await hear(old)
    await old.join()
    await holds
    fenced = await begin(old.sync(Error.FENCED_INSTANCE_ID))
    joins = await begin(new.join())
    await fenced
    await asyncio.to_thread(holder.release)
    await asyncio.to_thread(holder.member.take_part)
    await joins
    await new.sync()
    await lost(old)
    await beat(1, new)


async def while_stable(group: Group) -> None:
    """The older process sends heartbeats, and nothing else goes on."""
    group.session_ms = SESSION_MS
    a, old, new = group.static("a"), group.static("b"), group.static("b")
    await form(a, old)
    await beat(1, a, old)
    await new.join()
    await new.sync()
    await lost(old)
    await beat(1, a, new)


async def held_by(group: Group, follower: Member) -> Holder:
    """Found a group of a holder, which leads it since it was alone in it, and a follower."""
    connect = lambda: Connection(HOST, group.ports[group.coordinator], f"{group.name}-holder")
    connection = await asyncio.to_thread(connect)
    versions = WireMember.newest(await asyncio.to_thread(negotiate, connection))
    member = WireMember(
        connection=connection,
        group=group.name,
        versions=versions,
        protocols=(("range", subscription()),),
        instance_id="holder",
        assign=alike,
    )
    holder = Holder(member, connect)
    await asyncio.to_thread(member.take_part)
    joins = await begin(follower.join())
    for _ in range(100):
        if await asyncio.to_thread(member.heartbeat) != Error.NONE:
            break
        await asyncio.sleep(BEAT_S / 5)
    await asyncio.to_thread(member.take_part)
    await joins
    await follower.sync()
    return holder


def alike(_: str, told: Told) -> dict[str, str]:
    """Give everybody the same share."""
    return {str(member["memberId"]): in_base64(b"share") for member in told}


async def lost(old: Member) -> None:
    """Let the older process find that it is fenced, whatever it asks for."""
    await old.heartbeat(Error.FENCED_INSTANCE_ID)
    await old.join(Error.FENCED_INSTANCE_ID)
    await old.leave(Error.FENCED_INSTANCE_ID)


DUPLICATES = (while_empty, while_preparing, while_completing, while_stable)
