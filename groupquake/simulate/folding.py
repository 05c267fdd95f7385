"""Heartbeats and sessions of a group in virtual time, folded.

In Stable heartbeats do nothing but restart sessions, so none is sent: the session of a member that
sends them is not timed, and begins with its last one when the member falls silent. A member learns
of a rebalance with the next heartbeat of its grid. While a rule of the tap is in force, all are
sent.
"""

import math

from groupquake.simulate.chance import Chance
from groupquake.simulate.member import SimulatedMember
from groupquake.simulate.wire import Wire
from reference_coordinator.classic.effects import Effect, Transition
from reference_coordinator.classic.events import SESSION_TIMER, Event, Timer
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import ABSENT, PREPARING_REBALANCE, STABLE
from reference_coordinator.classic.state import Group as Coordinated
from reference_coordinator.driving.client import IN
from reference_coordinator.driving.driver import Agenda
from reference_coordinator.driving.members import GroupOfMembers
from reference_coordinator.driving.simulation import Exchange
from scenarios.model import Group


class FoldedGroup(GroupOfMembers[SimulatedMember]):
    """A group whose members send the heartbeats that matter; `by_id` are its processes."""

    def __init__(self, group: Group, profile: Profile, agenda: Agenda, chance: Chance) -> None:
        super().__init__(Coordinated(group.name, service=ABSENT), profile, agenda=agenda)
        self.of, self.chance = group, chance
        self.by_id: dict[str, SimulatedMember] = {}
        self.wire = Wire(agenda, chance)

    # Heartbeats.

    def next_beat_ms(self, process: SimulatedMember) -> float:
        """Return the time of the next heartbeat of its grid."""
        since_ms, every_ms = process.beats_from_ms, self.of.heartbeat_interval_ms
        beats = math.floor((self.agenda.now_ms - since_ms) / every_ms) + 1
        return since_ms + max(0, beats) * every_ms

    def last_beat_ms(self, process: SimulatedMember) -> float:
        """Return the time of the last heartbeat of its grid."""
        return self.next_beat_ms(process) - self.of.heartbeat_interval_ms

    def beat_soon(self, process: SimulatedMember | None) -> None:
        """Plan the next heartbeat of its grid, if it runs and sends them."""
        if process is None or process.is_silent:
            return
        if process.client.phase is IN and not process.client.request:
            self.plan(process, "HEARTBEAT", self.next_beat_ms(process) - self.agenda.now_ms)

    def settled(self, process: SimulatedMember, api: str) -> None:
        """Plan a heartbeat, unless it would only restart the session."""
        if api == "SYNC_GROUP":
            interval_ms = self.of.heartbeat_interval_ms
            process.beats_from_ms = self.agenda.now_ms + self.chance.between((0.0, interval_ms))
        if self.group.state is not STABLE or self.wire.rules:
            self.beat_soon(process)

    def absorb(self, effect: Effect) -> None:
        """Let members hear of a rebalance."""
        if isinstance(effect, Transition) and effect.after is PREPARING_REBALANCE:
            for process in self.processes:
                self.beat_soon(process)
        super().absorb(effect)

    def decided(self, event: Event, before: Coordinated, effects: tuple[Effect, ...]) -> None:
        """Let standbys hear that they were called."""
        super().decided(event, before, effects)
        if self.group.config.target_size is not None:
            for one in self.group.members.values():
                if one.is_called:
                    self.beat_soon(self.by_id.get(one.member_id))

    def receive(self, exchange: Exchange) -> None:
        """Let the coordinator act on a request, and a static member hear that it is replaced."""
        instance = exchange.process.client.instance if exchange.api == "JOIN_GROUP" else None
        before = self.group.static_ids.get(instance or "")
        super().receive(exchange)
        if before and before not in self.group.members:
            self.beat_soon(self.by_id.get(before))

    # Sessions.

    def time_session(self, process: SimulatedMember) -> None:
        """Let a session that the coordinator times end after the last heartbeat."""
        timer = Timer(SESSION_TIMER, process.client.member_id)
        if timer in self.timers:
            last_ms = self.agenda.now_ms
            if process.client.phase is IN:
                last_ms = min(last_ms, self.last_beat_ms(process))
            self._arm(timer, max(self.timers[timer], last_ms + process.client.session_ms))

    def _arm(self, timer: Timer, deadline_ms: float) -> None:
        if self._is_folded(timer):
            self.timers[timer] = deadline_ms
        else:
            super()._arm(timer, deadline_ms)

    def fire(self, timer: Timer) -> None:
        """Let a timer expire, but for the session of a member whose heartbeats are folded."""
        if not self._is_folded(timer):
            super().fire(timer)

    def _is_folded(self, timer: Timer) -> bool:
        if timer.kind is not SESSION_TIMER or self.wire.rules:
            return False
        process = self.by_id.get(timer.member_id)
        return process is not None and not process.is_silent
