"""The actions of a sequence and their weights: `TABLE`.

Most actions are those of real clients, so that groups get through rebalances; the others no client
should do. Arguments depend on earlier responses, so that most sequences reach rare states.
The order of `TABLE` and the draws of an action decide the sequences of a seed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from groupquake.fuzz import composite_actions
from groupquake.fuzz.composite_actions import MOST
from groupquake.fuzz.process import Phase, Process
from groupquake.fuzz.script import Assignments, Ref
from groupquake.fuzz.sequence_driver import SequenceDriver

AROUND_MS = (-150, -60, 60, 200, 700)
"""When requests are sent, relative to the expiry of a timer, which may be late."""

Action = Callable[[SequenceDriver], bool]
"""Carries the action out and returns True; returns False if no process can do it."""


def well_behaved_step(driver: SequenceDriver) -> bool:
    """One process does what a client would do, mostly one that is not in the group."""
    lagging = [p for p in driver.free if p.phase is not Phase.IN]
    if lagging and driver.rng.random() < 0.8:
        driver.well_behaved_step(driver.rng.choice(lagging))
        return True
    return _with(driver, driver.free, driver.well_behaved_step)


def form_group(driver: SequenceDriver) -> bool:
    """All processes do what clients would do, for four rounds."""
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
    """A new process starts and joins."""
    if len(driver.living) >= MOST:
        return False
    driver.join(driver.start_process())
    return True


def restart_process(driver: SequenceDriver) -> bool:
    """A process crashes and restarts at once, with its instance id and without member id."""

    def again(process: Process) -> None:
        driver.fall_silent(process)
        process.restart()
        if driver.rng.random() < 0.2:
            process.protocols = driver.protocols()
        driver.join(process)

    return _with(driver, driver.living, again)


def crash_process(driver: SequenceDriver) -> bool:
    """A process crashes and does not restart."""

    def die(process: Process) -> None:
        driver.fall_silent(process)
        process.gone = True

    return len(driver.living) > 1 and _with(driver, driver.living, die)


def duplicate_instance_id(driver: SequenceDriver) -> bool:
    """A second process joins with an instance id in use."""
    if len(driver.living) >= MOST:
        return False
    static = [p for p in driver.living if p.instance_id]
    return _with(driver, static, lambda p: driver.join(driver.start_process(p.instance_id)))


def duplicates_at_once(driver: SequenceDriver) -> bool:
    """A static member crashes, and two processes with its instance id start at once."""

    def both(process: Process) -> None:
        driver.fall_silent(process)
        process.restart()
        second = driver.start_process(process.instance_id)
        driver.join(process, patience_ms=0)
        driver.join(second)

    return len(driver.living) < MOST and _with(
        driver, [p for p in driver.living if p.instance_id], both
    )


def rejoin_with_changes(driver: SequenceDriver) -> bool:
    """A member rejoins with its member id, maybe with other protocols or timeouts."""

    def other(process: Process) -> None:
        if driver.rng.random() < 0.6:
            process.protocols = driver.protocols()
        if driver.rng.random() < 0.3:
            process.session_ms = driver.rng.choice((600, 1000, 2000))
            process.rebalance_ms = driver.rng.choice((500, 900, 1500))
        driver.join(process)

    return _with(driver, [p for p in driver.free if p.joined], other)


def repeat_waiting_request(driver: SequenceDriver) -> bool:
    """A process that waits for a response sends one more request, maybe on another connection."""

    def repeat(process: Process) -> None:
        other = f"{process.client_id}.{process.incarnation}b"
        connection = driver.rng.choice((other, other, process.connection))
        if driver.rng.random() < 0.6:
            driver.join(process, connection=connection, own=False)
        else:
            driver.sync(process, own=False)

    return _with(driver, [p for p in driver.living if p.busy], repeat)


def leave(driver: SequenceDriver) -> bool:
    """A member leaves as clients do."""
    members = [p for p in driver.living if p.member_id]

    def go(process: Process) -> None:
        driver.leave(process, [(process.member_id, process.instance_id)], own=True)

    return _with(driver, members, go)


def batch_removal(driver: SequenceDriver) -> bool:
    """One LeaveGroup of up to four: members, pending, fenced, unknown or repeated ones."""

    def batch(process: Process) -> None:
        who = []
        for _ in range(driver.rng.randint(1, 4)):
            whom = driver.rng.choice(driver.processes)
            who.append((member_id(driver, whom), instance_id(driver, whom)))
        driver.leave(process, who, own=False)

    return _with(driver, driver.living, batch)


def request_with_other_ids(driver: SequenceDriver) -> bool:
    """A request whose ids and generation may be another member's, old or unknown."""

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
    """A JoinGroup with mismatched or unknown ids."""

    def join(process: Process) -> None:
        whom = driver.rng.choice(driver.processes)
        who: dict[str, Any] = {
            "memberId": member_id(driver, whom),
            "groupInstanceId": instance_id(driver, whom),
        }
        driver.join(process, connection=f"{process.client_id}.x", own=False, **who)

    return _with(driver, driver.living, join)


