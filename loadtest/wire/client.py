"""A consumer client of our own: it finds its group's coordinator, joins, stays and rejoins.

It speaks the newest versions that it and the broker share, over one connection to the coordinator
at a time, and reads no records. Under gevent every wait lets other greenlets run. What a Java
client raises to its application, such as GROUP_MAX_SIZE_REACHED, it tries again, as librdkafka.
"""

import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping
from math import inf
from random import random, uniform
from typing import TYPE_CHECKING

from kafka_protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from kafka_protocol.errors import NOT_SERVED, Error, name_of
from kafka_protocol.join_reason import JoinReason
from loadtest.configs import MemberConfig
from loadtest.timing import BACKOFF_S, LONGEST_BACKOFF_S, REFUSED_S, REQUEST_S
from loadtest.wire.connection import WireError
from loadtest.wire.coordinator import Coordinator, MovedError
from loadtest.wire.leader import Topics, members_of, shares, topics_of
from loadtest.wire.member import FencedError, JoinedMembers, WireMember
from scenarios.client_properties import Properties

if TYPE_CHECKING:
    from loadtest.members.member import Member as Listener

Partitions = Collection[TopicPartition]

COOPERATIVE = "cooperative-sticky"
REVOKED = "partitions were revoked"
REBALANCING = "the group is rebalancing"
CHANGED = "the number of partitions has changed"
UNPOLLED = "the application has not polled for max.poll.interval.ms"
UNSUBSCRIBED = "the consumer unsubscribed from all topics"
JOIN_REASONS = {
    REVOKED: JoinReason.UNKNOWN, REBALANCING: JoinReason.UNKNOWN,
    CHANGED: JoinReason.TOPIC_METADATA_CHANGE,
}  # fmt: skip
"""What its reasons to join are in KIP-423's words; the others are those of a process that starts,
or was out of touch with the group."""
_OF_GROUP = (
    Error.NONE,
    Error.REBALANCE_IN_PROGRESS,
    Error.UNKNOWN_MEMBER_ID,
    Error.ILLEGAL_GENERATION,
    Error.FENCED_INSTANCE_ID,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    *NOT_SERVED,
)
"""The answers to OffsetCommit and OffsetFetch that are about the member, not its partitions."""


