"""What may happen in a scene: requests of processes and others, time, writes, brokers."""

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
from selftest.explore.scene import OPERATOR, Action, Scene, serial_of


def after(scene: Scene, action: Action) -> Scene:
    """Return the scene after an action."""
    forked = scene.fork()
    forked.begin(action.leader)
    _ACTIONS[action.kind](forked, action)
    forked.faults_left -= action.kind in FAULTS
    return forked


def actions(scene: Scene) -> Iterator[Action]:
    """Yield what may happen, but for what Kafka leaves open in it (`Scene.leaders`)."""
    if not scene.is_closed:
        yield from _requests(scene)
    else:
        yield Action("opens")
    if scene.writes:
        yield Action("written")
    if (due := scene.next_timers()) is not None:
        for timer in due[1]:
            yield Action("passes", pick=text_of(timer))
    for place, p in enumerate(scene.processes):
        if p.is_beating:
            silent = scene.fork()
            silent.put(place, is_silent=True)
            for timer in (silent.next_timers() or (0, ()))[1]:
                yield Action("passes", place, text_of(timer))
    if scene.faults_left > 0 and not scene.is_closed:
        yield from _faults(scene)


def _requests(scene: Scene) -> Iterator[Action]:
    for place, p in enumerate(scene.processes):
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
    if not scene.group.exists:
        yield Action("commit_alone")


def _faults(scene: Scene) -> Iterator[Action]:
    for place, p in enumerate(scene.processes):
        if p.member_id or p.phase in WAITING:
            yield Action("crash", place)
    if scene.writes:
        yield Action("fails")
        yield Action("times_out")
    for instance in dict.fromkeys(p.instance for p in scene.processes if p.instance):
        yield Action("remove", pick=instance)
    yield Action("delete")
    if scene.group.exists and scene.group.state is EMPTY:
        yield Action("expire")
    yield Action("move")
    yield Action("kill")
    if scene.writes:
        yield Action("kill", pick="stored")
    yield Action("restart")


# Requests.


def _asks(api: str) -> Callable[[Scene, Action], None]:
    """Return what lets a process send a request, which is silent no longer."""

    def ask(scene: Scene, action: Action) -> None:
        p, request = scene.processes[action.who], scene.name()
        scene.processes[action.who] = p.sending(api, request)
        scene.put(action.who, is_silent=False)
        scene.ask(p, api, request)

    return ask


def _join(scene: Scene, action: Action) -> None:
    """Let a process send JoinGroup: a known member with its id, anyone else without."""
    scene.put(action.who, is_replaced=False)
    p = scene.processes[action.who]
    if p.instance is not None and not p.member_id:
        for place, other in enumerate(scene.processes):
            if other.instance == p.instance and place != action.who:
                scene.put(place, is_replaced=True)
    _asks("JOIN_GROUP")(scene, action)


def _crash(scene: Scene, action: Action) -> None:
    """Let a process die; another of its name may start."""
    scene.processes[action.who] = scene.processes[action.who].next_process()


def _remove(scene: Scene, action: Action) -> None:
    """Let an operator remove an instance."""
    members = [{"memberId": "", "groupInstanceId": action.pick}]
    scene.ask(OPERATOR, "LEAVE_GROUP", scene.name(), members=members)


def _operator(api: str) -> Callable[[Scene, Action], None]:
    """Return what lets somebody without a group send a request."""
    return lambda scene, _: scene.ask(
        OPERATOR, api, scene.name(), groups=[scene.group.group_id],
        groupsNames=[scene.group.group_id],
    )  # fmt: skip


# Time.


def _passes(scene: Scene, action: Action) -> None:
    """Let time pass until a timer expires; all processes but one send heartbeats.

    Timers that expire meanwhile without any effect are passed over.
    """
    if action.who >= 0:
        scene.put(action.who, is_silent=True)
    while (due := scene.next_timers()) is not None:
        until_ms, timers = due
        _keep_alive(scene, until_ms)
        overdue = (timer for timer, at_ms in scene.timers.items() if at_ms < until_ms)
        picked = (timer for timer in timers if text_of(timer) == action.pick)
        timer = next(overdue, None) or next(picked, timers[0])
        before, scene.now_ms = scene.group, until_ms
        scene.fire(timer)
        if scene.log[-1].effects or scene.group is not before:
            return


def _keep_alive(scene: Scene, until_ms: float) -> None:
    """Send the heartbeats of all processes that send any, three a session."""
    every_ms, at_ms = scene.processes[0].session_ms // 3, scene.now_ms
    while any(map(scene.beats, scene.processes)) and at_ms < until_ms - 1:
        scene.now_ms = at_ms = min(at_ms + every_ms, until_ms - 1)
        for place, p in enumerate(scene.processes):
            if scene.beats(p):
                _asks("HEARTBEAT")(scene, Action("beat", place))


def text_of(timer: Timer) -> str:
    """Name a timer."""
    return f"{timer.kind}:{timer.member_id}"


# The log, and the brokers.


def _fails(scene: Scene, action: Action) -> None:
    """Let the oldest write fail, or time out and be stored all the same."""
    scene.end_write(None, scene.profile.write_timeout, stored=action.kind == "times_out")


def _move(scene: Scene, _: Action) -> None:
    """Let the broker resign, and another load the group."""
    before = scene.group
    scene.take(Unloaded(scene.now_ms))
    _load(scene, before)


def _kill(scene: Scene, action: Action) -> None:
    """Kill the broker; another loads what was stored, `pick` says if the oldest write was."""
    if action.pick:
        scene.stored = scene.writes[0]
    _load(scene, scene.group)


def _restart(scene: Scene, _: Action) -> None:
    """Kill the broker and start it again: it loads the group before it takes requests."""
    _load(scene, scene.group, closed=True)


def _expire(scene: Scene, _: Action) -> None:
    """Let the broker remove the Empty group."""
    scene.take(Expired(scene.now_ms))


def _opens(scene: Scene, _: Action) -> None:
    """Let the broker take requests."""
    scene.is_closed = False
    scene.take(RequestsEnabled(scene.now_ms))


def _load(scene: Scene, before: Group, *, closed: bool = False) -> None:
    """Load what was stored; requests that waited at the broker before get no response."""
    scene.in_hand = frozenset()
    for place, p in enumerate(scene.processes):
        if p.phase in WAITING:
            scene.put(place, phase=OUT, request="")
    scene.is_closed = closed
    scene.broker = scene.broker if closed else 1 - scene.broker
    scene.serial = serial_of(scene.stored)
    scene.take(LoadStarted(scene.now_ms))
    scene.take(Loaded(scene.now_ms, scene.stored_record, closed), known=before)


FAULTS = (
    "crash", "fails", "times_out", "remove", "delete", "expire", "move", "kill", "restart",
)  # fmt: skip
"""The actions that a scope has only so many of."""
_ACTIONS: Mapping[str, Callable[[Scene, Action], None]] = {
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
    "written": lambda scene, _: scene.end_write(),
    "fails": _fails,
    "times_out": _fails,
    "move": _move,
    "kill": _kill,
    "restart": _restart,
    "opens": _opens,
}
