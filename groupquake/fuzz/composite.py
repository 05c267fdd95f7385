"""Composite actions: several requests in a row, for rules that single requests rarely reach.

Like any action, each uses the processes that are there, or returns False. The oracle judges how
the coordinator responds.
"""

from typing import Unpack

from groupquake.fuzz.driver import MAX_SIZE, MOST, Driver, Sending, one_of
from groupquake.fuzz.process import Phase, Process
from groupquake.fuzz.timing import JOINING_MS, LONG_MS, OVERDUE_MS, SHORT_MS, SYNCING_MS
from loadtest.wire_scripts.members import subscription


def complete_join_phase(driver: Driver) -> bool:
    """All processes join; none sends SyncGroup yet."""
    leaders = [p for p in driver.having(Phase.IN) if p.led]
    if leaders:
        driver.join(leaders[0], patience_ms=4)
    for _ in range(3):
        driver.beat()
        for process in driver.having(Phase.OUT):
            driver.join(process, patience_ms=4)
        driver.settle(JOINING_MS)
    return bool(driver.having(Phase.JOINED))


def reach_stable(driver: Driver) -> list[Process]:
    """All processes join and sync, as far as the group lets them; return the members."""
    if not driver.having(Phase.IN):
        complete_join_phase(driver)
    for process in driver.having(Phase.JOINED):
        driver.sync(process, driver.shares(process, too_large=False))
    driver.settle(SYNCING_MS)
    return driver.having(Phase.IN)


@one_of(lambda driver: driver.having(Phase.JOINED))
def heartbeat_before_sync(driver: Driver, process: Process) -> None:
    """A member that has joined sends a heartbeat before its SyncGroup."""
    driver.heartbeat(process)


def static_rejoin_before_sync(driver: Driver) -> bool:
    """A static follower restarts and rejoins before its SyncGroup.

    The coordinator may wait for its old member id, and for a member that never syncs. The others
    send heartbeats until the pending-sync timer has expired.
    """
    if not complete_join_phase(driver):
        return False
    late = [p for p in driver.having(Phase.JOINED) if p.instance_id and not p.led]
    if not late:
        return False
    back = driver.rng.choice(late)
    others = [p for p in driver.having(Phase.JOINED) if p is not back]
    patient = [p for p in others if p.session_ms > LONG_MS and not p.led]
    silent = patient[:1] if driver.rng.random() < 0.5 else []
    for process in others:
        if process not in silent:
            driver.sync(process)
    driver.restart(back)
    driver.join(back)
    if back.phase is Phase.JOINED:
        driver.sync(back)
    longest_ms = max(p.rebalance_ms for p in driver.processes)
    driver.wait_with_heartbeats(back.joined_ms + longest_ms + OVERDUE_MS, driver.living)
    driver.beat()
    return True


def static_rejoin_without_protocol(driver: Driver) -> bool:
    """A static follower rejoins before its SyncGroup, without the selected protocol.

    The leader sends the assignment nevertheless; then the follower leaves, so that waiting members
    get responses.
    """
    if not complete_join_phase(driver):
        return False
    joined = driver.having(Phase.JOINED)
    followers = [p for p in joined if p.instance_id and not p.led and p.protocol]
    leaders = driver.leaders
    if not followers or not leaders:
        return False
    back = driver.rng.choice(followers)
    selected = back.protocol
    driver.restart(back)
    ((_, data), *_) = back.protocols
    back.protocols = (("rr" if selected == "range" else "range", data),)
    driver.join(back)
    driver.sync(leaders[0], driver.shares(leaders[0], too_large=False))
    driver.leave(back, [("", back.instance_id)], own=False, connection=f"{back.client_id}.x")
    driver.wait(60)
    return True