class GroupClient:
    """One client process in one group; it tells `listener`, its member, what it sees, at once.

    `gate` returns once the process is not paused. `application_polls` says whether the application
    polls. If it does not, the client sends heartbeats and joins no rebalance. After
    max.poll.interval.ms it is out of the group: a dynamic member leaves, a static one is silent.
    """

    def __init__(
        self,
        config: MemberConfig,
        bootstrap: str,
        properties: Properties,
        listener: "Listener",
        gate: Callable[[], object],
        application_polls: Callable[[], bool],
    ) -> None:
        """Begin without a connection. Raises ValueError for servers that are none, OSError."""
        self.config = config
        self.listener = listener
        self.gate = gate
        self.application_polls = application_polls
        self._coordinator = Coordinator(config.group, config.name, bootstrap, properties, gate)
        self._topics = Topics(config.metadata_max_age_ms / 1000, listener.error)
        self._member = WireMember(
            group=config.group,
            name=config.name,
            instance_id=config.instance_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            assign=self._assign,
        )
        self._answer_s = min(REQUEST_S, config.session_timeout_ms / 1000)
        self._owned: set[TopicPartition] = set()
        self._joined = False
        self._rejoin: str | None = None
        """Why it joins next, as it tells the broker (KIP-800); None without a reason."""
        self._confirmed_s = 0.0
        """When the coordinator confirmed the membership last."""
        self._polled_s = time.monotonic()
        """When the application polled last."""
        self._commit_s = self._fetch_s = self._heartbeat_s = 0.0
        """When the next one is due."""
        self._offsets: Mapping[tuple[str, int], int] | None = None
        """The committed offsets of what it owns; None until they are fetched."""
        self._backoff_s = BACKOFF_S

    def run(self) -> None:
        """Take part in the group, until the greenlet ends. Raises FencedError."""
        while True:
            try:
                self._member.connection, self._member.versions = self._coordinator.connect()
                self._heartbeat_s = 0.0  # the new coordinator hears of it at once
                self._take_part()
            except FencedError:
                raise
            except WireError as error:
                if not isinstance(error, MovedError):
                    self.listener.error(str(error))
                self.disconnect()
                self._expire()
                self._back_off()

    def unsubscribe(self) -> None:
        """Be out of the group as soon as it can, until the application polls."""
        self._polled_s = -inf

    def leave(self, reason: str, within_s: float) -> None:
        """Give all partitions up, and leave the group as a dynamic member. Raises WireError."""
        gone, self._owned = self._owned, set()
        if gone:
            self.listener.gave_up("revoked", gone)
        member = self._member
        if member.member_id and member.instance_id is None:
            member.leave(reason=reason, within_s=within_s)

    def disconnect(self) -> None:
        """Close the connection, as the end of a process does."""
        self._member.disconnect()

    def _take_part(self) -> None:
        longest_s = self.config.max_poll_interval_ms / 1000
        while True:
            polls = self.application_polls()
            if polls:
                self._polled_s = time.monotonic()
            if time.monotonic() - self._polled_s > longest_s:
                self._stall()
            elif polls and (self._rejoin or not self._joined):
                self._join()
            elif self._joined:
                self._stay()
            else:
                self._sleep(BACKOFF_S)

    def _join(self) -> None:
        """Join and sync; the eager protocol gives all partitions up before (KIP-429)."""
        if self.config.assignor != COOPERATIVE and self._owned:
            gone, self._owned = self._owned, set()
            self.listener.gave_up("revoked", gone)
        member, owned = self._member, tuple(sorted(self._owned))
        subscription = Subscription(self.config.topics, None, owned, member.generation)
        metadata = b64encode(subscription.encode()).decode()
        member.protocols, member.reason = ((self.config.assignor, metadata),), self._rejoin
        member.join_reason = JOIN_REASONS.get(self._rejoin or "", JoinReason.RESTART)
        error = member.join() or member.sync()
        if error != Error.NONE:
            self._refused(error)
            return
        now_s = time.monotonic()
        self._joined, self._rejoin = True, None
        self._offsets, self._fetch_s = None, 0.0
        self._confirmed_s, self._backoff_s = now_s, BACKOFF_S
        first = random()  # the members of a group join at once; so they do not stay in step
        self._heartbeat_s = now_s + first * self.config.heartbeat_interval_ms / 1000
        self._commit_s = now_s + self.config.commit_interval_ms / 1000
        self._take(_partitions(member.assignment))
        if member.is_leader and member.skip_assignment:  # it watches the topics all the same
            self._topics.counts_of(topics_of(members_of(member.members)), member)

    def _take(self, assigned: set[TopicPartition]) -> None:
        """Take an assignment; a cooperative member rejoins once it has given partitions up."""
        gone, new = self._owned - assigned, assigned - self._owned
        if gone:
            self.listener.gave_up("revoked", gone)
            self._rejoin = REVOKED
        self._owned = assigned
        self.listener.assigned(new, self._member.member_id)

    def _stay(self) -> None:
        """Do what is due next: look at the topics, a heartbeat, fetch offsets or commit them."""
        if self._member.is_leader and self._topics.changed(self._member):
            self._rejoin = CHANGED
            return
        offsets_s = self._fetch_s if self._offsets is None else self._commit_s
        due_s = min(self._heartbeat_s, offsets_s) if self._owned else self._heartbeat_s
        self._sleep(due_s - time.monotonic())
        if time.monotonic() >= self._heartbeat_s:
            self._beat()
        elif self._owned and time.monotonic() >= offsets_s:
            if self._offsets is None:
                self._fetch()
            else:
                self._commit(self._offsets)

    def _beat(self) -> None:
        now_s = time.monotonic()
        self._heartbeat_s = now_s + self.config.heartbeat_interval_ms / 1000
        error = self._member.heartbeat(within_s=self._answer_s)
        failed = error not in (Error.NONE, Error.REBALANCE_IN_PROGRESS)
        took_ms = (time.monotonic() - now_s) * 1000
        self.listener.report("heartbeat", took_ms, error=name_of(error) if failed else None)
        self._refused(error)

    def _fetch(self) -> None:
        error, offsets = self._member.committed(sorted(self._owned), self._answer_s)
        if error == Error.NONE:
            self._offsets = offsets
        elif error in _OF_GROUP:
            self._refused(error)
        else:
            self.listener.error(name_of(error))
            self._fetch_s = time.monotonic() + REFUSED_S

    def _commit(self, fetched: Mapping[tuple[str, int], int]) -> None:
        """Commit the offsets again, 0 where there is none."""
        now_s = time.monotonic()
        self._commit_s = now_s + self.config.commit_interval_ms / 1000
        offsets = {(part.topic, part.partition): fetched.get(part, 0) for part in self._owned}
        error = self._member.commit(offsets, within_s=self._answer_s)
        took_ms = (time.monotonic() - now_s) * 1000
        if error == Error.NONE:
            self.listener.committed(len(offsets), took_ms)
        else:
            self.listener.not_committed(name_of(error), took_ms)
        if error in _OF_GROUP:
            self._refused(error)

    def _refused(self, error: int) -> None:
        """Do what a client does after an answer; NONE confirms the membership."""
        match error:
            case Error.NONE:
                self._confirmed_s, self._backoff_s = time.monotonic(), BACKOFF_S
            case Error.REBALANCE_IN_PROGRESS:
                self._confirmed_s = time.monotonic()
                self._rejoin = self._rejoin or REBALANCING
            case Error.UNKNOWN_MEMBER_ID:
                self._lose("the coordinator does not know the member")
                self._forget()
            case Error.ILLEGAL_GENERATION:
                self._lose("the member has missed a generation")
                self._member.generation = -1
            case Error.FENCED_INSTANCE_ID:
                instance = self.config.instance_id
                raise FencedError(f"{self.config.group}: {instance}: {name_of(error)}")
            case Error.NOT_COORDINATOR | Error.COORDINATOR_NOT_AVAILABLE:
                raise MovedError(name_of(error))
            case Error.COORDINATOR_LOAD_IN_PROGRESS:
                self._heartbeat_s = 0.0
                self._back_off()
            case _:
                self.listener.error(name_of(error))
                self._sleep(REFUSED_S)

    def _lose(self, why: str) -> None:
        """Be out of the group."""
        was, self._joined, self._rejoin = self._joined, False, why
        gone, self._owned = self._owned, set()
        if was or gone:
            self.listener.gave_up("lost", gone)

    def _expire(self) -> None:
        """Lose the membership if nobody confirmed it for a session timeout."""
        session_s = self.config.session_timeout_ms / 1000
        if self._joined and time.monotonic() - self._confirmed_s > session_s:
            self._lose("no coordinator answered for a session timeout")

    def _stall(self) -> None:
        """Be out of the group, as the application wants nothing; join afresh once it does."""
        if self._joined and self.config.instance_id is None:
            self._member.leave(reason=UNSUBSCRIBED if self._polled_s == -inf else UNPOLLED)
        self._lose("the application polls again")
        self._forget()
        while not self.application_polls():
            self._sleep(BACKOFF_S)

    def _forget(self) -> None:
        self._member.member_id, self._member.generation = "", -1

    def _back_off(self) -> None:
        self._sleep(self._backoff_s * uniform(0.8, 1.2))
        self._backoff_s = min(2 * self._backoff_s, LONGEST_BACKOFF_S)

    def _sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))
        self.gate()

    def _assign(self, protocol: str, joined: JoinedMembers) -> Mapping[str, str]:
        """Compute the assignment of the group (base64), by member id."""
        members = members_of(joined)
        counts = self._topics.counts_of(topics_of(members), self._member)
        assigned = shares(protocol, members, counts)
        return {member_id: b64encode(share).decode() for member_id, share in assigned.items()}


def _partitions(assignment: str) -> set[TopicPartition]:
    """Read an assignment; a member without partitions may have an empty one."""
    blob = b64decode(assignment)
    return set(Assignment.decode(blob).partitions) if blob else set()
