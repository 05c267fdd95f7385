"""What may happen next in a sequence, and how likely: a table.

Most of it is what clients do, or groups would never get far; the rest is what no client should do.
Arguments depend on what the answers told, so that most sequences reach the interesting states.
"""

from collections.abc import Callable, Mapping
from typing import Any

from groupquake.selftest.fuzz import composite_actions
from groupquake.selftest.fuzz.composite_actions import MOST
from groupquake.selftest.fuzz.process import Phase, Process
from groupquake.selftest.fuzz.script import Assignments, Ref
from groupquake.selftest.fuzz.sequence_driver import SequenceDriver

AROUND_MS = (-150, -60, 60, 200, 700)
"""Where requests are placed around a timer; it may run out some time late."""

Action = Callable[[SequenceDriver], bool]
"""Does something and returns True, or returns False if there is nothing to do it with."""


def well_behaved_step(driver: SequenceDriver) -> bool:
    """Somebody does what a client would do; whoever is not in the group is likelier."""
    lagging = [p for p in driver.free if p.phase is not Phase.IN]
    if lagging and driver.rng.random() < 0.8:
        driver.well_behaved_step(driver.rng.choice(lagging))
        return True
    return _with(driver, driver.free, driver.well_behaved_step)


def form_group(driver: SequenceDriver) -> bool:
    """Everybody does what a client would do, until all are in or somebody is missing."""
    for _ in range(4):
        lagging = [p for p in driver.free if p.phase is not Phase.IN]
        for process in sorted(lagging, key=lambda p: p.phase is Phase.JOINED and p.leader_step > 0):
            if not process.busy:
                driver.well_behaved_step(process)
        driver.connections.receive_until(
            driver.connections.now_ms + 250, lambda: all(not p.waiting for p in driver.living)
        )
        for process in driver.having(Phase.IN):
            driver.heartbeat(process)
    return True


def start_process(driver: SequenceDriver) -> bool:
    """Another process starts."""
    if len(driver.living) >= MOST:
        return False
    driver.join(driver.start_process())
    return True


def restart_process(driver: SequenceDriver) -> bool:
    """A process dies and is back at once, with its identity and no member id."""

    def again(process: Process) -> None:
        driver.fall_silent(process)
        process.restart()
        if driver.rng.random() < 0.2:
            process.protocols = driver.protocols()
        driver.join(process)

    return _with(driver, driver.living, again)


def crash_process(driver: SequenceDriver) -> bool:
    """A process dies for good."""

    def die(process: Process) -> None:
        driver.fall_silent(process)
        process.gone = True

    return len(driver.living) > 1 and _with(driver, driver.living, die)


def duplicate_instance_id(driver: SequenceDriver) -> bool:
    """A second process starts with an instance id in use."""
    if len(driver.living) >= MOST:
        return False
    static = [p for p in driver.living if p.instance_id]
    return _with(driver, static, lambda p: driver.join(driver.start_process(p.instance_id)))


def duplicates_at_once(driver: SequenceDriver) -> bool:
    """A static process is started twice at the same moment, after it died."""

    def both(process: Process) -> None:
        driver.fall_silent(process)
        process.restart()
        twin = driver.start_process(process.instance_id)
        driver.join(process, patience_ms=0)
        driver.join(twin)

    return len(driver.living) < MOST and _with(
        driver, [p for p in driver.living if p.instance_id], both
    )


def rejoin_with_changes(driver: SequenceDriver) -> bool:
    """A member joins again with its id, other protocols or other timeouts, or just so."""

    def other(process: Process) -> None:
        if driver.rng.random() < 0.6:
            process.protocols = driver.protocols()
        if driver.rng.random() < 0.3:
            process.session_ms = driver.rng.choice((600, 1000, 2000))
            process.rebalance_ms = driver.rng.choice((500, 900, 1500))
        driver.join(process)

    return _with(driver, [p for p in driver.free if p.joined], other)


def repeat_waiting_request(driver: SequenceDriver) -> bool:
    """Whoever waits in a request sends it once more, on another connection or the same one."""

    def twice(process: Process) -> None:
        beside = f"{process.client_id}.{process.incarnation}b"
        connection = driver.rng.choice((beside, beside, process.connection))
        if driver.rng.random() < 0.6:
            driver.join(process, connection=connection, own=False)
        else:
            driver.sync(process, own=False)

    return _with(driver, [p for p in driver.living if p.busy], twice)


