"""Wire scripts for the rules of the classic protocol, one group for each rule.

They run at the same time. A script ends with an error if a response is not the expected one.
"""

import time

from kafka_protocol.errors import Error
from loadtest.wire.member import UnexpectedResponse
from loadtest.wire_scripts.members import (
    Group,
    ScriptedMember,
    await_expiry_rebalance,
    await_rebalance,
    complete_rebalance,
    form_group,
    gather,
    join_rebalance,
    keep_alive,
    leader_first,
    rebalance,
    rejoin_all,
    start,
    subscription,
    sync_all,
)

MAX_SIZE = 5
"""The brokers' `group.max.size`."""


def fencing(group: Group) -> None:
    """A second process with an instance id replaces the first, whose requests are all fenced."""
    a, b, second = (group.static(name) for name in "abb")
    form_group(a, b, alive_s=1)
    second.rejoin()
    b.heartbeat(Error.FENCED_INSTANCE_ID)
    b.commit_offset(Error.FENCED_INSTANCE_ID)
    b.sync(Error.FENCED_INSTANCE_ID)
    b.join(Error.FENCED_INSTANCE_ID)
    b.leave(Error.FENCED_INSTANCE_ID)
    b.instance_id = None
    b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    keep_alive(1, a, second)
    leads, old = group.static("a"), group.static("a", most={"JOIN_GROUP": 5})
    leads.join()
    if not second.assignment or not leads.skip_assignment or len(leads.members) != 2:
        raise UnexpectedResponse(
            "fencing: the new processes lack assignment, skipAssignment or members"
        )
    leads.sync()
    keep_alive(1, leads, second)
    old.rejoin()
    keep_alive(1, old, second)


def returning(group: Group) -> None:
    """Static members are replaced in PreparingRebalance and in CompletingRebalance."""
    a, b, c = (group.static(name) for name in "abc")
    form_group(a, b, c, alive_s=0.5)
    waits = start(a.join)
    await_rebalance(c)
    c.sync(Error.REBALANCE_IN_PROGRESS)
    c.commit_offset()
    fenced = start(b.join, Error.FENCED_INSTANCE_ID)
    b2, c2 = group.static("b"), group.static("c")
    joins = [waits, start(b2.join)]
    fenced.result()
    gather(*joins, start(c2.join))
    fenced = start(b2.sync, Error.FENCED_INSTANCE_ID)
    c2.heartbeat()
    c2.commit_offset(Error.REBALANCE_IN_PROGRESS)
    b3 = group.static("b")
    joins = [start(b3.join)]
    fenced.result()
    complete_rebalance(joins, a, c2)
    sync_all(a, b3, c2)
    keep_alive(1, a, b3, c2)


def removal(group: Group) -> None:
    """LeaveGroup by instance id, of stopped members, unknown ids and a live member."""
    a, b, c, d = (group.static(name) for name in "abcd")
    form_group(a, b, c, d)
    c.disconnect()
    d.disconnect()
    keep_alive(1, a, b)
    operator = group.static("operator")
    operator.remove_members(
        {("", "c"): Error.NONE, ("", "d"): Error.NONE, ("", "ghost"): Error.UNKNOWN_MEMBER_ID}
    )
    join_rebalance(a, b)
    operator.remove_members(
        {("", "ghost"): Error.UNKNOWN_MEMBER_ID, ("", "c"): Error.UNKNOWN_MEMBER_ID}
    )
    operator.remove_members({(a.member_id, "b"): Error.FENCED_INSTANCE_ID})
    keep_alive(1, a, b)
    operator.remove_members({("", "b"): Error.NONE})
    b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    b.commit_offset(Error.UNKNOWN_MEMBER_ID)
    b.sync(Error.UNKNOWN_MEMBER_ID)
    join_rebalance(a)
    keep_alive(0.5, a)
    back = group.static("c")
    rebalance(back, a, alive_s=0.5)


def sessions(group: Group) -> None:
    """Which requests renew a session, what follows its expiry, and requests after that."""
    group.session_ms = 2_000
    a, b = group.static("a", session_timeout_ms=4_000), group.static("b")
    form_group(a, b)
    for _ in range(5):
        b.commit_offset()
        keep_alive(0.5, a)
    b.disconnect()
    await_expiry_rebalance(a)
    b.commit_offset(Error.UNKNOWN_MEMBER_ID)
    b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    b.join(Error.UNKNOWN_MEMBER_ID)
    a.commit_offset(Error.ILLEGAL_GENERATION, generationId=1)
    a.heartbeat(Error.ILLEGAL_GENERATION, generationId=1)
    a.sync(Error.ILLEGAL_GENERATION, generationId=1)
    b = group.static("b")
    complete_rebalance([start(b.join)], a)
    time.sleep(1.2)
    sync_all(a, b)  # late, but it renews the sessions
    time.sleep(1.2)
    keep_alive(0.5, a, b)
    b.disconnect()
    keep_alive(1, a)
    b = group.static("b")
    b.rejoin()
    keep_alive(2.5, a, b)
    b = group.static("b")
    b.join()
    time.sleep(1.2)
    b.sync()  # in Stable the Scala and the Java coordinator differ
    time.sleep(1.2)
    b.heartbeat(Error.NONE, Error.UNKNOWN_MEMBER_ID)


def absent(group: Group) -> None:
    """Members miss a join phase: dynamic ones are removed, static ones stay for their session."""
    a = group.static("a", session_timeout_ms=2_000)
    b, c = group.static("b", session_timeout_ms=8_000), group.dynamic("c", session_timeout_ms=8_000)
    form_group(a, b, c, alive_s=0.5)
    new = group.dynamic("new")
    rebalance(new, a, ahead_s=0.2)
    c.heartbeat(Error.UNKNOWN_MEMBER_ID)
    b.heartbeat(Error.ILLEGAL_GENERATION)
    keep_alive(1.5, a, new)
    await_expiry_rebalance(a, new)
    b = group.static("b")
    rebalance(b, a, new, alive_s=0.5)


