"""Lets one action happen: requests go to the coordinator, what it answers to the processes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reference_coordinator.classic.events import (
    Choices,
    CommitReceived,
    DeleteReceived,
    DescribeReceived,
    Expired,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    Loaded,
    LoadStarted,
    RecordWritten,
    RequestsEnabled,
    SyncReceived,
    Timer,
    TimerFired,
    TimerKind,
    Unloaded,
)
from reference_coordinator.classic.state import Group
from selftest.explore.broker import Broker
from selftest.explore.scene import (
    HOST,
    JOINING,
    OUT,
    SYNCING,
    WAITING,
    Action,
    Append,
    Process,
)

METADATA, SHARE = "AAEAAAABAAZvcmRlcnMAAAAA", "AAEAAAAA"
"""A subscription, and an assignment, as base64."""
LEAVE_VERSION, COMMIT_VERSION, DESCRIBE_VERSION = 4, 8, 5


@dataclass
class Turn(Broker):
    """One action as it happens."""

    def take(self, action: Action) -> None:
        """Let an action happen."""
        self.leader = action.leader
        _ACTIONS[action.kind](self, action)

    # Requests of processes.

    def join(self, action: Action) -> None:
        """Let a process send JoinGroup: a known member with its id, anyone else without."""
        p, request = self._asks(action.who, phase=JOINING, is_replaced=False)
        if p.instance is not None and not p.member_id:
            for place, other in enumerate(self.scene.processes):
                if other.instance == p.instance and place != action.who:
                    self.update(place, is_replaced=True)
        timeouts = self.rules.timeouts
        self.send(JoinReceived(
            at_ms=self.scene.now_ms, request=request, api_version=self.rules.join_version,
            client_id=p.name, client_host=HOST, member_id=p.member_id,
            group_instance_id=p.instance, session_timeout_ms=timeouts.session_ms,
            rebalance_timeout_ms=timeouts.rebalance_ms, protocol_type="consumer",
            protocols=(("range", METADATA),),
            choices=Choices(f"{p.instance or p.name}-{self.scene.count:04}", self.leader),
        ))  # fmt: skip

    def sync(self, action: Action) -> None:
        """Let a process send SyncGroup; a leader assigns to all members that it was listed."""
        p, request = self._asks(action.who, phase=SYNCING)
        self.send(SyncReceived(
            at_ms=self.scene.now_ms, request=request, generation=p.generation,
            member_id=p.member_id, group_instance_id=p.instance, protocol_type="consumer",
            protocol="range", assignments=tuple((member, SHARE) for member in p.leads),
            api_version=self.rules.sync_version, choices=Choices(leader=self.leader),
        ))  # fmt: skip

    def beat(self, action: Action) -> None:
        """Let a process send a heartbeat."""
        p, request = self._asks(action.who)
        self.send(HeartbeatReceived(
            self.scene.now_ms, request, p.generation, p.member_id, p.instance
        ))  # fmt: skip

    def commit(self, action: Action) -> None:
        """Let a process commit an offset."""
        p, request = self._asks(action.who)
        self.send(CommitReceived(
            self.scene.now_ms, request, COMMIT_VERSION, p.generation, p.member_id, p.instance
        ))  # fmt: skip

    def leave(self, action: Action) -> None:
        """Let a dynamic process leave."""
        p = self.scene.processes[action.who]
        request = self.name("r")
        self.update(action.who, request=request)
        self._leave(request, p.member_id, p.instance)

    def crash(self, action: Action) -> None:
        """Let a process die; another of its name may start."""
        p = self.scene.processes[action.who]
        self.put(action.who, Process(p.name, p.instance))
        self.fault()

    def _asks(self, place: int, **fields: object) -> tuple[Process, str]:
        """Name a request of a process, which is silent no longer; return it as it was before."""
        p, request = self.scene.processes[place], self.name("r")
        self.update(place, request=request, is_silent=False, **fields)
        return p, request

    # Requests of others.

    def remove(self, action: Action) -> None:
        """Let an operator remove an instance."""
        self._leave(self.name("r"), "", action.pick)
        self.fault()

    def commit_alone(self, _: Action) -> None:
        """Let a client without a group commit an offset."""
        self.send(CommitReceived(
            self.scene.now_ms, self.name("r"), COMMIT_VERSION, -1, "", None
        ))  # fmt: skip

    def describe(self, _: Action) -> None:
        """Let an operator describe the group."""
        self.send(DescribeReceived(self.scene.now_ms, self.name("r"), DESCRIBE_VERSION))

    def delete(self, _: Action) -> None:
        """Let an operator delete the group."""
        self.send(DeleteReceived(self.scene.now_ms, self.name("r")))
        self.fault()

    def expire(self, _: Action) -> None:
        """Let the broker remove the Empty group."""
        self.step(Expired(self.scene.now_ms))
        self.fault()

    def _leave(self, request: str, member_id: str, instance: str | None) -> None:
        self.send(LeaveReceived(
            self.scene.now_ms, request, LEAVE_VERSION, ((member_id, instance),),
            Choices(leader=self.leader),
        ))  # fmt: skip

    # Time.

    def passes(self, action: Action) -> None:
        """Let time pass until a timer expires; all processes but one send heartbeats.

        Timers that expire meanwhile without any effect are passed over.
        """
        if action.who >= 0:
            self.silence(action.who)
        while (due := self.due()) is not None:
            until_ms, timers = due
            self._keep_alive(until_ms)
            timer = self._overdue(until_ms) or next(
                (t for t in timers if text_of(t) == action.pick), timers[0]
            )
            self.change(now_ms=until_ms)
            self.disarm(timer)
            before = self.scene.group
            self.step(TimerFired(until_ms, timer, Choices(leader=self.leader)))
            if self.log[-1].effects or self.scene.group is not before:
                return

    def silence(self, place: int) -> None:
        """Let a process send no more heartbeats, until it sends something else."""
        self.update(place, is_silent=True)

    def due(self) -> tuple[float, list[Timer]] | None:
        """Return when the next timers expire, and which; none of a process that beats counts.

        None where no timer runs, or a write has to end before.
        """
        beating = {p.member_id for p in self.scene.processes if self._beats(p)}
        left = [
            armed
            for armed in self.scene.timers
            if armed.timer.kind is not TimerKind.SESSION or armed.timer.member_id not in beating
        ]
        if not left:
            return None
        until_ms = min(armed.deadline_ms for armed in left)
        if self.scene.appends:
            write_ms = self.rules.profile.settings.commit_timeout_ms
            if until_ms > self.scene.appends[0].at_ms + write_ms:
                return None
        return until_ms, [armed.timer for armed in left if armed.deadline_ms == until_ms]

    def _overdue(self, by_ms: float) -> Timer | None:
        """Return a session that ends although its process sends heartbeats."""
        return next((t.timer for t in self.scene.timers if t.deadline_ms < by_ms), None)

    def _beats(self, p: Process) -> bool:
        return p.is_beating and not self.scene.is_closed

    def _keep_alive(self, until_ms: float) -> None:
        """Send the heartbeats of all processes that send any, three a session."""
        every_ms = self.rules.timeouts.session_ms // 3
        at_ms = self.scene.now_ms
        while any(map(self._beats, self.scene.processes)) and at_ms < until_ms - 1:
            at_ms = min(at_ms + every_ms, until_ms - 1)
            self.change(now_ms=at_ms)
            for place, p in enumerate(self.scene.processes):
                if self._beats(p):
                    self.beat(Action("beat", place))

    # The log, and the brokers.

    def written(self, _: Action) -> None:
        """Let the oldest write be stored."""
        append = self.scene.appends[0]
        self._store(append)
        self.step(RecordWritten(
            self.scene.now_ms, append.request, choices=Choices(leader=self.leader)
        ))  # fmt: skip

    def fails(self, _: Action) -> None:
        """Let the oldest write fail."""
        append = self.scene.appends[0]
        self.change(appends=self.scene.appends[1:])
        self._write_failed(append)
        self.fault()

    def times_out(self, _: Action) -> None:
        """Let the oldest write time out, and be stored all the same."""
        append = self.scene.appends[0]
        self._store(append)
        self._write_failed(append)
        self.fault()

    def _write_failed(self, append: Append) -> None:
        error = self.rules.profile.write_timeout
        self.step(RecordWritten(
            self.scene.now_ms, append.request, error, Choices(leader=self.leader)
        ))  # fmt: skip

    def _store(self, append: Append) -> None:
        self.change(appends=self.scene.appends[1:], stored=append._replace(request=""))

    def move(self, _: Action) -> None:
        """Let the broker resign, and another load the group."""
        before = self.scene.group
        self.step(Unloaded(self.scene.now_ms))
        self._load(before, closed=False)

    def kill(self, action: Action) -> None:
        """Kill the broker; another loads what was stored, `pick` says if the oldest write was."""
        if action.pick:
            self._store(self.scene.appends[0])
        self._load(self.scene.group, closed=False)

    def restart(self, _: Action) -> None:
        """Kill the broker and start it again: it loads the group before it takes requests."""
        self._load(self.scene.group, closed=True)

    def opens(self, _: Action) -> None:
        """Let the broker take requests."""
        self.change(is_closed=False)
        self.step(RequestsEnabled(self.scene.now_ms))

    def _lose(self) -> None:
        """Lose what only the old broker knew; requests that waited there get no response."""
        self.change(in_hand=frozenset(), timers=(), appends=())
        for place, p in enumerate(self.scene.processes):
            if p.phase in WAITING:
                self.update(place, phase=OUT, request="")

    def _load(self, before: Group, *, closed: bool) -> None:
        stored = self.scene.stored
        self._lose()
        self.change(
            broker=self.scene.broker if closed else 1 - self.scene.broker,
            is_closed=closed,
            serial=0 if stored is None else stored.serial,
        )
        loading = LoadStarted(self.scene.now_ms)
        self.change(group=self.rules.step(before, loading, self.rules.profile)[0])
        record = None if stored is None else stored.record
        self.step(Loaded(self.scene.now_ms, record, closed), known=before)
        self.fault()


def text_of(timer: Timer) -> str:
    """Name a timer."""
    return f"{timer.kind}:{timer.member_id}"


_ACTIONS: Mapping[str, Callable[[Turn, Action], None]] = {
    "join": Turn.join,
    "sync": Turn.sync,
    "beat": Turn.beat,
    "commit": Turn.commit,
    "leave": Turn.leave,
    "crash": Turn.crash,
    "remove": Turn.remove,
    "commit_alone": Turn.commit_alone,
    "describe": Turn.describe,
    "delete": Turn.delete,
    "expire": Turn.expire,
    "passes": Turn.passes,
    "written": Turn.written,
    "fails": Turn.fails,
    "times_out": Turn.times_out,
    "move": Turn.move,
    "kill": Turn.kill,
    "restart": Turn.restart,
    "opens": Turn.opens,
}
