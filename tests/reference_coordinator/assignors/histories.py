"""Random groups: what their leaders receive, rebalance after rebalance.

Members come, go, restart and change what they want, topics grow, and some miss an assignment.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from reference_coordinator.assignors import ASSIGNORS, AssignorError, Member, Subscription
from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.sticky_data import encode


@dataclass(frozen=True)
class JoinedGroup:
    """The group in the leader's JoinGroup response. `blobs`: each member's encoded subscription."""

    assignor: str
    partitions: dict[str, int]
    members: tuple[Member, ...]
    blobs: tuple[bytes, ...]

    @property
    def alike(self) -> bool:
        """Whether all want the same topics."""
        return len({frozenset(member.subscription.topics) for member in self.members}) == 1


@dataclass
class Process:
    """One that is a member. `version` is that of its subscription."""

    member_id: str
    instance: str | None
    topics: tuple[str, ...]
    version: int
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1

    def blob(self, assignor: str) -> bytes:
        """Write its subscription as Kafka's client does for an assignor."""
        data, owned = None, ()
        if assignor == "sticky" and self.generation >= 0:
            data = encode(self.owned, self.generation)
        elif assignor == "cooperative-sticky":
            data, owned = self.generation.to_bytes(4, "big", signed=True), self.owned
        subscription = Subscription(self.topics, data, owned, self.generation)
        return subscription.encode(self.version)


@dataclass
class History:
    """A group's. `confused` members claim what they like, of whichever generation."""

    rng: Random
    assignor: str
    alike: bool
    confused: bool = False
    most: int = 8
    """The largest number of members at the beginning."""
    generation: int = 0
    partitions: dict[str, int] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make topics and the first members."""
        for number in range(self.rng.randint(1, 6)):
            name = f"{self.rng.choice(['orders', 'payments', 't', 'A.b_'])}{number * 7}"
            self.partitions[name] = self.rng.choice([1, 2, 3, 5, 8, 13, 20])
        for _ in range(self.rng.randint(1, self.most)):
            self.processes.append(self._new())

    def _id(self, prefix: str) -> str:
        return f"{prefix}-{self.rng.randint(0, 16**8):08x}"

    def _topics(self) -> tuple[str, ...]:
        if self.alike:
            return tuple(sorted(self.partitions))
        names = [*self.partitions, "absent"]
        return tuple(sorted(self.rng.sample(names, self.rng.randint(1, len(names)))))

    def _new(self) -> Process:
        free = {f"s-{n}" for n in range(2 * self.most)} - {p.instance for p in self.processes}
        instance = self.rng.choice([None, None, self.rng.choice(sorted(free))])
        version = self.rng.choice([3, 3, 3, 2, 1, 0])
        return Process(self._id(instance or "c"), instance, self._topics(), version)

    def _claim_anything(self) -> None:
        for process in self.processes:
            if self.rng.random() < 0.3:
                claims = {
                    TopicPartition(topic, self.rng.randrange(count))
                    for topic, count in self.partitions.items()
                    for _ in range(self.rng.randint(0, 4))
                }
                process.owned = tuple(sorted(claims))
                process.generation = self.generation - self.rng.choice([0, 1, 2, 9])

    def _live_on(self) -> None:
        for _ in range(self.rng.randint(0, 3)):
            process = self.rng.choice(self.processes)
            happening = self.rng.choice(
                ["leave", "leave", "join", "join", "grow", "restart", "want"]
            )
            if happening == "leave" and len(self.processes) > 1:
                self.processes.remove(process)
            elif happening == "join":
                self.processes.append(self._new())
            elif happening == "grow":
                self.partitions[self.rng.choice(sorted(self.partitions))] += 3
            elif happening == "restart":
                process.member_id = self._id(process.instance or "c")
                process.owned, process.generation = (), -1
            elif happening == "want":
                process.topics = self._topics()

    def rebalances(self, count: int) -> Iterator[JoinedGroup]:
        """Go through that many rebalances, or until a leader has no assignment to offer."""
        for self.generation in range(1, count + 1):
            if self.confused:
                self._claim_anything()
            self.rng.shuffle(self.processes)
            joined = self._joined()
            yield joined
            try:
                shares = ASSIGNORS[self.assignor](joined.members, joined.partitions)
            except AssignorError:
                return
            for process in self.processes:
                if self.rng.random() < 0.9:
                    process.owned = tuple(shares[process.member_id])
                    process.generation = self.generation
            self._live_on()

    def _joined(self) -> JoinedGroup:
        blobs = tuple(process.blob(self.assignor) for process in self.processes)
        members = tuple(
            Member(process.member_id, Subscription.decode(blob), process.instance)
            for process, blob in zip(self.processes, blobs, strict=True)
        )
        return JoinedGroup(self.assignor, dict(self.partitions), members, blobs)
