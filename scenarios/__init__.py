"""Experiments: what runs, which faults are injected, and what must hold.

In: a YAML file, or a name of the library that comes with the package (`library/*.yaml`).
Out: a validated, frozen `Experiment`, or a `ScenarioError` that lists every problem with its line.
It may import `kafka_protocol`; it uses neither a cluster nor the network.
"""

from scenarios.experiment import Experiment, json_schema
from scenarios.faults import (
    AddPartitions,
    BrokerFault,
    BrokerKill,
    BrokerPause,
    BrokerRestart,
    BrokerStop,
    DuplicateInstance,
    Fault,
    GroupBounce,
    MemberFault,
    MemberKill,
    MemberRestart,
    RemoveMembers,
    SingleFault,
    Static,
)
from scenarios.loading import find, load, named, names
from scenarios.members import MemberSpec
from scenarios.problems import ScenarioError
from scenarios.targets import (
    Brokers,
    BrokerTarget,
    CoordinatorOf,
    LeaderMemberOf,
    MemberTarget,
    Names,
    PartitionLeader,
)

__all__ = [
    "AddPartitions",
    "BrokerFault",
    "BrokerKill",
    "BrokerPause",
    "BrokerRestart",
    "BrokerStop",
    "BrokerTarget",
    "Brokers",
    "CoordinatorOf",
    "DuplicateInstance",
    "Experiment",
    "Fault",
    "GroupBounce",
    "LeaderMemberOf",
    "MemberFault",
    "MemberKill",
    "MemberRestart",
    "MemberSpec",
    "MemberTarget",
    "Names",
    "PartitionLeader",
    "RemoveMembers",
    "ScenarioError",
    "SingleFault",
    "Static",
    "find",
    "json_schema",
    "load",
    "named",
    "names",
]