def leading(group: Group) -> None:
    """The choice of the leader, rejoins with a known member id, and an absent leader."""
    group.rebalance_ms = 2_000
    a, b, c = (group.static(name) for name in "abc")
    form_group(a, b, c)
    b.join()
    keep_alive(0.5, a, b, c)
    rebalance(a, b, c)
    c.protocols = (("range", subscription(b"more")),)
    rebalance(c, a, b, alive_s=0.5)
    a.leave()
    join_rebalance(b, c)
    leader, other = leader_first(b, c)
    leader.disconnect()
    a = group.static("a")
    rebalance(a, other)
    await_expiry_rebalance(a, other)
    keep_alive(0.5, a, other)


def pending(group: Group) -> None:
    """Pending members (KIP-394) do not join: the group waits for them until their timeout."""
    a = group.dynamic("a", most={"OFFSET_COMMIT": 9})
    lost, gone = group.dynamic("lost", session_timeout_ms=2_000), group.dynamic("gone")
    a.commit_offset(Error.GROUP_ID_NOT_FOUND, Error.ILLEGAL_GENERATION, generationId=1)
    form_group(a)
    lost.join(Error.MEMBER_ID_REQUIRED)
    lost.heartbeat(Error.UNKNOWN_MEMBER_ID)
    lost.commit_offset(Error.UNKNOWN_MEMBER_ID)
    rejoin_all(a)
    keep_alive(2, a)
    gone.join(Error.MEMBER_ID_REQUIRED)
    gone.leave()
    if a.heartbeat(Error.NONE, Error.REBALANCE_IN_PROGRESS):
        rejoin_all(a)
    keep_alive(0.5, a)
    a.leave()


def full(group: Group) -> None:
    """`group.max.size`: one member too many is refused, even a rejoining static member."""
    members = [group.static(name) for name in "abcde"[:MAX_SIZE]]
    joins = [start(member.join, ahead_s=0.1) for member in members]
    time.sleep(0.2)
    extra, again, dynamic = group.static("extra"), group.static("a"), group.dynamic("dynamic")
    extra.join(Error.GROUP_MAX_SIZE_REACHED)
    gather(*joins)
    sync_all(*members)
    extra.join(Error.GROUP_MAX_SIZE_REACHED)
    dynamic.join(Error.GROUP_MAX_SIZE_REACHED)
    again.join(Error.GROUP_MAX_SIZE_REACHED)
    *rest, last = members
    keep_alive(0.5, *rest)
    last.leave()
    rebalance(extra, *rest, alive_s=0.5)


def forming(group: Group) -> None:
    """Joins extend the initial rebalance delay, up to the rebalance timeout; then a new delay."""
    group.rebalance_ms = 700
    a, b, c = (group.dynamic(name) for name in "abc")
    joins = [
        start(a.join, ahead_s=0.4),
        start(b.join, ahead_s=0.27),
        start(c.join),
    ]
    gather(*joins)
    sync_all(a, b, c)
    members: tuple[ScriptedMember, ...] = (b, c, a)
    for _ in range(2):  # Scala remembers new members of the first time only
        for member in members:
            member.leave()
        a, b = group.dynamic("a"), group.dynamic("b")
        gather(start(a.join, ahead_s=0.3), start(b.join))
        sync_all(a, b)
        members = (b, a)
    keep_alive(0.5, a, b)


def silent(group: Group) -> None:
    """Members that send no SyncGroup are removed, in spite of heartbeats; the leader too."""
    group.rebalance_ms = 2_500
    a, b = group.dynamic("a"), group.dynamic("b")
    gather(start(a.join), start(b.join))
    a.sync()
    keep_alive(1, a, b)
    await_expiry_rebalance(a)
    b.heartbeat(Error.UNKNOWN_MEMBER_ID)
    b = group.dynamic("b")
    complete_rebalance([start(b.join)], a)
    refused = start(b.sync, Error.REBALANCE_IN_PROGRESS)
    keep_alive(1, a)
    refused.result()
    a.heartbeat(Error.UNKNOWN_MEMBER_ID)
    rejoin_all(b)
    keep_alive(0.5, b)


def mixed(group: Group) -> None:
    """A static and a dynamic member restart, then each changes to the other kind."""
    s, d = group.static("s", session_timeout_ms=2_000), group.dynamic("d")
    form_group(s, d, alive_s=0.5)
    s.disconnect()
    keep_alive(0.5, d)
    s = group.static("s", session_timeout_ms=2_000)
    s.rejoin()
    keep_alive(0.5, s, d)
    for kind in (group.dynamic, group.static):
        d.leave()
        join_rebalance(s)
        d = kind("d")
        rebalance(d, s, alive_s=0.5)
    s.disconnect()
    s = group.dynamic("s")
    rebalance(s, d, alive_s=0.5, ahead_s=0.2)


def elsewhere(group: Group) -> None:
    """Requests to a broker that does not coordinate the group."""
    a, b = group.static("a"), group.static("b")
    form_group(a, b)
    lost = group.static("b")
    lost.member_id, lost.generation = b.member_id, b.generation
    lost.move(group.elsewhere)
    for _ in range(3):
        lost.heartbeat(Error.NOT_COORDINATOR)
        lost.commit_offset(Error.NOT_COORDINATOR)
        keep_alive(0.5, a, b)


PROTOCOL_CORNERS = (
    fencing, returning, removal, sessions, absent, leading, pending, full, forming, silent, mixed,
    elsewhere,
)  # fmt: skip
