"""Wire scripts in which a second process with an instance id joins while the group is in a state.

The second process replaces the first (KIP-345). The first is fenced: at once if it waits for a
response, otherwise at its next request. The group's state decides whether this costs a rebalance.
A `RebalanceHolder` keeps the group in PreparingRebalance or CompletingRebalance meanwhile.
"""

import asyncio

from kafka_protocol.errors import Error
from loadtest.wire import Connection, RebalanceHolder, WireMember, negotiate
from loadtest.wire.member import JoinedMembers
from loadtest.wire_scripts.group import Group, form_group
from loadtest.wire_scripts.members import (
    HEARTBEAT_INTERVAL_S,
    HOST,
    Member,
    await_rebalance,
    in_base64,
    keep_alive,
    start_request,
    subscription,
)

SESSION_MS = 120_000
"""Longer than a script takes: no session expires."""


async def while_empty(group: Group) -> None:
    """The first process is removed and does not know it yet: its group is Empty."""
    group.session_ms = SESSION_MS
    old, new = group.static("a"), group.static("a")
    await form_group(old)
    await group.static("operator").remove({("", "a"): Error.NONE})
    await form_group(new)
    await expect_fenced(old)
    await keep_alive(1, new)


async def while_preparing(group: Group) -> None:
    """The first process waits in JoinGroup for a pending member that does not join."""
    group.session_ms = SESSION_MS
    old, new = group.static("b"), group.static("b")
    holder = await group_of_holder(group, old)
    await asyncio.to_thread(holder.hold_join_phase)
    await await_rebalance(old)
    fenced = await start_request(old.join(Error.FENCED_INSTANCE_ID))
    joins = await start_request(new.join())
    await fenced
    await asyncio.to_thread(holder.release)
    await joins
    await new.sync()
    await expect_fenced(old)
    await keep_alive(1, new)


async def while_completing(group: Group) -> None:
    """The first process waits in SyncGroup for a leader that withholds its SyncGroup."""
    group.session_ms = SESSION_MS
    old, new = group.static("b"), group.static("b")
    holder = await group_of_holder(group, old)
    holds = await start_request(asyncio.to_thread(holder.hold_assignment))
    await await_rebalance(old)
    await old.join()
    await holds
    fenced = await start_request(old.sync(Error.FENCED_INSTANCE_ID))
    joins = await start_request(new.join())
    await fenced
    await asyncio.to_thread(holder.release)
    await asyncio.to_thread(holder.member.rejoin_group)
    await joins
    await new.sync()
    await expect_fenced(old)
    await keep_alive(1, new)


async def while_stable(group: Group) -> None:
    """The first process sends heartbeats in a Stable group."""
    group.session_ms = SESSION_MS
    a, old, new = group.static("a"), group.static("b"), group.static("b")
    await form_group(a, old)
    await keep_alive(1, a, old)
    await new.join()
    await new.sync()
    await expect_fenced(old)
    await keep_alive(1, a, new)


async def group_of_holder(group: Group, follower: Member) -> RebalanceHolder:
    """Form a group of a holder, which joins first and so leads, and one follower."""
    connect = lambda: Connection(HOST, group.ports[group.coordinator], f"{group.name}-holder")
    connection = await asyncio.to_thread(connect)
    versions = WireMember.newest(await asyncio.to_thread(negotiate, connection))
    member = WireMember(
        connection=connection,
        group=group.name,
        versions=versions,
        protocols=(("range", subscription()),),
        instance_id="holder",
        assign=equal_shares,
    )
    holder = RebalanceHolder(member, connect)
    await asyncio.to_thread(member.rejoin_group)
    joins = await start_request(follower.join())
    for _ in range(100):
        if await asyncio.to_thread(member.heartbeat) != Error.NONE:
            break
        await asyncio.sleep(HEARTBEAT_INTERVAL_S / 5)
    await asyncio.to_thread(member.rejoin_group)
    await joins
    await follower.sync()
    return holder


def equal_shares(_: str, members: JoinedMembers) -> dict[str, str]:
    """Assign the same to every member."""
    return {str(member["memberId"]): in_base64(b"share") for member in members}


async def expect_fenced(old: Member) -> None:
    """Expect that every request of the first process is fenced."""
    await old.heartbeat(Error.FENCED_INSTANCE_ID)
    await old.join(Error.FENCED_INSTANCE_ID)
    await old.leave(Error.FENCED_INSTANCE_ID)


DUPLICATE_INSTANCE_IDS = (while_empty, while_preparing, while_completing, while_stable)
