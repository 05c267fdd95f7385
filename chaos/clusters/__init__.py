"""Clusters of real brokers, as processes or containers.

In: a run's mark and folder, a Kafka release, the number of brokers and their properties.
Out: a `Cluster` whose brokers can be killed, stopped, started, paused and resumed one by one, and
log what their group coordinators do.
It may import `scenarios` and `kafka_protocol`.
"""

from chaos.clusters.interface import BrokerInfo, Cluster, ClusterError, UnsupportedError

__all__ = ["BrokerInfo", "Cluster", "ClusterError", "UnsupportedError"]
