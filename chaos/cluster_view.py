"""What the cluster says about the roles of its brokers, its topics and their replicas."""

from typing import Protocol


class ClusterView(Protocol):
    """Asks the brokers; every method raises ChaosError if they cannot answer now."""

    def coordinator(self, group: str) -> int:
        """Return the broker that coordinates a group."""

    def leader(self, topic: str, partition: int) -> int:
        """Return the broker that leads a partition."""

    def controller(self) -> int:
        """Return the node that leads the metadata quorum (KRaft, KIP-595): the active controller.

        That is not the controller of a Metadata response: a broker names any live broker there, so
        that clients do not contact the controller directly (KIP-590).
        """

    def add_partitions(self, topic: str, to: int) -> None:
        """Create partitions of a topic, so that it has this many."""

    def partitions(self, port: int, topic: str) -> int:
        """Return how many partitions of a topic have a leader, as the broker at this port knows."""

    def in_sync(self, port: int) -> frozenset[int]:
        """Return the brokers that are alive and in sync, according to the one at this port.

        A broker is in sync if it is in the ISR of every partition that it has a replica of.
        """