def oversized_static_rejoin(driver: Driver) -> bool:
    """A static member rejoins with metadata too large for a record, and is silent from then on.

    A full group would refuse it. The others' responses show which protocols the group stores.
    """
    if not driver.too_large:
        return False
    members = reach_stable(driver)
    if len(members) == MAX_SIZE:
        driver.remove([(members[0].member_id, members[0].instance_id)], "out")
        members[0].gone = True
        complete_join_phase(driver)
        members = reach_stable(driver)
    able = [p for p in members if p.instance_id and p.session_ms >= 1_500]
    if not able or len(members) < 2:
        return False
    process = driver.rng.choice(able)
    driver.restart(process)
    bulk = subscription(b"a" * driver.too_large)
    process.protocols = tuple((name, bulk) for name, _ in process.protocols)
    driver.join(process, patience_ms=120)
    process.gone = True
    driver.describe(driver.rng.choice(driver.processes))
    complete_join_phase(driver)
    driver.wait(max(p.rebalance_ms for p in driver.processes))
    return True


def oversized_assignment(driver: Driver) -> bool:
    """The leader sends assignments too large for a record, while others send heartbeats."""
    leaders = driver.leaders
    if not driver.too_large or not leaders:
        return False
    driver.sync(leaders[0], driver.shares(leaders[0], too_large=True), patience_ms=0)
    for process in driver.free:
        if process is not leaders[0]:
            driver.heartbeat(process, patience_ms=0)
    return True


def remove_all_members(driver: Driver) -> None:
    """Remove all known members, in one request if the version allows it."""
    stale = [(ref, None) for process in driver.processes for ref in process.stale]
    known = [process for process in driver.processes if process.member_id]
    who = [*((process.member_id, process.instance_id) for process in known), *stale]
    for process in known:
        process.forget()
    if who:
        driver.remove(who, "evict")
        driver.wait(30)


def extended_initial_delay(driver: Driver) -> bool:
    """All members are removed; new ones join one by one, and extend the initial rebalance delay.

    DescribeGroups follows the first join, and the time when the delay would surely have ended
    without an extension.
    """
    remove_all_members(driver)
    for process in driver.living:
        process.gone = True
    observer, began_ms = driver.start_process(), 0.0
    for _ in range(4):
        driver.join_without_waiting(driver.start_process(rebalance_ms=LONG_MS))
        if not began_ms:
            driver.describe(observer, patience_ms=LONG_MS)
            began_ms = driver.now_ms
        driver.wait(130)
    driver.connections.receive_until(began_ms + 730)
    driver.describe(observer)
    driver.settle(600)
    return True


def pending_expiry_in_initial_delay(driver: Driver) -> bool:
    """A pending member's session expires during the initial delay, which others extend.

    Its JoinGroup shows the expiry. Joins and removals for longer than a timer may be late show that
    the delay lasts. Some coordinators extend it before the first generation only.
    """
    remove_all_members(driver)
    if len(driver.living) > MOST - 3:
        return False
    pending, waiting = driver.start_process(dynamic=True, session_ms=SHORT_MS), list[Process]()
    driver.join(pending, patience_ms=10)
    for _ in range(9):
        waiting.append(driver.start_process(f"i{len(driver.processes) + 1}", rebalance_ms=LONG_MS))
        driver.join(waiting[-1], patience_ms=0)
        driver.wait(140)
        if len(waiting) == MAX_SIZE - 1:
            if pending.member_id and not pending.joined:
                driver.join(pending, patience_ms=30)
                driver.describe(pending)
            old = waiting.pop(0)
            old.gone = True
            driver.remove([("", old.instance_id)], "out")
    driver.settle(600)
    return True


def delete_group_under_requests(driver: Driver) -> bool:
    """All members are removed, and the group is deleted while requests for it arrive."""
    whom = [(p, p.member_id, p.generation) for p in driver.free if p.member_id][:3]
    remove_all_members(driver)
    if not driver.free or not whom:
        return False
    driver.delete(driver.rng.choice(driver.free), connection="delete", patience_ms=0)
    for process, member_id, generation in whom:
        if driver.rng.random() < 0.3:
            driver.join(process, patience_ms=0)
        else:
            known = {"memberId": member_id, "generationId": generation}
            driver.heartbeat(process, known, own=False, patience_ms=0)
    driver.wait(30)
    return True


