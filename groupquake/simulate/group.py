"""One group of an experiment in virtual time: its members, its coordinator, who owns what.

Heartbeats are folded. In Stable they do nothing but restart sessions, so none is sent: the session
of a member that sends them is not timed, and begins with its last one when the member falls silent.
A member learns of a rebalance with the next heartbeat of its grid.
"""

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from groupquake.simulate.chance import Chance
from groupquake.simulate.member import WIRE, SimulatedMember, versions_of
from groupquake.simulate.tally import COUNTED, Tally
from groupquake.simulate.timing import (
    CLOSES_MS,
    COMES_MS,
    LOADS_MS,
    NEXT_MS,
    NOTICES_POLL_MS,
    PROGRAM_COMES_MS,
    RECONNECTS_MS,
    REQUEST_MS,
    RETRY_MS,
)
from kafka_protocol.apis import CONFIGURE
from kafka_protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from kafka_protocol.errors import Error
from kafka_protocol.join_reason import JoinReason
from reference_coordinator.classic.effects import (
    Effect,
    JoinResponse,
    Response,
    SyncResponse,
    Transition,
)
from reference_coordinator.classic.events import (
    SESSION_TIMER,
    Event,
    Loaded,
    LoadStarted,
    Timer,
    Unloaded,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import ABSENT, ACTIVE, PREPARING_REBALANCE, STABLE
from reference_coordinator.classic.state import Group as Coordinated
from reference_coordinator.driving.client import IN, JOINED, OUT, WAITING, Client
from reference_coordinator.driving.driver import Agenda
from reference_coordinator.driving.members import LIBRDKAFKA, NEWEST, GroupOfMembers
from reference_coordinator.driving.simulation import Exchange, Process
from reference_coordinator.frozen import replace_fields
from scenarios.clients import IN_LOAD, kind_of
from scenarios.model import Group, Phase
from scenarios.setup import DUPLICATE, MemberSpec


class SimulatedGroup(GroupOfMembers[SimulatedMember]):
    """A group with the members of the file; `counts` are the partitions of each topic now."""

    def __init__(
        self, group: Group, specs: Sequence[MemberSpec], counts: Mapping[str, int],
        profile: Profile, agenda: Agenda, chance: Chance,
    ) -> None:  # fmt: skip
        super().__init__(Coordinated(group.name, service=ABSENT), profile, agenda=agenda)
        self.of, self.counts, self.chance = group, counts, chance
        self.specs = {spec.name: spec for spec in specs}
        self.instances = {spec.name: spec.instance_id for spec in specs}
        """The instance id that each member starts with."""
        self.called: dict[str, SimulatedMember] = {}
        """The process that runs of each member, and of its duplicate."""
        self.by_id: dict[str, SimulatedMember] = {}
        self.phase: Phase | None = None
        self.tally = Tally()
        self.term = 0
        """Counts its coordinators: what was sent to an earlier one is lost."""
        self.is_closing = False

    @property
    def is_eager(self) -> bool:
        """Whether its members give all partitions up before they join again (KIP-429)."""
        return self.of.assignor != "cooperative-sticky"

    @property
    def leader(self) -> str | None:
        """The client id of the member that leads it now."""
        leader = self.group.members.get(self.group.leader or "")
        return leader.client_id if leader else None

    # What faults do to members. Each takes the name of a member, or of a duplicate.

    def start(self, name: str, after_ms: float | None = None) -> None:
        """Start a process, unless there is one; it joins after a time."""
        if name in self.called:
            return
        member = name.removesuffix(DUPLICATE)
        kind, of = kind_of(self.specs[member].client), self.of
        client = Client(
            name, self.instances[member], of.session_timeout_ms, of.max_poll_interval_ms
        )
        process = SimulatedMember(client, versions_of(kind, self.profile), is_wire=kind == WIRE)
        self.called[name] = process
        self.processes.append(process)
        if after_ms is None:
            is_program = kind not in IN_LOAD or name != member
            after_ms = self.chance.between(PROGRAM_COMES_MS if is_program else COMES_MS)
        self.plan(process, "JOIN_GROUP", after_ms)

    def stop(self, name: str) -> None:
        """Close a consumer: a dynamic member leaves, a static one does not (KIP-345)."""
        process = self.called.get(name)
        if process is None:
            return
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
        if process.is_silent:
            return
        process.is_silent = True
        process.stopped_ms = None
        timer = Timer(SESSION_TIMER, process.client.member_id)
        if timer in self.timers:
            last_ms = self.agenda.now_ms
            if process.client.phase is IN:
                last_ms = min(last_ms, self._beat_ms(process) - self.of.heartbeat_interval_ms)
            session_ms = process.client.session_ms
            self._arm(timer, max(self.timers[timer], last_ms + session_ms))

    def freeze(self, name: str) -> None:
        """Let no thread of a member run."""
        if process := self.called.get(name):
            process.plans += 1
            self.silence(process)

    def stop_polling(self, name: str) -> None:
        """Let the application of a member poll no more: it gives up after its max.poll.interval."""
        if process := self.called.get(name):
            self.plan(
                process, "", self.of.max_poll_interval_ms + self.chance.between(NOTICES_POLL_MS)
            )

    def resume(self, name: str) -> None:
        """Let a member go on that was frozen or did not poll."""
        process = self.called.get(name)
        if process is None or not process.is_silent:
            if process is not None and process.client.phase is IN:
                self._beat_soon(process)
            return
        process.is_silent = False
        heard, process.unheard = process.unheard, []
        self.plan(process, process.client.next_api or "HEARTBEAT", self.chance.between(REQUEST_MS))
        for hear in heard:
            hear()

    def close(self) -> None:
        """Close all members, as a load does in the end; none joins again meanwhile."""
        self.is_closing = True
        for name in list(self.called):
            self.agenda.after(self.chance.between(CLOSES_MS), partial(self.stop, name))

    def administer(self, api: str, **asked: object) -> int:
        """Let an admin ask something of the coordinator; return the error of the whole answer."""
        admin = Process(Client("admin"), {**NEWEST, CONFIGURE: 1})
        self.receive(self.send(admin, api, **asked))
        return int(Error.NONE if self.group.service is ACTIVE else Error.NOT_COORDINATOR)

    # What happens to its coordinator.

    def give_up(self, *, answers: bool) -> None:
        """Lose the coordinator, which answers those that wait or does not."""
        if answers and self.group.service is ACTIVE:
            self.take(Unloaded(self.agenda.now_ms))
        self.term += 1
        self.open.clear()
        self.die()
        self.group = Coordinated(self.group.group_id, service=ABSENT)
        for process in self.processes:
            client, process.plans = process.client, process.plans + 1
            is_out = client.phase in (*WAITING, JOINED)
            phase = OUT if is_out else client.phase
            process.client = replace_fields(client, request="", phase=phase)
            if phase is IN and process.is_wire:
                ends_ms = self._beat_ms(process) - self.of.heartbeat_interval_ms + client.session_ms
                left_ms = max(0.0, ends_ms - self.agenda.now_ms)
                self.agenda.after(left_ms, partial(self._is_alone, process, self.term))

    def _is_alone(self, process: SimulatedMember, term: int) -> None:
        """Let a member that no coordinator answered for its session join again, with its id."""
        is_there = self.group.service is ACTIVE or term != self.term
        if not is_there and not process.is_silent and process.client.phase is IN:
            process.client = replace_fields(process.client, phase=OUT)
            self.own(process, ())

    def load(self) -> None:
        """Load it on a broker; its members find that one."""
        now_ms, term = self.agenda.now_ms, self.term
        self.take(LoadStarted(now_ms))
        self.agenda.after(self.chance.between(LOADS_MS), partial(self._loaded, term))

    def _loaded(self, term: int) -> None:
        if term != self.term:
            return
        self.take(Loaded(self.agenda.now_ms, self.stored_record))
        for process in self.processes:
            if not process.is_silent and process.client.next_api:
                found_ms = self.chance.between(RECONNECTS_MS)
                self.plan(process, process.client.next_api, found_ms)

    # Requests and responses.

    def ask(self, process: SimulatedMember, api: str) -> None:
        """Let a process send a request, if it finds a coordinator."""
        if not api:
            self._gives_up(process)
        if not api or self.group.service is not ACTIVE:
            return
        if self.is_closing and api != "LEAVE_GROUP":
            return
        more: dict[str, Any] = {"protocolName": self.of.assignor}
        if api == "JOIN_GROUP":
            owned = () if self.is_eager else process.owned
            is_told = process.is_wire or not self.is_eager
            generation = process.client.generation if is_told else -1
            wanted = Subscription(tuple(self.of.topics), owned=owned, generation=generation)
            metadata = b64encode(wanted.encode()).decode()
            more["protocols"] = [{"name": self.of.assignor, "metadata": metadata}]
            more["joinReason"] = process.join_reason
        elif api == "SYNC_GROUP":
            more["assignments"] = process.assignments(self.of.assignor, self.counts)
        exchange = self.send(process, api, **more)
        way_ms = self.chance.between(REQUEST_MS)
        self.agenda.after(way_ms, partial(self._arrive, exchange, self.term))

    def _arrive(self, exchange: Exchange, term: int) -> None:
        if term == self.term:
            self.receive(exchange)

    def receive(self, exchange: Exchange) -> None:
        """Let the coordinator act on a request; who is replaced hears of it with a heartbeat."""
        instance = exchange.process.client.instance if exchange.api == "JOIN_GROUP" else None
        before = self.group.static_ids.get(instance or "")
        super().receive(exchange)
        replaced = self.by_id.get(before or "")
        if replaced is not None and before not in self.group.members:
            self._beat_soon(replaced)

    def answered(self, exchange: Exchange, response: Response) -> None:
        """Let the response go its way."""
        process = exchange.process
        if not isinstance(process, SimulatedMember):
            return
        if isinstance(response, JoinResponse) and response.member_id:
            self.by_id[response.member_id] = process
        way_ms = self.chance.between(REQUEST_MS)
        self.agenda.after(way_ms, partial(self.hear, process, exchange, response))

    def hear(self, process: SimulatedMember, exchange: Exchange, response: Response) -> None:
        """Let a process make something of a response, once it runs."""
        if process.is_silent:
            process.unheard.append(partial(self.hear, process, exchange, response))
            return
        if process.client.request != exchange.id:
            return
        if response.error == Error.GROUP_MAX_SIZE_REACHED:  # librdkafka tries again
            process.client = replace_fields(process.client, request="", phase=OUT)
            self.plan(process, "JOIN_GROUP", self.chance.between(RETRY_MS))
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

    def settled(self, process: SimulatedMember, api: str) -> None:
        """Plan a heartbeat, unless it would only restart the session."""
        if api == "SYNC_GROUP":
            interval_ms = self.of.heartbeat_interval_ms
            process.beats_from_ms = self.agenda.now_ms + self.chance.between((0.0, interval_ms))
        if self.group.state is not STABLE:
            self._beat_soon(process)

    def pause_ms(self, *, failed: bool) -> float:
        """Wait longer after an error of the coordinator."""
        return self.chance.between(RETRY_MS if failed else NEXT_MS)

    # Heartbeats.

    def _beat_ms(self, process: SimulatedMember) -> float:
        """Return the time of the next heartbeat of its grid."""
        since_ms, every_ms = process.beats_from_ms, self.of.heartbeat_interval_ms
        beats = math.floor((self.agenda.now_ms - since_ms) / every_ms) + 1
        return since_ms + max(0, beats) * every_ms

    def _beat_soon(self, process: SimulatedMember) -> None:
        """Plan the next heartbeat of its grid."""
        if process.client.phase is IN and not process.client.request and not process.is_silent:
            self.plan(process, "HEARTBEAT", self._beat_ms(process) - self.agenda.now_ms)

    def absorb(self, effect: Effect) -> None:
        """Count a rebalance; its members hear of it with their next heartbeats."""
        if isinstance(effect, Transition) and effect.after is PREPARING_REBALANCE:
            if self.phase is not None:
                self.tally.rebalances[self.phase, str(effect.reason)] += 1
            for process in self.processes:
                self._beat_soon(process)
        super().absorb(effect)

    def decided(self, event: Event, before: Coordinated, effects: tuple[Effect, ...]) -> None:
        """Let standbys that were called hear of it with their next heartbeats."""
        super().decided(event, before, effects)
        if self.group.config.target_size is not None:
            for one in self.group.members.values():
                if one.is_called and one.member_id in self.by_id:
                    self._beat_soon(self.by_id[one.member_id])

    def _arm(self, timer: Timer, deadline_ms: float) -> None:
        if self._beats(timer):
            self.timers[timer] = deadline_ms
        else:
            super()._arm(timer, deadline_ms)

    def fire(self, timer: Timer) -> None:
        """Let a timer expire, but for the session of a member that sends heartbeats."""
        if not self._beats(timer):
            super().fire(timer)

    def _beats(self, timer: Timer) -> bool:
        process = self.by_id.get(timer.member_id) if timer.kind is SESSION_TIMER else None
        return process is not None and not process.is_silent

    def _gives_up(self, process: SimulatedMember) -> None:
        """Give the membership up, as an application that does not poll makes its client do."""
        if process.client.instance is None:
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
            self.plan(process, "JOIN_GROUP", self.chance.between(NEXT_MS))
            if self.is_eager:
                process.stopped_ms = self.agenda.now_ms
                self.own(process, ())

    def notice(self) -> None:
        """Let members notice that their topics have other partitions, once their metadata is old.

        A follower of librdkafka joins again as well, which makes no rebalance.
        """
        for process in self.processes:
            age_ms = self.chance.between((0.0, self.of.metadata_max_age_ms))
            self.agenda.after(age_ms, partial(self._look_at_topics, process))

    def _look_at_topics(self, process: SimulatedMember) -> None:
        watches = process.listed or process.versions is LIBRDKAFKA
        if process in self.processes and watches and process.counts != self.counts:
            self.rejoin(process, JoinReason.TOPIC_METADATA_CHANGE)

    def own(self, process: SimulatedMember, partitions: Sequence[TopicPartition]) -> None:
        """Let a process own other partitions, and add up for how long some had no owner."""
        self.look()
        member = process.client.name.removesuffix(DUPLICATE)
        self.tally.own(member, process.owned, partitions, self.phase)
        process.owned = tuple(partitions)

    def look(self) -> None:
        """Add up for how long partitions have had no owner since the last look."""
        there = sum(self.counts.get(topic, 0) for topic in self.of.topics)
        self.tally.look(self.agenda.now_ms, there, self.phase)