def leave(driver: SequenceDriver) -> bool:
    """A member leaves as clients do."""
    members = [p for p in driver.living if p.member_id]

    def go(process: Process) -> None:
        driver.leave(process, [(process.member_id, process.instance_id)], own=True)

    return _with(driver, members, go)


def batch_removal(driver: SequenceDriver) -> bool:
    """Somebody removes several at once: members, pending, fenced and unknown ones, one twice."""

    def batch(process: Process) -> None:
        who = []
        for _ in range(driver.rng.randint(1, 4)):
            whom = driver.rng.choice(driver.processes)
            who.append((member_id(driver, whom), instance_id(driver, whom)))
        driver.leave(process, who, own=False)

    return _with(driver, driver.living, batch)


def request_with_other_ids(driver: SequenceDriver) -> bool:
    """A request with ids and a generation that may be of somebody else, old, or of nobody."""

    def speak(process: Process) -> None:
        whom = driver.rng.choice(driver.processes)
        who = {
            "memberId": member_id(driver, whom),
            "groupInstanceId": instance_id(driver, whom),
            **generation(driver, whom),
        }
        say = driver.rng.choice((driver.heartbeat, driver.sync, driver.commit))
        say(process, own=False, **who)

    return _with(driver, driver.free, speak)


def join_with_other_ids(driver: SequenceDriver) -> bool:
    """A JoinGroup with ids that do not belong together, or that nobody knows."""

    def join(process: Process) -> None:
        whom = driver.rng.choice(driver.processes)
        who: dict[str, Any] = {
            "memberId": member_id(driver, whom),
            "groupInstanceId": instance_id(driver, whom),
        }
        driver.join(process, connection=f"{process.client_id}.x", own=False, **who)

    return _with(driver, driver.living, join)


def invalid_join_or_sync(driver: SequenceDriver) -> bool:
    """A JoinGroup or SyncGroup that the group cannot go with: timeouts, protocols, their type."""
    odd: tuple[Mapping[str, Any], ...] = (
        {"sessionTimeoutMs": 100},
        {"sessionTimeoutMs": 10_000_000},
        {"protocols": []},
        {"protocolType": ""},
        {"protocolType": "connect"},
        {"protocols": [{"name": "unheard-of", "metadata": ""}]},
    )

    def join(process: Process) -> None:
        if process.phase is Phase.JOINED:
            wrong: Mapping[str, Any] = driver.rng.choice(
                ({"protocolName": "other"}, {"protocolType": "connect"})
            )
            driver.sync(process, own=False, **wrong)
        else:
            driver.join(process, own=False, **driver.rng.choice(odd))

    return _with(driver, driver.free, join)


def incomplete_assignment(driver: SequenceDriver) -> bool:
    """A leader leaves somebody out of the assignment."""
    leaders = [p for p in driver.having(Phase.JOINED) if p.leader_step]
    return _with(
        driver, leaders, lambda p: driver.sync(p, assignments=Assignments(p.leader_step, spare=1))
    )


def commit_without_generation(driver: SequenceDriver) -> bool:
    """A commit without generation, as a consumer without a group sends it; ids or not."""

    def commit(process: Process) -> None:
        ids: dict[str, Any] = {"memberId": "", "groupInstanceId": None}
        if driver.rng.random() < 0.4:
            ids = {"memberId": member_id(driver, process)}
        none: dict[str, Any] = {"generationId": -1, "generationIdOrMemberEpoch": -1}
        driver.commit(process, own=False, **none, **ids)

    return _with(driver, driver.free, commit)


def describe_group(driver: SequenceDriver) -> bool:
    """Somebody looks at the group."""
    return _with(driver, driver.free, driver.describe)


def delete_group(driver: SequenceDriver) -> bool:
    """Somebody wants the group deleted."""
    return _with(driver, driver.free, driver.delete)


def pause(driver: SequenceDriver) -> bool:
    """A little time passes."""
    driver.connections.receive_until(driver.connections.now_ms + driver.rng.choice((10, 30, 80)))
    return True


def wait_for_timer(driver: SequenceDriver) -> bool:
    """Time passes until about when a timer runs out; some or all send heartbeats meanwhile."""
    now_ms = driver.connections.now_ms
    due = [ms + driver.rng.choice(AROUND_MS) for ms in timers(driver)]
    soon = [ms for ms in due if now_ms < ms < now_ms + 2_500]
    if not soon:
        return False
    beating = [p for p in driver.living if driver.rng.random() < 0.7]
    driver.wait_with_heartbeats(driver.rng.choice(soon), beating)
    return True


