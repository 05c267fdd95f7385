"""The actions of a sequence and their weights: `TABLE`.

Most actions are those of real clients, so that groups get through rebalances; the others no client
should do. Arguments depend on earlier responses, so that most sequences reach rare states.
The order of `TABLE` and the draws of an action decide the sequences of a seed.
"""

from operator import attrgetter
from typing import Any

from groupquake.fuzz import composite
from groupquake.fuzz.driver import MOST, Action, Driver, Fields, assignments, one_of
from groupquake.fuzz.process import Phase, Process
from groupquake.fuzz.timing import AROUND_MS, JOINING_MS

_living, _free = attrgetter("living"), attrgetter("free")


def _static(driver: Driver) -> list[Process]:
    """Static processes, while there is room for another one."""
    return [p for p in driver.living if p.instance_id] if len(driver.living) < MOST else []


def well_behaved_step(driver: Driver) -> bool:
    """One process does what a client would do, mostly one that is not in the group."""
    able = driver.free
    lagging = [p for p in able if p.phase is not Phase.IN]
    if lagging and driver.rng.random() < 0.8:
        able = lagging
    if able:
        driver.well_behaved_step(driver.rng.choice(able))
    return bool(able)


def form_group(driver: Driver) -> bool:
    """All processes do what clients would do, for four rounds."""
    for _ in range(4):
        lagging = [p for p in driver.free if p.phase is not Phase.IN]
        for process in sorted(lagging, key=lambda p: p.phase is Phase.JOINED and bool(p.led)):
            if not process.busy:
                driver.well_behaved_step(process)
        driver.settle(JOINING_MS)
        driver.beat()
    return True


def start_process(driver: Driver) -> bool:
    """A new process starts and joins."""
    if len(driver.living) >= MOST:
        return False
    driver.join(driver.start_process())
    return True


@one_of(_living)
def restart_process(driver: Driver, process: Process) -> None:
    """A process crashes and restarts at once, with its instance id and without member id."""
    driver.restart(process)
    if driver.rng.random() < 0.2:
        process.protocols = driver.protocols()
    driver.join(process)


@one_of(lambda driver: driver.living if len(driver.living) > 1 else [])
def crash_process(driver: Driver, process: Process) -> None:
    """A process crashes and does not restart."""
    driver.fall_silent(process)
    process.gone = True


@one_of(_static)
def duplicate_instance_id(driver: Driver, process: Process) -> None:
    """A second process joins with an instance id in use."""
    driver.join(driver.start_process(process.instance_id))


@one_of(_static)
def duplicates_at_once(driver: Driver, process: Process) -> None:
    """A static member crashes, and two processes with its instance id start at once."""
    driver.restart(process)
    second = driver.start_process(process.instance_id)
    driver.join(process, patience_ms=0)
    driver.join(second)


@one_of(lambda driver: [p for p in driver.free if p.joined])
def rejoin_with_changes(driver: Driver, process: Process) -> None:
    """A member rejoins with its member id, maybe with other protocols or timeouts."""
    if driver.rng.random() < 0.6:
        process.protocols = driver.protocols()
    if driver.rng.random() < 0.3:
        process.session_ms = driver.rng.choice((600, 1000, 2000))
        process.rebalance_ms = driver.rng.choice((500, 900, 1500))
    driver.join(process)


@one_of(lambda driver: [p for p in driver.living if p.busy])
def repeat_waiting_request(driver: Driver, process: Process) -> None:
    """A process that waits for a response sends one more request, maybe on another connection."""
    other = f"{process.client_id}.{process.incarnation}b"
    connection = driver.rng.choice((other, other, process.connection))
    if driver.rng.random() < 0.6:
        driver.join(process, connection=connection, own=False)
    else:
        driver.sync(process, own=False)


@one_of(lambda driver: [p for p in driver.living if p.member_id])
def leave(driver: Driver, process: Process) -> None:
    """A member leaves as clients do."""
    driver.leave(process, [(process.member_id, process.instance_id)])


@one_of(_living)
def batch_removal(driver: Driver, process: Process) -> None:
    """One LeaveGroup of up to four: members, pending, fenced, unknown or repeated ones."""
    who = []
    for _ in range(driver.rng.randint(1, 4)):
        whom = driver.rng.choice(driver.processes)
        who.append((member_id(driver, whom), instance_id(driver, whom)))
    driver.leave(process, who, own=False)


@one_of(_free)
def request_with_other_ids(driver: Driver, process: Process) -> None:
    """A request whose ids and generation may be another member's, old or unknown."""
    whom = driver.rng.choice(driver.processes)
    who = {**ids(driver, whom), **generation(driver, whom)}
    say = driver.rng.choice((driver.heartbeat, driver.sync, driver.commit))
    say(process, who, own=False)


@one_of(_living)
def join_with_other_ids(driver: Driver, process: Process) -> None:
    """A JoinGroup with mismatched or unknown ids."""
    who = ids(driver, driver.rng.choice(driver.processes))
    driver.join(process, who, connection=f"{process.client_id}.x", own=False)


