"""The oracle on the wire: brokers whose coordinator is `step`, in the real Kafka protocol.

In: ports, a profile, broker properties. Out: what clients are answered, and logs with the brokers'
own grammar. It is a process of its own, the one part of the oracle with clock, network and files;
it knows the rest of the oracle and `kafka_protocol`.
"""

from reference_coordinator.server.cluster import ServedCluster, served

__all__ = ["ServedCluster", "served"]
