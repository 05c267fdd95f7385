"""Clusters of real brokers, as processes or containers, and of the served oracle.

In: a run's mark and folder, a Kafka release, the number of brokers and their properties.
Out: a `Cluster` whose brokers can be killed, stopped, started, paused and resumed one by one, and
log what their group coordinators do.
It may import `scenarios` and `kafka_protocol`; clusters of the user's are in `chaos.external`.
"""

from chaos.clusters.interface import GROUP_LOG, BrokerInfo, Cluster, CutShort
from chaos.errors import ClusterError, UnsupportedError

__all__ = ["GROUP_LOG", "BrokerInfo", "Cluster", "ClusterError", "CutShort", "UnsupportedError"]
