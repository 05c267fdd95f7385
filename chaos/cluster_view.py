"""What the cluster says about its brokers' roles and its topics, and how well they keep up."""

from typing import Protocol


class ClusterView(Protocol):
    """Asks the brokers; every method raises ChaosError if they cannot answer at the moment."""

    def coordinator(self, group: str) -> int:
        """Return the broker that coordinates a group."""

    def leader(self, topic: str, partition: int) -> int:
        """Return the broker that leads a partition."""

    def controller(self) -> int:
        """Return the node that leads the metadata quorum (KRaft, KIP-595): the active controller.

        That is not the controller of a metadata answer: brokers name any live broker there, so
        that clients do not reach past them (KIP-590).
        """

    def add_partitions(self, topic: str, to: int) -> None:
        """Give a topic more partitions, so that it has this many."""

    def partitions(self, port: int, topic: str) -> int:
        """Return of how many partitions of a topic the broker at this port knows a leader."""

    def in_sync(self, port: int) -> frozenset[int]:
        """Return the brokers that the one at this port knows to live and to be in sync.

        In sync is who stands in the ISR of every partition that it has a replica of.
        """
