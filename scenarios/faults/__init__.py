"""The faults: the declaration of each (keys, checks, texts), and the one list of them all.

A new fault is a module here, a line in `SingleFault`, a class in `chaos.faults`, and a `case` in
`chaos.faults.make`. mypy reports a declaration that lacks something, and a missing `case`.
"""

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import Field

from scenarios.faults.add_partitions import AddPartitions
from scenarios.faults.broker_kill import BrokerKill
from scenarios.faults.broker_pause import BrokerPause
from scenarios.faults.broker_restart import BrokerRestart
from scenarios.faults.broker_stop import BrokerStop
from scenarios.faults.brokers import BrokerFault
from scenarios.faults.declaration import About, FaultPart, Planned
from scenarios.faults.duplicate_instance import DuplicateInstance
from scenarios.faults.group_bounce import GroupBounce
from scenarios.faults.member_kill import MemberKill
from scenarios.faults.member_restart import MemberRestart
from scenarios.faults.members import MemberFault, Static
from scenarios.faults.remove_members import RemoveMembers

SingleFault = (
    MemberRestart
    | MemberKill
    | DuplicateInstance
    | RemoveMembers
    | AddPartitions
    | BrokerKill
    | BrokerStop
    | BrokerPause
    | BrokerRestart
)
"""The faults that happen at one time."""

Fault = Annotated[SingleFault | GroupBounce, Field(discriminator="fault")]
"""Any fault of a file. A bounce becomes several restarts in the plan."""

KINDS: Mapping[str, type[SingleFault | GroupBounce]] = {
    get_args(kind.model_fields["fault"].annotation)[0]: kind
    for kind in get_args(SingleFault | GroupBounce)
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
    "BrokerPause",
    "BrokerRestart",
    "BrokerStop",
    "DuplicateInstance",
    "Fault",
    "FaultPart",
    "GroupBounce",
    "MemberFault",
    "MemberKill",
    "MemberRestart",
    "Planned",
    "RemoveMembers",
    "SingleFault",
    "Static",
    "about",
]
