"""What may happen in a world: requests of processes and others, time, writes, brokers."""

from collections.abc import Callable, Iterator, Mapping

from reference_coordinator.classic.events import (
    Expired,
    Loaded,
    LoadStarted,
    RequestsEnabled,
    Timer,
    Unloaded,
)
from reference_coordinator.classic.state import EMPTY, Group
from reference_coordinator.driving.client import IN, JOINED, JOINING, OUT, WAITING
from selftest.explore.world import OPERATOR, Action, World, serial_of


def after(world: World, action: Action) -> World:
    """Return the world after an action."""
    forked = world.fork()
    forked.begin(action.leader)
    _ACTIONS[action.kind](forked, action)
    forked.faults_left -= action.kind in FAULTS
    return forked


def actions(world: World) -> Iterator[Action]:
    """Yield what may happen, but for what Kafka leaves open in it (`World.leaders`)."""
    if not world.is_closed:
        yield from _requests(world)
    else:
        yield Action("opens")
    if world.writes:
        yield Action("written")
    if (due := world.next_timers()) is not None:
        for timer in due[1]:
            yield Action("passes", pick=text_of(timer))
    for place, p in enumerate(world.processes):
        if p.is_beating:
            silent = world.fork()
            silent.put(place, is_silent=True)
            for timer in (silent.next_timers() or (0, ()))[1]:
                yield Action("passes", place, text_of(timer))
    if world.faults_left > 0 and not world.is_closed:
        yield from _faults(world)


def _requests(world: World) -> Iterator[Action]:
    for place, p in enumerate(world.processes):
        if p.phase in (OUT, IN, JOINING):
            yield Action("join", place)
        if p.phase is JOINED:
            yield Action("sync", place)
        if p.beats:
            yield Action("beat", place)
            yield Action("commit", place)
            if p.instance is None:
                yield Action("leave", place)
    yield Action("describe")
    if not world.group.exists:
        yield Action("commit_alone")


def _faults(world: World) -> Iterator[Action]:
    for place, p in enumerate(world.processes):
        if p.member_id or p.phase in WAITING:
            yield Action("crash", place)
    if world.writes:
        yield Action("fails")
        yield Action("times_out")
    for instance in dict.fromkeys(p.instance for p in world.processes if p.instance):
        yield Action("remove", pick=instance)
    yield Action("delete")
    if world.group.exists and world.group.state is EMPTY:
        yield Action("expire")
    yield Action("move")
    yield Action("kill")
    if world.writes:
        yield Action("kill", pick="stored")
    yield Action("restart")


# Requests.


def _asks(api: str) -> Callable[[World, Action], None]:
    """Return what lets a process send a request, which is silent no longer."""

    def ask(world: World, action: Action) -> None:
        p, request = world.processes[action.who], world.name()
        world.processes[action.who] = p.sending(api, request)
        world.put(action.who, is_silent=False)
        world.ask(p, api, request)

    return ask


def _join(world: World, action: Action) -> None:
    """Let a process send JoinGroup: a known member with its id, anyone else without."""
    world.put(action.who, is_replaced=False)
    p = world.processes[action.who]
    if p.instance is not None and not p.member_id:
        for place, other in enumerate(world.processes):
            if other.instance == p.instance and place != action.who:
                world.put(place, is_replaced=True)
    _asks("JOIN_GROUP")(world, action)


def _crash(world: World, action: Action) -> None:
    """Let a process die; another of its name may start."""
    world.processes[action.who] = world.processes[action.who].next_process()


def _remove(world: World, action: Action) -> None:
    """Let an operator remove an instance."""
    members = [{"memberId": "", "groupInstanceId": action.pick}]
    world.ask(OPERATOR, "LEAVE_GROUP", world.name(), members=members)


def _operator(api: str) -> Callable[[World, Action], None]:
    """Return what lets somebody without a group send a request."""
    return lambda world, _: world.ask(
        OPERATOR, api, world.name(), groups=[world.group.group_id],
        groupsNames=[world.group.group_id],
    )  # fmt: skip