def timers(driver: SequenceDriver) -> list[float]:
    """List when timers of the coordinator run out, as far as a client can know."""
    living = driver.living
    longest = max((p.rebalance_ms for p in driver.processes), default=0)
    sessions = [p.alive_ms + p.session_ms for p in driver.processes if p.joined]
    pending = [p.pending_ms + p.session_ms for p in living if p.pending_ms and not p.joined]
    joins = [driver.rebalance_ms + more for more in (200, 400, longest)]
    syncs = [p.joined_ms + longest for p in driver.processes if p.joined_ms]
    return sessions + pending + joins + syncs


TABLE: tuple[tuple[int, Action], ...] = (
    (40, well_behaved_step),
    (10, form_group),
    (9, start_process),
    (8, restart_process),
    (2, crash_process),
    (5, duplicate_instance_id),
    (2, duplicates_at_once),
    (5, rejoin_with_changes),
    (3, repeat_waiting_request),
    (3, leave),
    (4, batch_removal),
    (7, request_with_other_ids),
    (4, join_with_other_ids),
    (3, invalid_join_or_sync),
    (1, incomplete_assignment),
    (2, commit_without_generation),
    (3, describe_group),
    (1, delete_group),
    (6, pause),
    (9, wait_for_timer),
    (2, composite_actions.heartbeat_before_sync),
    (1, composite_actions.complete_join_phase),
    (1, composite_actions.static_rejoin_before_sync),
    (1, composite_actions.static_rejoin_without_protocol),
    (9, composite_actions.oversized_static_rejoin),
    (4, composite_actions.oversized_assignment),
    (4, composite_actions.slightly_oversized_commit),
    (2, composite_actions.extended_initial_delay),
    (5, composite_actions.pending_expiry_in_initial_delay),
    (4, composite_actions.delete_group_under_requests),
    (1, composite_actions.delete_and_recreate_group),
    (2, composite_actions.static_rejoin_in_first_join_phase),
    (1, composite_actions.leave_of_pending_member),
    (2, composite_actions.repeated_sync),
    (5, composite_actions.heartbeat_at_session_end),
)

BEFORE_GROUP_EXISTS = (
    *(
        request_with_other_ids,
        commit_without_generation,
        describe_group,
        delete_group,
        batch_removal,
    ),
    *(
        composite_actions.commit_to_unknown_group,
        composite_actions.describe_at_creation,
        composite_actions.pending_expiry_in_initial_delay,
    ),
)
"""What may be asked of a group that is not there yet."""


def member_id(driver: SequenceDriver, process: Process) -> Ref | str:
    """Draw a member id: a process's own, one of before, another's, nobody's, or none."""
    others = [p.member_id for p in driver.processes if p is not process]
    stale = [ref for p in driver.processes for ref in p.stale]
    kinds: list[list[Ref | str]] = [
        [process.member_id],
        [process.member_id],
        [*others],
        [*stale],
        ["nobody"],
        [""],
    ]
    return driver.rng.choice(driver.rng.choice([kind for kind in kinds if kind]))


def instance_id(driver: SequenceDriver, process: Process) -> str | None:
    """Draw an instance id: a process's own as a rule, else another's, nobody's, or none."""
    if driver.dynamic_alone:
        return None
    others = [p.instance_id for p in driver.processes]
    return driver.rng.choice([process.instance_id] * 4 + [driver.rng.choice(others), "ghost", None])


def generation(driver: SequenceDriver, process: Process) -> dict[str, Any]:
    """Draw a generation: a process's own as a rule, else one off, or none."""
    plus = driver.rng.choice((0, 0, 0, 1, -1))
    value: Any = process.generation
    if isinstance(value, Ref):
        value = Ref(value.step, value.key, plus)
    elif plus > 0:
        value = 1
    return {"generationId": value, "generationIdOrMemberEpoch": value}


def _with(
    driver: SequenceDriver, candidates: list[Process], do: Callable[[Process], object]
) -> bool:
    """Do something with one of the candidates, if there are any."""
    if candidates:
        do(driver.rng.choice(candidates))
    return bool(candidates)
