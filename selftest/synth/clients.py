"""The clients of a synthesized group: what each asks next, and what it makes of a response."""

import base64
import random
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from kafka_protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Response, SyncResponse

Json = dict[str, Any]
TOPIC = "orders"
TOPIC_PARTITIONS = 8
SUBSCRIPTION = base64.b64encode(Subscription((TOPIC,), b"", rack="").encode()).decode()
REJOIN = (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION)
ELSEWHERE = (Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS,
             Error.COORDINATOR_NOT_AVAILABLE)  # fmt: skip


class Software(NamedTuple):
    """A client library: the versions of its requests, and how it names itself."""

    join: int
    sync: int
    heartbeat: int
    leave: int
    commit: int
    name: str
    version: str
    leave_reason: str = "not provided"
    """What it gives as the reason of a LeaveGroup, as the coordinator prints it (KIP-800)."""


LIBRDKAFKA = Software(5, 3, 3, 1, 9, "confluent-kafka-python", "2.16.1-rdkafka-2.16.0")
UNNAMED = Software(9, 5, 4, 5, 9, "unknown", "unknown", "the consumer stops")
"""A client of newer versions that does not say what it is, as the tests' own."""


@cache
def assignment(first: int, end: int) -> str:
    """Return an assignment of the topic's partitions from `first` to before `end`, as base64."""
    parts = tuple(TopicPartition(TOPIC, number) for number in range(first, end))
    return base64.b64encode(Assignment(parts, b"").encode(0)).decode()


def shares(members: list[str]) -> Json:
    """Return the assignment of each member, as the range assignor gives them."""
    every, more = divmod(TOPIC_PARTITIONS, len(members))
    given, first = {}, 0
    for place, member in enumerate(sorted(members)):
        end = first + every + (place < more)
        given[member] = assignment(first, end)
        first = end
    return given


@dataclass(slots=True)
class Client:
    """One process of a member. `connection` is new after a restart and after a failover."""

    client_id: str
    instance: str | None
    software: Software
    member_id: str = ""
    generation: int = -1
    state: str = "joining"
    """joining, syncing, stable or stopped."""
    work: list[Json] = field(default_factory=list)
    """The assignments that it gives as the leader of its generation."""
    connection: str = ""
    network_thread: int = 0
    correlation: int = 1
    committed: int = 0
    busy_until_ms: float = 0.0
    """When its last response arrives; infinity while a request waits for one."""
    sent: str = ""
    """The number of the request that waits."""
    heartbeats: bool = False
    """Whether its heartbeats and commits are going on."""
    texts: dict[Any, str] = field(default_factory=dict)
    """Printed requests of its own with places for numbers, by what they ask and answer."""

    @property
    def number(self) -> int:
        """The number of its member in the group, which is that of a partition it commits."""
        return int(self.client_id.rpartition("-")[2])

    def connect(self, dice: random.Random, broker: str, count: int) -> None:
        """Open a connection to a broker."""
        self.network_thread = count % 2
        port = dice.randrange(32_768, 61_000)
        listens = 20_000 + 7 * int(broker)
        self.connection = f"127.0.0.1:{listens}-127.0.0.1:{port}-{self.network_thread}-{count}"
        self.sent, self.busy_until_ms = "", 0.0
        self.texts.clear()

    def next_request(self) -> str:
        """Return the API of what it asks next when it is not stable."""
        return "SYNC_GROUP" if self.state == "syncing" else "JOIN_GROUP"

    def take(self, api: str, response: Response) -> bool:
        """Take a response; tell whether it has something to ask at once."""
        error = Error(int(getattr(response, "error", 0)))
        if error is Error.FENCED_INSTANCE_ID:
            self.state = "stopped"
        elif self.state == "stopped" or error in ELSEWHERE:
            return self.state not in ("stopped", "stable")
        elif isinstance(response, JoinResponse):
            return self._joined(response, error)
        elif isinstance(response, SyncResponse) and error is Error.NONE:
            self.state = "stable"
        elif error in REJOIN and api != "OFFSET_COMMIT":
            self.state = "joining"
        elif error is Error.UNKNOWN_MEMBER_ID and api != "OFFSET_COMMIT":
            self.member_id, self.generation, self.state = "", -1, "joining"
        return self.state in ("joining", "syncing") and api != "OFFSET_COMMIT"

    def _joined(self, response: JoinResponse, error: Error) -> bool:
        if error is Error.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif error is Error.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif error is Error.NONE:
            self.member_id, self.generation = response.member_id, response.generation
            self.state, self.work = "syncing", []
            if response.leader == self.member_id and not response.skip_assignment:
                members = [member for member, _, _ in response.members]
                self.work = [
                    {"memberId": member, "assignment": share}
                    for member, share in shares(members).items()
                ]
        return True