def static_rejoin_in_first_join_phase(driver: Driver) -> bool:
    """A new static member rejoins in its first join phase, which lasts longer than its session."""
    if len(driver.living) >= MOST or not any(p.session_ms >= 1_000 for p in reach_stable(driver)):
        return False
    name = f"i{len(driver.processes) + 1}"
    new = driver.start_process(name, session_ms=SHORT_MS, rebalance_ms=LONG_MS)
    driver.join(new, patience_ms=20)
    if new.busy:
        driver.restart(new)
        driver.join(new, patience_ms=SHORT_MS + OVERDUE_MS)
    return True


def leave_of_pending_member(driver: Driver) -> bool:
    """A pending member leaves, with or without an instance id.

    Before, it may send a JoinGroup with an instance id, which coordinators do not foresee.
    """
    if len(driver.living) >= MOST:
        return False
    pending = driver.start_process(dynamic=True)
    pending.gone = True
    driver.join(pending, patience_ms=120)
    if not pending.member_id or pending.joined:
        return True
    instances = [p.instance_id for p in driver.processes if p.instance_id]
    instance = driver.rng.choice((None, "ghost", *instances[:1]))
    if instance is not None:
        other = f"{pending.client_id}.x"
        driver.join(pending, {"groupInstanceId": "ghost"}, own=False, connection=other)
    driver.leave(pending, [(pending.member_id, instance)], own=False)
    driver.beat()
    return True


def repeated_sync(driver: Driver) -> bool:
    """A member repeats its SyncGroup shortly before its session expires, then is silent."""
    brief = [p for p in driver.having(Phase.IN) if 1_000 <= p.session_ms <= 1_500]
    if not brief or len(driver.having(Phase.IN)) < 2:
        return False
    silent = driver.rng.choice(brief)
    driver.heartbeat(silent, patience_ms=60)
    began_ms, session_ms = driver.now_ms, silent.session_ms
    beating = [p for p in driver.having(Phase.IN) if p is not silent]
    driver.wait_with_heartbeats(began_ms + 0.7 * session_ms, beating)
    driver.sync(silent, own=False)
    for more_ms in (200, 600):  # expired if SyncGroup does not renew it; surely expired
        driver.wait_with_heartbeats(began_ms + session_ms + more_ms, beating)
        driver.beat(without=silent)
    return True


@one_of(lambda driver: [p for p in driver.having(Phase.IN) if p.session_ms <= 1_500])
def heartbeat_at_session_end(driver: Driver, process: Process) -> None:
    """A member sends heartbeats at the moment when its session expires."""
    driver.heartbeat(process, patience_ms=60)
    others = [p for p in driver.having(Phase.IN) if p is not process]
    driver.wait_with_heartbeats(process.alive_ms + process.session_ms - 3, others)
    for _ in range(12):
        driver.heartbeat(process, own=False, patience_ms=1)
    driver.beat()


def describe_at_creation(driver: Driver) -> bool:
    """DescribeGroups at the moment when a group is created.

    The error code of a commit shows whether the group exists already.
    """
    observer, first = driver.start_process(), driver.start_process()
    driver.describe(observer)
    driver.join(first, patience_ms=0)
    commit_to_unknown_group(driver, patience_ms=60)
    driver.describe(observer)
    return True


def delete_and_recreate_group(driver: Driver) -> bool:
    """All members are removed, and the group is deleted and created again."""
    if not driver.free:
        return False
    remove_all_members(driver)
    driver.delete(driver.rng.choice(driver.free))
    for process in driver.living:
        process.gone = True
    return describe_at_creation(driver)


def commit_to_unknown_group(driver: Driver, **how: Unpack[Sending]) -> bool:
    """A commit with a generation, to a group that never existed."""
    who = {"memberId": "nobody", "generationId": 1, "generationIdOrMemberEpoch": 1}
    how["own"] = False
    driver.commit(driver.start_process(), who, **how)
    return True


def slightly_oversized_commit(driver: Driver) -> bool:
    """A commit slightly above the log's limit, while others send heartbeats.

    The excess is so small that the Java coordinator notices it only when it writes the batch.
    """
    members = reach_stable(driver)
    if not driver.too_large or len(members) < 2:
        return False
    driver.commit(members[0], driver.offsets_just_too_large(), own=False, patience_ms=0)
    for process in 3 * members[1:]:
        driver.heartbeat(process, own=False, patience_ms=2)
    driver.wait(60)
    return True