def invalid_join_or_sync(driver: SequenceDriver) -> bool:
    """A JoinGroup or SyncGroup with invalid timeouts, protocols or protocol type."""
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
    """A leader omits a member from the assignment."""
    leaders = [p for p in driver.having(Phase.JOINED) if p.leader_step]
    return _with(
        driver, leaders, lambda p: driver.sync(p, assignments=Assignments(p.leader_step, spare=1))
    )


def commit_without_generation(driver: SequenceDriver) -> bool:
    """A commit without generation, as of a consumer without a group; with or without ids."""

    def commit(process: Process) -> None:
        ids: dict[str, Any] = {"memberId": "", "groupInstanceId": None}
        if driver.rng.random() < 0.4:
            ids = {"memberId": member_id(driver, process)}
        none: dict[str, Any] = {"generationId": -1, "generationIdOrMemberEpoch": -1}
        driver.commit(process, own=False, **none, **ids)

    return _with(driver, driver.free, commit)


def describe_group(driver: SequenceDriver) -> bool:
    """A DescribeGroups request."""
    return _with(driver, driver.free, driver.describe)


def delete_group(driver: SequenceDriver) -> bool:
    """A DeleteGroups request."""
    return _with(driver, driver.free, driver.delete)


def pause(driver: SequenceDriver) -> bool:
    """A short pause."""
    driver.connections.receive_until(driver.connections.now_ms + driver.rng.choice((10, 30, 80)))
    return True


def wait_for_timer(driver: SequenceDriver) -> bool:
    """A wait until about the expiry of a timer; some processes send heartbeats meanwhile."""
    now_ms = driver.connections.now_ms
    due = [ms + driver.rng.choice(AROUND_MS) for ms in timers(driver)]
    soon = [ms for ms in due if now_ms < ms < now_ms + 2_500]
    if not soon:
        return False
    beating = [p for p in driver.living if driver.rng.random() < 0.7]
    driver.wait_with_heartbeats(driver.rng.choice(soon), beating)
    return True


def timers(driver: SequenceDriver) -> list[float]:
    """List the expiry times of the coordinator's timers, as far as clients can know them."""
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
"""Actions on a group that does not exist yet."""


def member_id(driver: SequenceDriver, process: Process) -> Ref | str:
    """Draw a member id: the process's own, an earlier one, another's, an unknown one, or none."""
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
    """Draw an instance id: mostly the process's own, else another's, an unknown one, or none."""
    if driver.dynamic_alone:
        return None
    others = [p.instance_id for p in driver.processes]
    return driver.rng.choice([process.instance_id] * 4 + [driver.rng.choice(others), "ghost", None])


def generation(driver: SequenceDriver, process: Process) -> dict[str, Any]:
    """Draw a generation: mostly the process's own, else one more or less."""
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
    """Do the action with one of the candidates, if there are any."""
    if candidates:
        do(driver.rng.choice(candidates))
    return bool(candidates)
