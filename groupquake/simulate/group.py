"""One group of an experiment in virtual time: its members, its coordinator, who owns what."""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from chaos.tap.rules import Rule
from groupquake.simulate import timing
from groupquake.simulate.chance import Chance
from groupquake.simulate.folding import FoldedGroup
from groupquake.simulate.member import WIRE, SimulatedMember, versions_of
from groupquake.simulate.tally import COUNTED, Tally
from kafka_protocol.apis import CONFIGURE
from kafka_protocol.consumer_protocol import Assignment, TopicPartition
from kafka_protocol.errors import Error
from kafka_protocol.join_reason import JoinReason
from kafka_protocol.versions import LIBRDKAFKA, NEWEST
from reference_coordinator.classic import events
from reference_coordinator.classic.effects import (
    Effect,
    JoinResponse,
    Response,
    SyncResponse,
    Transition,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import ABSENT, ACTIVE, LOADING, PREPARING_REBALANCE
from reference_coordinator.classic.state import Group as Coordinated
from reference_coordinator.driving.client import IN, JOINED, OUT, WAITING, Client
from reference_coordinator.driving.driver import Agenda
from reference_coordinator.driving.simulation import Exchange, Process
from reference_coordinator.frozen import replace_fields
from scenarios.clients import IN_LOAD, kind_of
from scenarios.model import Group, Phase
from scenarios.setup import DUPLICATE, SAME, Identity, MemberSpec


class SimulatedGroup(FoldedGroup):
    """A group with the members of the file; `counts` are the partitions of each topic now."""

    def __init__(
        self, group: Group, specs: Sequence[MemberSpec], counts: Mapping[str, int],
        profile: Profile, agenda: Agenda, chance: Chance,
    ) -> None:  # fmt: skip
        super().__init__(group, profile, agenda, chance)
        self.counts = counts
        self.specs = {spec.name: spec for spec in specs}
        self.instances = {spec.name: spec.instance_id for spec in specs}
        """The instance id that each member starts with."""
        self.called: dict[str, SimulatedMember] = {}
        """The process that runs of each member, and of its duplicate."""
        self.phase: Phase | None = None
        self.tally = Tally()
        # Eager members give all partitions up before they join again (KIP-429).
        self.is_eager = group.assignor != "cooperative-sticky"

    @property
    def leader(self) -> str | None:
        """The client id of the member that leads it now."""
        leader = self.group.members.get(self.group.leader or "")
        return leader.client_id if leader else None

    # What faults do to members. Each takes the name of a member, or of a duplicate.

    def start(self, name: str, identity: Identity = SAME, late_ms: float = 0.0) -> None:
        """Start a process, unless there is one; it joins after a time, and so much later."""
        member, of = name.removesuffix(DUPLICATE), self.of
        instance = self.instances[member] = identity.get("instance_id", self.instances[member])
        if name in self.called:
            return
        kind = kind_of(self.specs[member].client)
        client = Client(name, instance, of.session_timeout_ms, of.max_poll_interval_ms)
        process = SimulatedMember(client, versions_of(kind, self.profile), is_wire=kind == WIRE)
        process.see(self.of.topics, self.counts)
        self.called[name] = process
        self.processes.append(process)
        is_program = kind not in IN_LOAD or name != member
        comes = timing.PROGRAM_COMES_MS if is_program else timing.COMES_MS
        self.plan(process, "JOIN_GROUP", self.chance.between(comes) + late_ms)

    def stop(self, name: str) -> None:
        """Close a consumer: a dynamic member leaves, a static one does not (KIP-345)."""
        if process := self.called.get(name):
            if process.client.instance is None and process.client.member_id:
                self.ask(process, "LEAVE_GROUP")
            self.kill(process)

    def kill(self, process: SimulatedMember) -> None:
        """End a process without a word."""
        self.silence(process)
        super().kill(process)
        if self.called.get(process.client.name) is process:
            del self.called[process.client.name]

    def silence(self, process: SimulatedMember) -> None:
        """Let a process send nothing more: its session ends after its last heartbeat."""
        self.own(process, ())
        if not process.is_silent:
            process.is_silent, process.stopped_ms = True, None
            self.time_session(process)

    def freeze(self, name: str) -> None:
        """Let no thread of a member run."""
        if process := self.called.get(name):
            process.plans += 1
            self.silence(process)

    def stop_polling(self, name: str) -> None:
        """Let the application of a member poll no more: it gives up after its max.poll.interval."""
        if process := self.called.get(name):
            process.is_polled = False
            notices_ms = self.of.max_poll_interval_ms + self.chance.between(timing.NOTICES_POLL_MS)
            self.agenda.after(notices_ms, partial(self._gives_up, process))

    def unsubscribe(self, name: str) -> None:
        """Let a member be out of the group; librdkafka leaves it, as a static member too."""
        if process := self.called.get(name):
            process.is_polled = False
            self._gives_up(process, leaves=not process.is_wire)

    def resume(self, name: str) -> None:
        """Let a member go on that was frozen or did not poll."""
        process = self.called.get(name)
        if process is None:
            return
        process.is_polled = True
        if not process.is_silent and process.client.phase is IN:
            self.beat_soon(process)
            return
        process.is_silent = False
        heard, process.unheard = process.unheard, []
        if api := process.client.next_api:  # else it awaits an answer
            self.plan(process, api, self.chance.between(timing.REQUEST_MS))
        for hear in heard:
            hear()

    def close(self) -> None:
        """Close all members, as a load does in the end."""
        for name in self.called:
            self.agenda.after(self.chance.between(timing.CLOSES_MS), partial(self.stop, name))

    def administer(self, api: str, **asked: object) -> int:
        """Let an admin ask something of the coordinator; return the error of the whole answer."""
        admin = Process(Client("admin"), {**NEWEST, CONFIGURE: 1})
        self.receive(self.send(admin, api, **asked))
        return int(Error.NONE if self.group.service is ACTIVE else Error.NOT_COORDINATOR)

    def tap(self, name: str, rule: Rule) -> None:
        """Put a rule of the tap in force; heartbeats are sent one by one until it ends."""
        self.wire.rules.add(name, rule)
        for process in self.processes:
            self.time_session(process)
            self.beat_soon(process)

    # What happens to its coordinator.

    def give_up(self, *, answers: bool) -> None:
        """Lose the coordinator, which answers those that wait or does not."""
        if answers and self.group.service is ACTIVE:
            self.take(events.Unloaded(self.agenda.now_ms))
        self.open.clear()
        self.die()
        self.group = Coordinated(self.group.group_id, service=ABSENT)
        for process in self.processes:
            process.plans += 1
            self._asks_anew(process)
            if process.client.phase is IN and process.is_wire:
                ends_ms = self.last_beat_ms(process) + process.client.session_ms
                self.agenda.at(ends_ms, partial(self._is_alone, process, process.plans))

    def _is_alone(self, process: SimulatedMember, plans: int) -> None:
        """Let a member that no coordinator answered for its session join again, with its id."""
        is_alone = process.plans == plans and self.group.service is not ACTIVE
        if is_alone and not process.is_silent and process.client.phase is IN:
            process.client = replace_fields(process.client, phase=OUT)
            self.own(process, ())

    def _asks_anew(self, process: SimulatedMember) -> None:
        """Let a process wait for no answer any more, and join again if it was not done with it."""
        is_out = process.client.phase in (*WAITING, JOINED)
        phase = OUT if is_out else process.client.phase
        process.client = replace_fields(process.client, request="", phase=phase)

    def load(self, broker: int) -> None:
        """Load it on a broker; its members find that one."""
        self.wire.broker = broker
        self.take(events.LoadStarted(self.agenda.now_ms))
        self.agenda.after(self.chance.between(timing.LOADS_MS), self._loaded)

    def _loaded(self) -> None:
        if self.group.service is LOADING:  # it may have been lost again meanwhile
            self.take(events.Loaded(self.agenda.now_ms, self.stored_record))
            for process in self.processes:
                self._reconnects(process)

    def _reconnects(self, process: SimulatedMember) -> None:
        """Let a process go on once it has a connection."""
        if not process.is_silent and process.client.next_api:
            found_ms = self.chance.between(timing.RECONNECTS_MS)
            self.plan(process, process.client.next_api, found_ms)

    # Requests and responses.

    def ask(self, process: SimulatedMember, api: str) -> None:
        """Let a process send a request, if it finds a coordinator; none joins again in the end."""
        is_due = api == "LEAVE_GROUP" or self.phase != "teardown"
        if api == "JOIN_GROUP" and not process.is_polled:
            return  # once it polls
        if not is_due or self.group.service is not ACTIVE:
            return
        more: dict[str, Any] = {"protocolName": self.of.assignor}
        if api == "JOIN_GROUP":
            metadata = process.subscription(is_eager=self.is_eager)
            more["protocols"] = [{"name": self.of.assignor, "metadata": metadata}]
            more["joinReason"] = process.join_reason
        elif api == "SYNC_GROUP":
            more["assignments"] = process.assignments(self.of.assignor, self.counts)
        exchange = self.send(process, api, **more)

        def arrive() -> None:
            # what nobody waits for any more was lost with its coordinator
            if api == "LEAVE_GROUP" or process.client.request == exchange.id:
                self.receive(exchange)

        self.wire.carry(exchange, "to-broker", arrive)
        if self.wire.rules and api == "HEARTBEAT":
            session, interval_ms = self.of.session_timeout_ms, self.of.heartbeat_interval_ms
            misses_ms = self.chance.between((session - interval_ms, session + timing.RETRY_MS[1]))
            self.agenda.after(misses_ms, partial(self._misses, process, exchange))

    def _misses(self, process: SimulatedMember, exchange: Exchange) -> None:
        """Let a process begin anew whose heartbeat has had no answer for a session."""
        if process.client.request == exchange.id and not process.is_silent:
            self.own(process, ())
            process.client = process.client.restarted()
            self.ask(process, "JOIN_GROUP")

    def answered(self, exchange: Exchange, response: Response) -> None:
        """Let the response go its way."""
        process = exchange.process
        if not isinstance(process, SimulatedMember):
            return
        if isinstance(response, JoinResponse) and response.member_id:
            self.by_id[response.member_id] = process
        if self.wire.doubles(exchange):  # a broker reads on when it has answered
            copy = replace(exchange, id=str(next(self._numbers)), process=Process(exchange.client))
            self.agenda.after(0.0, partial(self.receive, copy))
        if not self.wire.drops(exchange):
            hear = partial(self.hear, process, exchange, response)
            self.wire.carry(exchange, "to-client", hear)
        elif process.client.request == exchange.id:
            self._asks_anew(process)
            self._reconnects(process)

    def hear(self, process: SimulatedMember, exchange: Exchange, response: Response) -> None:
        """Let a process make something of a response, once it runs."""
        if process.is_silent:
            process.unheard.append(partial(self.hear, process, exchange, response))
            return
        if process.client.request != exchange.id:
            return
        if response.error == Error.GROUP_MAX_SIZE_REACHED:  # librdkafka tries again
            process.client = replace_fields(process.client, request="", phase=OUT)
            self.plan(process, "JOIN_GROUP", self.pause_ms(failed=True))
            return
        was_in = process.client.phase is IN
        if isinstance(response, JoinResponse) and not response.error:
            process.listed = response.members
        super().hear(process, exchange, response)
        phase = process.client.phase
        if isinstance(response, SyncResponse) and phase is IN:
            self._assign(process, response.assignment)
        elif was_in and phase is OUT:
            process.join_reason = JoinReason.UNKNOWN
            if process.stopped_ms is None:
                process.stopped_ms = self.agenda.now_ms
            if self.is_eager or not process.client.member_id:
                self.own(process, ())

    def pause_ms(self, *, failed: bool) -> float:
        """Wait longer after an error of the coordinator."""
        return self.chance.between(timing.RETRY_MS if failed else timing.NEXT_MS)

    def absorb(self, effect: Effect) -> None:
        """Count a rebalance."""
        if isinstance(effect, Transition) and effect.after is PREPARING_REBALANCE and self.phase:
            self.tally.rebalances[self.phase, str(effect.reason)] += 1
        super().absorb(effect)

    def _gives_up(self, process: SimulatedMember, *, leaves: bool = False) -> None:
        """Give the membership up, if the application has not polled since it stopped to."""
        if process.is_polled or process.is_silent or process not in self.processes:
            return
        if leaves or process.client.instance is None:
            self.ask(process, "LEAVE_GROUP")
        self.silence(process)
        process.client = process.client.restarted()

    # Partitions.

    def _assign(self, process: SimulatedMember, share: str) -> None:
        """Give a process what it was assigned; what it loses by that makes it join again."""
        blob = b64decode(share)
        now = Assignment.decode(blob).partitions if blob else ()
        lost = set(process.owned) - set(now)
        if process.stopped_ms is not None and self.phase in COUNTED and self.is_eager:
            self.tally.stopped_ms += self.agenda.now_ms - process.stopped_ms
        process.stopped_ms, process.join_reason = None, JoinReason.RESTART
        self.own(process, now)
        if lost and not self.is_eager:
            self.rejoin(process, JoinReason.UNKNOWN)

    def rejoin(self, process: SimulatedMember, why: JoinReason) -> None:
        """Let a member join again by itself."""
        if process.client.phase is IN and not process.client.request:
            process.join_reason = why
            process.client = replace_fields(process.client, phase=OUT)
            self.plan(process, "JOIN_GROUP", self.pause_ms(failed=False))
            if self.is_eager:
                process.stopped_ms = self.agenda.now_ms
                self.own(process, ())

    def notice(self) -> None:
        """Let members notice that their topics have changed, once their metadata is old.

        A follower of librdkafka joins again as well. That makes a rebalance if a topic is gone: of
        its topics its JoinGroup names those that there are.
        """
        for process in self.processes:
            age_ms = self.chance.between((0.0, self.of.metadata_max_age_ms))
            self.agenda.after(age_ms, partial(self._look_at_topics, process))

    def _look_at_topics(self, process: SimulatedMember) -> None:
        watches = process.listed or process.versions is LIBRDKAFKA
        if process in self.processes and watches and process.counts != self.counts:
            process.see(self.of.topics, self.counts)
            if process.client.phase is IN and not process.client.request:
                self.rejoin(process, JoinReason.TOPIC_METADATA_CHANGE)
            else:  # it joins with what it knew
                retry_ms = self.chance.between(timing.RETRY_MS)
                self.agenda.after(retry_ms, partial(self._look_at_topics, process))

    def own(self, process: SimulatedMember, partitions: Sequence[TopicPartition]) -> None:
        """Let a process own other partitions, and add up for how long some had no owner."""
        self.look()
        member = process.client.name.removesuffix(DUPLICATE)
        self.tally.own(member, process.owned, partitions, self.agenda.now_ms, self.phase)
        process.owned = tuple(partitions)

    def look(self) -> None:
        """Add up for how long partitions have had no owner since the last look."""
        there = sum(self.counts.get(topic, 0) for topic in self.of.topics)
        self.tally.look(self.agenda.now_ms, there, self.phase)
