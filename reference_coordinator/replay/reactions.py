"""What the coordinator does about requests that leave the group as it is.

Members heartbeat and commit again and again. As long as the coordinator would look at the same, it
decides the same, but for the time that deadlines are counted from: that is decided once, and
remembered. `Step` says what it looks at. A SyncGroup to a Stable group is decided each time.
"""

from collections.abc import Mapping

from reference_coordinator.classic import ClassicProtocol
from reference_coordinator.classic.bodies import EXCHANGES, Exchange
from reference_coordinator.classic.effects import Answer, Arm, Disarm
from reference_coordinator.classic.events import NO_CHOICES, Timer
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import STABLE, Group, Member
from reference_coordinator.replay.evidence import ObservedRequest

Timers = tuple[tuple[Timer, float | None], ...]
"""The timers that start, and after how many ms they expire; None for those that stop."""


class Reactions:
    """The reactions of one coordinator under one profile, remembered as long as they hold."""

    __slots__ = ("_group", "_known", "_members", "_outlook", "_owners", "_restarts", "reads")

    def __init__(self) -> None:
        """Begin with none; `reads` counts what decisions read of rules that differ."""
        self.reads = 0
        self._group: Group | None = None
        self._members = Members().by_id
        self._owners = Group("").static_ids
        self._outlook: tuple[object, ...] = ()
        self._known: dict[Exchange, tuple[Member | None, Member | None, str | None, Timers]] = {}
        self._restarts: dict[Exchange, Timers] = {}

    def to(
        self, group: Group, seen: ObservedRequest, protocol: ClassicProtocol, profile: Profile
    ) -> Timers | None:
        """Return what becomes of timers; None if the answer is wrong, or the group changes."""
        exchange_of = EXCHANGES.get(seen.api)
        if seen.response is None:
            return None
        if exchange_of is None:
            return _decide(group, seen, protocol, profile) if _is_late_sync(group, seen) else None
        if group is not self._group:
            self._look_at(group)
        exchange = exchange_of(seen.request, seen.response, seen.api_version)
        if exchange in self._restarts:
            return self._restarts[exchange]
        member = self._members.get(exchange[0])
        owner_id = self._owners.get(exchange[1] or "")
        owner = member if owner_id == exchange[0] else self._members.get(owner_id or "")
        known = self._known.get(exchange)
        if known is not None and known[0] is member and known[1] is owner and known[2] == owner_id:
            timers: Timers | None = known[3]
        else:
            before = profile.reads
            timers = _decide(group, seen, protocol, profile)
            self.reads += profile.reads - before
        if timers is not None:
            self._known[exchange] = member, owner, owner_id, timers
            if all(after_ms is not None for _, after_ms in timers):
                self._restarts[exchange] = timers
        return timers

    def restarts_in(self, group: Group) -> Mapping[Exchange, Timers]:
        """Return what `to` has found to start timers, and stop none, in the group as it is."""
        if group is not self._group:
            self._look_at(group)
        return self._restarts

    def _look_at(self, group: Group) -> None:
        """Take the group as it is now; forget everything if other responses are possible in it."""
        outlook = (group.group_id, group.service, group.exists, group.state, group.generation)
        if outlook != self._outlook:
            self._known.clear()
        self._restarts.clear()
        self._group, self._outlook = group, outlook
        self._members, self._owners = group.members.by_id, group.static_ids


def _is_late_sync(group: Group, seen: ObservedRequest) -> bool:
    """Tell a SyncGroup that no member waits for; with an open leader it may show the leader."""
    return (
        seen.api == "SYNC_GROUP"
        and group.state is STABLE
        and group.leader is not None
        and seen.request["memberId"] not in group.pending_syncs
    )


def _decide(
    group: Group, seen: ObservedRequest, protocol: ClassicProtocol, profile: Profile
) -> Timers | None:
    """Let the coordinator decide at time 0, so that deadlines are delays."""
    after, effects = protocol.step(group, protocol.event_of(seen, 0.0, NO_CHOICES), profile)
    if after is not group:
        return None
    timers: list[tuple[Timer, float | None]] = []
    answered = False
    for effect in effects:
        if isinstance(effect, Arm):
            timers.append((effect.timer, effect.deadline_ms))
        elif isinstance(effect, Disarm):
            timers.append((effect.timer, None))
        elif isinstance(effect, Answer) and _was_observed(effect, seen, protocol):
            answered = True
        else:
            return None
    return tuple(timers) if answered else None


def _was_observed(answer: Answer, seen: ObservedRequest, protocol: ClassicProtocol) -> bool:
    """Tell whether an answer is the one that was observed."""
    given = protocol.as_sent(answer.response, seen.api_version)
    return answer.request == seen.id and given == protocol.response_of(seen)
