"""What holds whatever happens: a machine that plays at random, with its invariants.

Members join, repeat themselves, lie about their ids and fall silent; writes fail; brokers die.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Answer, Effect, JoinResponse, Transition
from reference_coordinator.classic.events import Event, Timer, TimerKind
from reference_coordinator.classic.state import Service, State
from reference_coordinator.classic.step import step
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
)
from tests.reference_coordinator.classic.releases import UNDER_ALL

LEGAL = {
    (State.EMPTY, State.PREPARING_REBALANCE),
    (State.STABLE, State.PREPARING_REBALANCE),
    (State.COMPLETING_REBALANCE, State.PREPARING_REBALANCE),
    (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE),
    (State.PREPARING_REBALANCE, State.EMPTY),
    (State.COMPLETING_REBALANCE, State.STABLE),
}
"""`ClassicGroupState.validPreviousStates`, without Dead."""
ENDS_JOIN_PHASE = {State.COMPLETING_REBALANCE, State.EMPTY}

instances = st.sampled_from(["I1", "I2", "I3"])
no_or_some_instance = st.sampled_from([None, "I1", "I2", "I3"])
any_id = st.integers(0, 99)
protocols = st.sampled_from([("range", "roundrobin"), ("roundrobin", "range"), ("range",)])
subscriptions = st.sampled_from(["orders", "orders", "payments"])
versions = st.sampled_from([3, 5, 9])
generations = st.sampled_from([0, 0, 0, -1])
outcomes = st.sampled_from([Error.NONE, Error.NONE, Error.COORDINATOR_NOT_AVAILABLE])
spans = st.sampled_from(
    [1, 1, INITIAL_DELAY_MS, SESSION_MS // 2, SESSION_MS // 2, SESSION_MS, REBALANCE_MS]
)


class WatchedPlay(Playbook):
    """A play that looks at every effect; the base class sees to it that answers come once."""

    sync_timer_fired = False
    """Whether the pending-sync timer of this generation has run out."""

    def fire(self, timer: Timer) -> None:
        self.sync_timer_fired |= timer.kind is TimerKind.SYNC
        super().fire(timer)

    def take(self, event: Event) -> tuple[Effect, ...]:
        before, looked = self.group, repr(self.group)
        first, again = (step(before, event, self.profile) for _ in range(2))
        assert first == again, "the same step has two results"
        assert repr(before) == looked, "a step changed the group it was given"
        self.then = before.state, before.generation
        return super().take(event)

    def absorb(self, effect: Effect) -> None:
        super().absorb(effect)
        if isinstance(effect, Transition):
            self._look_at_transition(effect)
        elif isinstance(effect, Answer) and isinstance(effect.response, JoinResponse):
            self._look_at_join(effect.response)

    def _look_at_transition(self, moved: Transition) -> None:
        self.then = moved.after, moved.generation
        self.sync_timer_fired &= moved.after is not State.COMPLETING_REBALANCE
        assert (moved.before, moved.after) in LEGAL
        assert (moved.reason is not None) == (moved.after is State.PREPARING_REBALANCE)

    def _look_at_join(self, joined: JoinResponse) -> None:
        if joined.error is not Error.NONE:
            assert not joined.members
            return
        state, generation = self.then
        assert joined.generation == generation
        if (state, generation) != (self.state, self.generation):
            return  # of members that leave one by one, one may end a join phase, the next begin one
        assert joined.member_id in self.member_ids or self.profile.store_answers_latest_return
        assert joined.protocol == self.group.protocol
        if joined.members:
            assert joined.leader == joined.member_id == self.leader
            assert {member_id for member_id, _, _ in joined.members} == self.member_ids


class Coordinator(RuleBasedStateMachine):
    """Rules: what clients, brokers and time may do. Invariants: see each."""

    @initialize(
        max_size=st.sampled_from([2, 100]),
        hold=st.booleans(),
        state=st.sampled_from(
            [State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.STABLE]
        ),
    )
    def begin(self, max_size, hold, state):
        self.play = WatchedPlay(max_size=max_size)
        self.play.hold_writes = hold
        self.generation = 0
        self.seen = 0
        for instance in ("I1", "I2"):
            self.play.join(instance=instance)
        if state is State.COMPLETING_REBALANCE:
            self.play.after(2 * INITIAL_DELAY_MS)
        elif state is State.STABLE:
            self.settle()

    @rule()
    def settle(self):
        """Let all members react to responses until the group is Stable or empty."""
        play = self.play
        play.hold_writes, held = False, play.hold_writes
        while play.writes:
            self.write(Error.NONE)
        while play.state is State.PREPARING_REBALANCE:
            self.all_rejoin(("range", "roundrobin"), "orders")
            play.after(INITIAL_DELAY_MS)
        self.all_sync(None)
        play.hold_writes = held
        assert play.state in {State.STABLE, State.EMPTY}

    def known_id(self, pick: int) -> str:
        """Pick any id ever given out, or one that never was."""
        ids = [bound.value for bound in self.play.bound if bound.kind == "member_id"]
        return [*ids[-8:], "unknown"][pick % (len(ids[-8:]) + 1)]

    @rule(instance=instances, version=versions, protocols=protocols, subscription=subscriptions)
    def join_static(self, instance, version, protocols, subscription):
        self.play.join(
            instance=instance, version=version, protocols=protocols, subscription=subscription
        )

    @rule(version=versions, protocols=protocols)
    def join_dynamic(self, version, protocols):
        self.play.join(client="d", version=version, protocols=protocols)

    @rule(pick=any_id, instance=no_or_some_instance, protocols=protocols, text=subscriptions)
    def join_known(self, pick, instance, protocols, text):
        self.play.join(
            self.known_id(pick), instance=instance, protocols=protocols, subscription=text
        )

    @rule(protocols=protocols, subscription=subscriptions)
    def all_rejoin(self, protocols, subscription):
        """Let all members react as clients do; otherwise few phases would end."""
        for pending in self.play.group.pending_joins:
            self.play.join(pending, client="d", protocols=protocols)
        for member in tuple(self.play.group.members.values()):
            self.play.join(
                member.member_id,
                instance=member.group_instance_id,
                protocols=protocols,
                subscription=subscription,
            )

    @rule(absent=no_or_some_instance)
    def all_sync(self, absent):
        """Let all members sync but maybe one."""
        members = tuple(self.play.group.members.values())
        work = {member.member_id: "work" for member in members}
        for member in members:
            if absent is None or member.group_instance_id != absent:
                self.play.sync(member.member_id, **work)

    @rule(pick=any_id, instance=no_or_some_instance, older=generations)
    def sync(self, pick, instance, older):
        self.play.sync(
            self.known_id(pick), instance=instance, generation=self.play.generation + older
        )

    @rule(pick=any_id, instance=no_or_some_instance, older=generations)
    def beat_and_commit(self, pick, instance, older):
        member_id, generation = self.known_id(pick), self.play.generation + older
        self.play.heartbeat(member_id, instance=instance, generation=generation)
        self.play.commit(member_id, instance=instance, generation=generation)

    @rule(
        leaving=st.lists(st.tuples(any_id, no_or_some_instance), min_size=1, max_size=3),
        by_instance=st.booleans(),
    )
    def leave(self, leaving, by_instance):
        ids = ["" if by_instance and instance else self.known_id(n) for n, instance in leaving]
        self.play.leave(*zip(ids, (instance for _, instance in leaving), strict=True))

    @precondition(lambda self: self.play.writes)
    @rule(error=outcomes)
    def write(self, error):
        self.play.written(self.play.calls[self.play.writes[0].request], error)

    # A member whose return takes longer to store than its session lasts has no session timer
    # afterwards, in Kafka as well, until it heartbeats: the clock waits for writes.
    @precondition(lambda self: not self.play.writes)
    @rule(ms=spans, alive=st.booleans())
    def time(self, ms, alive):
        self.play.after(ms, alive=self.play.member_ids if alive else ())

    @rule(unloads=st.booleans())
    def fail_over(self, unloads):
        if unloads:
            self.play.unload()
        self.play.crash()
        self.generation = self.play.generation

    @invariant()
    def one_member_id_per_instance(self):
        """A member may lose its instance (a rule of the profile), which is then free again."""
        group = self.play.group
        of_members = {
            m.group_instance_id: m.member_id for m in group.members.values() if m.is_static
        }
        if self.play.profile.refused_instance_is_forgotten:
            for instance, owner in group.static_ids.items():
                assert group.members[owner].group_instance_id == instance
        else:
            assert dict(group.static_ids) == of_members
            assert len(of_members) == sum(m.is_static for m in group.members.values())

    @invariant()
    def leader_is_a_member_or_open(self):
        group = self.play.group
        if group.leader is not None:
            assert group.leader in group.members
        elif group.members:
            assert group.state is State.PREPARING_REBALANCE
            assert group.open_leaders
            assert group.open_leaders <= set(group.members)

    @invariant()
    def generation_grows_by_one_where_a_join_phase_ends(self):
        for moved in self.play.transitions[self.seen :]:
            self.generation += moved.after in ENDS_JOIN_PHASE
            assert moved.generation == self.generation
        self.seen = len(self.play.transitions)
        assert self.play.generation == self.generation

    @invariant()
    def nothing_is_left_in_an_empty_group(self):
        """An Empty group knows no instance."""
        group = self.play.group
        if group.state is State.EMPTY:
            assert not group.members
            assert not group.static_ids
            assert not group.pending_syncs

    @invariant()
    def requests_wait_only_where_something_will_answer_them(self):
        play = self.play
        for member in play.group.members.values():
            if member.join is not None:
                assert play.state is State.PREPARING_REBALANCE or any(
                    member.join == write.request for write in play.writes
                )
            if member.sync is not None:
                assert play.state is State.COMPLETING_REBALANCE

    @invariant()
    def timers_guard_every_wait(self):
        play, group = self.play, self.play.group
        if group.service is not Service.ACTIVE:
            return
        preparing = group.state is State.PREPARING_REBALANCE
        assert (play.armed(TimerKind.JOIN) is not None) == preparing
        spared = (
            play.profile.sync_timer_spares_statics
            and play.sync_timer_fired
            and group.pending_syncs <= {*group.static_ids.values()}
        )
        awaited = bool(group.pending_syncs) and not spared
        assert (play.armed(TimerKind.SYNC) is not None) == awaited
        for member in group.members.values():
            if play.profile.new_members_have_sessions:
                assert (
                    member.is_awaiting or Timer(TimerKind.SESSION, member.member_id) in play.timers
                )
        for pending in group.pending_joins | group.removed_pending_joins:
            assert Timer(TimerKind.SESSION, pending) in play.timers

    @invariant()
    def an_id_is_pending_or_forgotten_or_a_member_s(self):
        group = self.play.group
        kinds = (group.pending_joins, group.removed_pending_joins, frozenset(group.members))
        assert sum(map(len, kinds)) == len(frozenset.union(*kinds))

    def teardown(self):
        """A group that nobody speaks to any more becomes Empty, and no timer is left."""
        if not hasattr(self, "play"):
            return
        self.play.hold_writes = False
        while self.play.writes:
            self.write(Error.NONE)
        self.play.after(60 * 60_000)
        if not self.play.profile.new_members_have_sessions:
            return  # who fell silent in time is there for good
        assert (self.play.state, self.play.group.pending_joins) == (State.EMPTY, frozenset())
        assert self.play.timers == {}
        assert self.play.group.removed_pending_joins == frozenset()


@UNDER_ALL
def test_random_event_sequences_keep_the_invariants(profile):
    """Let the machine above play, under all rules there are."""
    run_state_machine_as_test(
        Coordinator, settings=settings(max_examples=25, stateful_step_count=50, derandomize=True)
    )
