"""The faults: the declaration of each (keys, checks, texts), and the one list of them all.

A new fault is a module here, a line in `SingleFault`, a class in `chaos.faults`, and a `case` in
`chaos.faults.make`. mypy reports a declaration that lacks something, and a missing `case`.
"""

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import Field

from scenarios.faults.add_partitions import AddPartitions
from scenarios.faults.broker_kill import BrokerKill
from scenarios.faults.broker_partition import BrokerPartition
from scenarios.faults.broker_pause import BrokerPause
from scenarios.faults.broker_restart import BrokerRestart
from scenarios.faults.broker_slow_network import BrokerSlowNetwork
from scenarios.faults.broker_stop import BrokerStop
from scenarios.faults.brokers import BrokerFault
from scenarios.faults.clock_skew import ClockSkew
from scenarios.faults.coordinator_move import CoordinatorMove
from scenarios.faults.declaration import About, FaultPart, Planned
from scenarios.faults.disk_full import DiskFull
from scenarios.faults.disk_slow import DiskSlow
from scenarios.faults.duplicate_instance import DuplicateInstance
from scenarios.faults.group_bounce import GroupBounce
from scenarios.faults.member_kill import MemberKill
from scenarios.faults.member_pause import MemberPause
from scenarios.faults.member_restart import MemberRestart
from scenarios.faults.member_slow_poll import MemberSlowPoll
from scenarios.faults.members import MemberFault, Static
from scenarios.faults.members_scale import MembersScale
from scenarios.faults.net import NetFault
from scenarios.faults.net_faults import (
    NetDelay,
    NetDropAnswers,
    NetDuplicate,
    NetHold,
    NetIsolate,
    NetPartition,
)
from scenarios.faults.remove_members import RemoveMembers
from scenarios.faults.rolling_restart import RollingRestart
from scenarios.faults.swap_instance import SwapInstance
from scenarios.faults.topic_delete import TopicDelete

SingleFault = (
    MemberRestart
    | MemberKill
    | MemberPause
    | MemberSlowPoll
    | DuplicateInstance
    | SwapInstance
    | MembersScale
    | RemoveMembers
    | AddPartitions
    | TopicDelete
    | CoordinatorMove
    | BrokerKill
    | BrokerStop
    | BrokerPause
    | BrokerRestart
    | BrokerPartition
    | BrokerSlowNetwork
    | NetPartition
    | NetIsolate
    | NetDelay
    | NetDropAnswers
    | NetHold
    | NetDuplicate
    | DiskFull
    | DiskSlow
    | ClockSkew
)
"""The faults that happen at one time."""

SerialFault = GroupBounce | RollingRestart
"""The faults that become several restarts in the plan, one after the other."""

Fault = Annotated[SingleFault | SerialFault, Field(discriminator="fault")]
"""Any fault of a file."""

KINDS: Mapping[str, type[SingleFault | SerialFault]] = {
    get_args(kind.model_fields["fault"].annotation)[0]: kind
    for kind in get_args(SingleFault | SerialFault)
}
"""The declaring class of each fault, by its name."""


def about(name: str) -> About | None:
    """Return what a fault of that name is; None for a name that is not in the list."""
    kind = KINDS.get(name)
    return kind.about if kind else None


__all__ = [
    "KINDS",
    "About",
    "AddPartitions",
    "BrokerFault",
    "BrokerKill",
    "BrokerPartition",
    "BrokerPause",
    "BrokerRestart",
    "BrokerSlowNetwork",
    "BrokerStop",
    "ClockSkew",
    "CoordinatorMove",
    "DiskFull",
    "DiskSlow",
    "DuplicateInstance",
    "Fault",
    "FaultPart",
    "GroupBounce",
    "MemberFault",
    "MemberKill",
    "MemberPause",
    "MemberRestart",
    "MemberSlowPoll",
    "MembersScale",
    "NetDelay",
    "NetDropAnswers",
    "NetDuplicate",
    "NetFault",
    "NetHold",
    "NetIsolate",
    "NetPartition",
    "Planned",
    "RemoveMembers",
    "RollingRestart",
    "SerialFault",
    "SingleFault",
    "Static",
    "SwapInstance",
    "TopicDelete",
    "about",
]
