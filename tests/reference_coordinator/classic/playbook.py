"""A play: requests, passing time and outcomes of writes go in; answers and rebalances come out.

The play is what a broker is to the coordinator. It keeps the clock, the armed timers, the pending
requests and the writes under way, so that a test reads as a course of events:

    def test_a_member_joins(play):
        first = play.join(instance="I1")
        assert first.pending
        play.after(INITIAL_DELAY_MS)
        assert first.answer.generation == 1

The fixture `play` is a new `Playbook` under each profile that a test runs under.
It also holds every test to two rules of the wire: a request is answered once, and only while the
coordinator has it in its hands.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import (
    Answer,
    AssignmentReceived,
    Bound,
    DeleteResponse,
    Effect,
    JoinResponse,
    Persist,
    Reason,
    SyncResponse,
    Transition,
)
from reference_coordinator.classic.events import (
    Choices,
    Event,
    Expired,
    Loaded,
    LoadStarted,
    Request,
    RequestsEnabled,
    Timer,
    TimerKind,
    Unloaded,
)
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.classic.state import Group, Member, State
from reference_coordinator.driving.driver import Driver
from tests.reference_coordinator.classic.asking import (
    BOTH,
    REBALANCE_MS,
    SESSION_MS,
    Call,
    Requests,
)

__all__ = [
    "BOTH",
    "HEARTBEAT_MS",
    "INITIAL_DELAY_MS",
    "REBALANCE_MS",
    "SESSION_MS",
    "Call",
    "Playbook",
    "accepted",
    "in_state",
    "listed",
    "requests_in_hand",
]

INITIAL_DELAY_MS = 1_000
HEARTBEAT_MS = 3_000


class Playbook(Requests, Driver):
    """One group on one coordinator, driven by hand in virtual time (ms, from 0)."""

    release: ClassVar[Profile] = NEWEST
    """Whose rules plays follow; the fixture `profile` puts the one under test here."""

    def __init__(
        self,
        *,
        group_id: str = "orders-app",
        initial_delay_ms: int = INITIAL_DELAY_MS,
        max_size: int = Settings().max_size,
    ) -> None:
        Requests.__init__(self)
        settings = Settings(
            initial_rebalance_delay_ms=initial_delay_ms,
            min_session_timeout_ms=10,
            max_session_timeout_ms=600_000,
            max_size=max_size,
        )
        Driver.__init__(self, Group(group_id), self.release.with_settings(settings))
        self.choices = Choices()
        """What the broker would pick where Kafka leaves it open."""
        self.hold_writes = False
        """Whether writes wait for `written`; otherwise they succeed at once."""
        self.calls: dict[str, Call] = {}
        self.transitions: list[Transition] = []
        self.records: list[GroupRecord | None] = []
        """What was written, a tombstone as None."""
        self.assignments: list[AssignmentReceived] = []
        self.bound: list[Bound] = []

    # What the play looks like now.

    @property
    def state(self) -> State:
        return self.group.state

    @property
    def generation(self) -> int:
        return self.group.generation

    @property
    def leader(self) -> str | None:
        return self.group.leader

    @property
    def member_ids(self) -> set[str]:
        return set(self.group.members)

    @property
    def rebalances(self) -> list[Reason | None]:
        """Why the group went into PreparingRebalance, each time it did."""
        return [t.reason for t in self.transitions if t.after is State.PREPARING_REBALANCE]

    def id_of(self, instance: str) -> str:
        """Return the member id that an instance id stands for."""
        return self.group.static_ids[instance]

    def member(self, instance: str) -> Member:
        """Return the member that an instance id stands for."""
        return self.group.members[self.id_of(instance)]

    # How groups of static members begin and go on.

    def completing(self, *instances: str, **settings: int) -> list[str]:
        """Bring static members to CompletingRebalance, led by the first; return their member ids.

        `settings` are those of `join`.
        """
        joins = [self.join(instance=instance, **settings) for instance in instances]
        self.after(2 * self.profile.settings.initial_rebalance_delay_ms)
        assert [join.error for join in joins] == [Error.NONE] * len(joins)
        assert self.state is State.COMPLETING_REBALANCE
        return [join.answer.member_id for join in joins]

    def statics(self, *instances: str, **settings: int) -> list[str]:
        """Form a Stable group of static members, as `completing` does.

        The ids are `L-1` for the instance `L`. Generation 1, protocol `range`, everyone has work.
        """
        ids = self.completing(*instances, **settings)
        self.sync_everyone()
        return ids

    def rejoin(self, *member_ids: str, **settings: int) -> list[Call[JoinResponse]]:
        """Let static members join again with the ids they have."""
        return [self.join(m, instance=m.partition("-")[0], **settings) for m in member_ids]

    # What happens to the coordinator.

    def after(self, ms: float, *, alive: Iterable[str] = ()) -> None:
        """Let time pass; timers that run out meanwhile fire when they are due, in order.

        The members named by `alive` heartbeat all along, in the generation of the moment.
        """
        members = tuple(alive)
        while members and ms > HEARTBEAT_MS:
            self.after(HEARTBEAT_MS)
            for member_id in members:
                self.heartbeat(member_id)
            ms -= HEARTBEAT_MS
        until = self.now_ms + ms
        while due := [timer for timer, deadline in self.timers.items() if deadline <= until]:
            self.fire(min(due, key=self.timers.__getitem__))
        self.now_ms = until

    def armed(self, kind: TimerKind, member_id: str = "") -> float | None:
        """Tell in how many ms a timer runs out, None if it is not armed."""
        deadline = self.timers.get(Timer(kind, member_id))
        return None if deadline is None else deadline - self.now_ms

    def written(
        self,
        call: Call[JoinResponse] | Call[SyncResponse] | Call[DeleteResponse],
        error: Error = Error.NONE,
    ) -> None:
        """Let the write that a request waits for come out well, or with an error."""
        self.end_write(call.request, error)

    def unload(self) -> None:
        """Let the broker give the group up."""
        self.take(Unloaded(self.now_ms))

    def start_loading(self) -> None:
        """Let a broker begin to load the group; what the one before did not store is lost."""
        self.take(LoadStarted(self.now_ms))

    def load(self, record: GroupRecord | None, *, requests_disabled: bool = False) -> None:
        """Let the broker finish loading the group from a record, maybe before it takes requests."""
        self.take(Loaded(self.now_ms, record, requests_disabled))

    def open(self) -> None:
        """Let the broker take requests from now on."""
        self.take(RequestsEnabled(self.now_ms))

    def expire(self) -> None:
        """Let the broker remove the Empty group, as it does once its offsets have expired."""
        self.take(Expired(self.now_ms))

    def crash(self) -> None:
        """Let the broker die and another take over from what was written last."""
        self.start_loading()
        self.load(self.records[-1] if self.records else None)

    def force(self, state: State) -> None:
        """Put the group into a state that no event of the play leads to."""
        self.group = replace(self.group, state=state)

    # How the play is kept.

    def picks(self, new_member_id: str = "") -> Choices:
        """Pick what the test says."""
        return replace(self.choices, new_member_id=new_member_id)

    def _ask(self, event: Request) -> Call:
        call: Call = Call(event.request)
        self.calls[event.request] = call
        self.take(event)
        return call

    def take(self, event: Event) -> tuple[Effect, ...]:
        """Take an event; the writes that it starts end at once, unless they are held."""
        self._in_hand = requests_in_hand(self.group) | {getattr(event, "request", "")}
        effects = super().take(event)
        while self.writes and not self.hold_writes:
            self.end_write()
        return effects

    def absorb(self, effect: Effect) -> None:
        """Keep what came out of a step."""
        super().absorb(effect)
        match effect:
            case Answer():
                asked = effect.request
                assert asked in self._in_hand, f"{asked} was not there to be answered"
                call = self.calls[asked]
                assert call.pending, f"{asked} is answered a second time"
                call.response = effect.response
            case Transition():
                self.transitions.append(effect)
            case Persist():
                self.records.append(effect.record)
            case AssignmentReceived():
                self.assignments.append(effect)
            case Bound():
                self.bound.append(effect)


def requests_in_hand(group: Group) -> set[str]:
    """Return the requests that the coordinator has not answered yet."""
    members = group.members.values()
    held = {event.request for event in group.held_back.values()}
    return held | {one for m in members for one in (m.join, m.sync) if one is not None}


def listed(*member_ids: str, protocol: str = "range") -> frozenset[tuple[str, str, str]]:
    """Return static members as the response to their leader lists them."""
    return frozenset((m, m.partition("-")[0], f"{protocol}:orders") for m in member_ids)


def accepted(
    member_id: str,
    generation: int,
    leader: str,
    *members: str,
    protocol: str = "range",
    skips: bool = False,
) -> JoinResponse:
    """Return what a member hears that is in; the leader hears of static members."""
    return JoinResponse(
        Error.NONE, member_id, generation, "consumer", protocol, leader, skips,
        listed(*members, protocol=protocol),
    )  # fmt: skip


def in_state(state: State) -> Playbook:
    """Bring a group of the static members L and F to a state; Empty is one that they have left."""
    play = Playbook()
    play.statics("L", "F")
    match state:
        case State.EMPTY:
            play.leave(("", "L"), ("", "F"))
        case State.PREPARING_REBALANCE:
            play.rejoin("L-1")
        case State.COMPLETING_REBALANCE:
            play.rejoin("L-1", "F-1")
        case State.DEAD:
            play.force(State.DEAD)
    assert play.state is state
    return play
