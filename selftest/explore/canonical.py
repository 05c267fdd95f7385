"""The canonical form of a scene: two scenes of one form have the same futures.

Member ids, requests and the serial numbers of generations are renamed in the order in which they
are met, generations are counted from the group's, times from now. The session of a process that
sends heartbeats has no time: it is restarted before any other timer expires.
"""

from collections.abc import Iterable
from typing import Any

from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group, Member
from reference_coordinator.classic.state import Write as PendingWrite
from reference_coordinator.driving.driver import Write
from selftest.explore.scene import Process, Scene, serial_of

Form = tuple[Any, ...]


def canonical(scene: Scene) -> Form:
    """Return the form, to compare and to hash."""
    return _Naming(scene).form()


class _Naming:
    """The names given so far; the empty text stays what it is."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.names: dict[object, int] = {"": 0, None: -1}
        self.base = scene.group.generation

    def of(self, name: object) -> int:
        return self.names.setdefault(name, len(self.names))

    def all(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(sorted([self.of(name) for name in sorted(names)]))

    def form(self) -> Form:
        scene = self.scene
        processes = tuple([self.process(p) for p in scene.processes])
        return (
            processes,
            self.group(scene.group),
            self.written(scene.stored, ""),
            tuple([self.written(write, write.request or "") for write in scene.writes]),
            scene.now_ms - scene.writes[0].began_ms if scene.writes else 0.0,
            self.of(("serial", scene.serial)),
            self.timers(),
            scene.broker, scene.is_closed, scene.faults_left,
        )  # fmt: skip

    def process(self, p: Process) -> Form:
        return (
            p.phase, self.of(p.member_id), p.generation - self.base if p.generation >= 0 else None,
            self.of(("serial", p.serial)) if p.has_joined else 0, self.all(p.leads),
            self.of(p.request), p.is_replaced, p.is_silent,
        )  # fmt: skip

    def group(self, group: Group) -> Form:
        members = group.members.values()
        by_owner = sorted(members, key=lambda m: (m.group_instance_id or "", self.of(m.member_id)))
        return (
            group.exists, group.state, group.previous_state, group.protocol,
            tuple([self.member(m) for m in by_owner]),
            self.of(group.leader), self.all(group.open_leaders),
            tuple(sorted([(i, self.of(m)) for i, m in group.static_ids.items()])),
            self.all(group.pending_joins), self.all(group.removed_pending_joins),
            self.all(group.pending_syncs), group.new_member_added, group.initial_delay_left_ms,
            tuple([self.pending(w) for w in group.writes.values()]),
            group.generation == 0, group.sessions_deferred,
        )  # fmt: skip

    def member(self, m: Member) -> Form:
        return (
            self.of(m.member_id), m.group_instance_id, m.assignment != "", self.of(m.join),
            self.of(m.sync), m.is_new,
        )  # fmt: skip

    def pending(self, w: PendingWrite) -> Form:
        replaced = 0 if w.replaced is None else self.of(w.replaced.member_id)
        return (
            self.of(w.request), w.generation - self.base, self.of(w.member_id), replaced,
            self.of(w.leader_before), self.all(w.assignment), w.deletes,
        )  # fmt: skip

    def written(self, write: Write | None, request: str) -> Form:
        if write is None:
            return ()
        return self.of(request), self.of(("serial", serial_of(write))), self.record(write.record)

    def record(self, record: GroupRecord | None) -> Form:
        if record is None:
            return ()
        members = sorted((m.group_instance_id or "", self.of(m.member_id), m.assignment != "")
                         for m in record.members)  # fmt: skip
        leader = self.of(record.leader)
        return record.generation - self.base, record.protocol, leader, tuple(members)

    def timers(self) -> Form:
        scene = self.scene
        beating = {p.member_id for p in scene.processes if p.is_beating}
        left_ms = {timer: at_ms - scene.now_ms for timer, at_ms in scene.timers.items()}
        for timer in left_ms:
            if timer.kind is TimerKind.SESSION and timer.member_id in beating:
                left_ms[timer] = -1.0
        return tuple(sorted((one.kind, self.of(one.member_id), ms) for one, ms in left_ms.items()))