ODD_JOINS: tuple[Fields, ...] = (
    {"sessionTimeoutMs": 100},
    {"sessionTimeoutMs": 10_000_000},
    {"protocols": []},
    {"protocolType": ""},
    {"protocolType": "connect"},
    {"protocols": [{"name": "unheard-of", "metadata": ""}]},
)
ODD_SYNCS: tuple[Fields, ...] = ({"protocolName": "other"}, {"protocolType": "connect"})


@one_of(_free)
def invalid_join_or_sync(driver: Driver, process: Process) -> None:
    """A JoinGroup or SyncGroup with invalid timeouts, protocols or protocol type."""
    if process.phase is Phase.JOINED:
        driver.sync(process, driver.rng.choice(ODD_SYNCS), own=False)
    else:
        driver.join(process, driver.rng.choice(ODD_JOINS), own=False)


@one_of(lambda driver: driver.leaders)
def incomplete_assignment(driver: Driver, process: Process) -> None:
    """A leader omits a member from the assignment."""
    driver.sync(process, {"assignments": assignments(process.led[:-1])})


@one_of(_free)
def commit_without_generation(driver: Driver, process: Process) -> None:
    """A commit without generation, as of a consumer without a group; with or without ids."""
    who: dict[str, Any] = {"memberId": "", "groupInstanceId": None}
    if driver.rng.random() < 0.4:
        who = {"memberId": member_id(driver, process)}
    none = {"generationId": -1, "generationIdOrMemberEpoch": -1}
    driver.commit(process, {**none, **who}, own=False)


@one_of(_free)
def describe_group(driver: Driver, process: Process) -> None:
    """A DescribeGroups request."""
    driver.describe(process)


@one_of(_free)
def delete_group(driver: Driver, process: Process) -> None:
    """A DeleteGroups request."""
    driver.delete(process)


def pause(driver: Driver) -> bool:
    """A short pause."""
    driver.wait(driver.rng.choice((10, 30, 80)))
    return True


def wait_for_timer(driver: Driver) -> bool:
    """A wait until about the expiry of a timer; some processes send heartbeats meanwhile."""
    due = [ms + driver.rng.choice(AROUND_MS) for ms in timers(driver)]
    soon = [ms for ms in due if driver.now_ms < ms < driver.now_ms + 2_500]
    if not soon:
        return False
    beating = [p for p in driver.living if driver.rng.random() < 0.7]
    driver.wait_with_heartbeats(driver.rng.choice(soon), beating)
    return True


def timers(driver: Driver) -> list[float]:
    """List the expiry times of the coordinator's timers, as far as clients can know them."""
    longest = max((p.rebalance_ms for p in driver.processes), default=0)
    sessions = [p.alive_ms + p.session_ms for p in driver.processes if p.joined]
    pending = [p.pending_ms + p.session_ms for p in driver.living if p.pending_ms and not p.joined]
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
    (2, composite.heartbeat_before_sync),
    (1, composite.complete_join_phase),
    (1, composite.static_rejoin_before_sync),
    (1, composite.static_rejoin_without_protocol),
    (9, composite.oversized_static_rejoin),
    (4, composite.oversized_assignment),
    (4, composite.slightly_oversized_commit),
    (2, composite.extended_initial_delay),
    (5, composite.pending_expiry_in_initial_delay),
    (4, composite.delete_group_under_requests),
    (1, composite.delete_and_recreate_group),
    (2, composite.static_rejoin_in_first_join_phase),
    (1, composite.leave_of_pending_member),
    (2, composite.repeated_sync),
    (5, composite.heartbeat_at_session_end),
)
BEFORE_GROUP_EXISTS: tuple[Action, ...] = (
    request_with_other_ids,
    commit_without_generation,
    describe_group,
    delete_group,
    batch_removal,
    composite.commit_to_unknown_group,
    composite.describe_at_creation,
    composite.pending_expiry_in_initial_delay,
)
"""Actions on a group that does not exist yet."""


def ids(driver: Driver, process: Process) -> dict[str, Any]:
    """Draw a member id and an instance id."""
    return {
        "memberId": member_id(driver, process),
        "groupInstanceId": instance_id(driver, process),
    }


def member_id(driver: Driver, process: Process) -> str:
    """Draw a member id: the process's own, an earlier one, another's, an unknown one, or none."""
    others = [p.member_id for p in driver.processes if p is not process]
    stale = [ref for p in driver.processes for ref in p.stale]
    own = [process.member_id]
    kinds = [own, own, others, stale, ["nobody"], [""]]
    return driver.rng.choice(driver.rng.choice([kind for kind in kinds if kind]))


def instance_id(driver: Driver, process: Process) -> str | None:
    """Draw an instance id: mostly the process's own, else another's, an unknown one, or none."""
    if driver.dynamic_alone:
        return None
    others = [p.instance_id for p in driver.processes]
    return driver.rng.choice([process.instance_id] * 4 + [driver.rng.choice(others), "ghost", None])


def generation(driver: Driver, process: Process) -> dict[str, Any]:
    """Draw a generation: mostly the process's own, else one more or less."""
    plus = driver.rng.choice((0, 0, 0, 1, -1))
    value = process.generation
    if value >= 0:
        value += plus
    elif plus > 0:
        value = 1
    return {"generationId": value, "generationIdOrMemberEpoch": value}
