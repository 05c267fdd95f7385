"""What the cluster says about the roles of its brokers, its topics and their replicas."""

from collections.abc import Callable, Mapping
from typing import Protocol


class ClusterView(Protocol):
    """Asks the brokers; every method raises ChaosError if they cannot answer now."""

    def coordinator(self, group: str, address: str | None = None) -> int:
        """Return the broker that coordinates a group, by any broker, or the one at `host:port`."""

    def move_coordinator(self, group: str, to: int | None) -> int:
        """Elect another coordinator for a group: `to`, or the next replica; return its id."""

    def probes(self) -> Mapping[str, Callable[[str], int | str]]:
        """Return functions of a group's name: `group.members` and `group.state`."""

    def leader(self, topic: str, partition: int) -> int:
        """Return the broker that leads a partition."""

    def controller(self) -> int:
        """Return the node that leads the metadata quorum (KRaft, KIP-595): the active controller.

        That is not the controller of a Metadata response: a broker names any live broker there, so
        that clients do not contact the controller directly (KIP-590).
        """

    def add_partitions(self, topic: str, to: int) -> None:
        """Create partitions of a topic, so that it has this many."""

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""

    def partitions(self, address: str, topic: str) -> int:
        """Return how many partitions of a topic have a leader, by the broker at `host:port`."""

    def in_sync(self, address: str) -> frozenset[int]:
        """Return the brokers that are alive and in sync, according to the one at `host:port`.

        A broker is in sync if it is in the ISR of every partition that it has a replica of.
        """