# Time.


def _passes(world: World, action: Action) -> None:
    """Let time pass until a timer expires; all processes but one send heartbeats.

    Timers that expire meanwhile without any effect are passed over.
    """
    if action.who >= 0:
        world.put(action.who, is_silent=True)
    while (due := world.next_timers()) is not None:
        until_ms, timers = due
        _keep_alive(world, until_ms)
        overdue = (timer for timer, at_ms in world.timers.items() if at_ms < until_ms)
        picked = (timer for timer in timers if text_of(timer) == action.pick)
        timer = next(overdue, None) or next(picked, timers[0])
        before, world.now_ms = world.group, until_ms
        world.fire(timer)
        if world.log[-1].effects or world.group is not before:
            return


def _keep_alive(world: World, until_ms: float) -> None:
    """Send the heartbeats of all processes that send any, three a session."""
    every_ms, at_ms = world.processes[0].session_ms // 3, world.now_ms
    while any(map(world.beats, world.processes)) and at_ms < until_ms - 1:
        world.now_ms = at_ms = min(at_ms + every_ms, until_ms - 1)
        for place, p in enumerate(world.processes):
            if world.beats(p):
                _asks("HEARTBEAT")(world, Action("beat", place))


def text_of(timer: Timer) -> str:
    """Name a timer."""
    return f"{timer.kind}:{timer.member_id}"


# The log, and the brokers.


def _fails(world: World, action: Action) -> None:
    """Let the oldest write fail, or time out and be stored all the same."""
    world.end_write(None, world.profile.write_timeout, stored=action.kind == "times_out")


def _move(world: World, _: Action) -> None:
    """Let the broker resign, and another load the group."""
    before = world.group
    world.take(Unloaded(world.now_ms))
    _load(world, before)


def _kill(world: World, action: Action) -> None:
    """Kill the broker; another loads what was stored, `pick` says if the oldest write was."""
    if action.pick:
        world.stored = world.writes[0]
    _load(world, world.group)


def _restart(world: World, _: Action) -> None:
    """Kill the broker and start it again: it loads the group before it takes requests."""
    _load(world, world.group, closed=True)


def _expire(world: World, _: Action) -> None:
    """Let the broker remove the Empty group."""
    world.take(Expired(world.now_ms))


def _opens(world: World, _: Action) -> None:
    """Let the broker take requests."""
    world.is_closed = False
    world.take(RequestsEnabled(world.now_ms))


def _load(world: World, before: Group, *, closed: bool = False) -> None:
    """Load what was stored; requests that waited at the broker before get no response."""
    world.in_hand = frozenset()
    for place, p in enumerate(world.processes):
        if p.phase in WAITING:
            world.put(place, phase=OUT, request="")
    world.is_closed = closed
    world.broker = world.broker if closed else 1 - world.broker
    world.serial = serial_of(world.stored)
    world.take(LoadStarted(world.now_ms))
    world.take(Loaded(world.now_ms, world.stored_record, closed), known=before)


FAULTS = (
    "crash", "fails", "times_out", "remove", "delete", "expire", "move", "kill", "restart",
)  # fmt: skip
"""The actions that a scope has only so many of."""
_ACTIONS: Mapping[str, Callable[[World, Action], None]] = {
    "join": _join,
    "sync": _asks("SYNC_GROUP"),
    "beat": _asks("HEARTBEAT"),
    "commit": _asks("OFFSET_COMMIT"),
    "leave": _asks("LEAVE_GROUP"),
    "crash": _crash,
    "remove": _remove,
    "commit_alone": _operator("OFFSET_COMMIT"),
    "describe": _operator("DESCRIBE_GROUPS"),
    "delete": _operator("DELETE_GROUPS"),
    "expire": _expire,
    "passes": _passes,
    "written": lambda world, _: world.end_write(),
    "fails": _fails,
    "times_out": _fails,
    "move": _move,
    "kill": _kill,
    "restart": _restart,
    "opens": _opens,
}
