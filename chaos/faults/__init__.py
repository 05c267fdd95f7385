"""How each fault is carried out: inject, verify, heal. Its declaration is in `scenarios.faults`.

In: a fault of the plan, and the cluster, members and logs to act on.
Out: an injected and healed fault, and what a witness other than the injector saw of it.
It may import the control channel's client, the cluster's interface and releases, the witnesses and
the removal of members, and knows neither plan nor journal file.
"""

from collections.abc import Mapping
from typing import Any, assert_never, get_args

from chaos.faults import (
    add_partitions,
    broker_down,
    broker_pause,
    duplicate_instance,
    member_kill,
    member_restart,
    remove_members,
)
from chaos.faults.context import FaultContext
from chaos.faults.interface import Fault, Finding, OneShot, Recoverable
from chaos.members import Members
from scenarios import (
    AddPartitions,
    BrokerKill,
    BrokerPause,
    BrokerRestart,
    BrokerStop,
    DuplicateInstance,
    MemberKill,
    MemberRestart,
    RemoveMembers,
    SingleFault,
)

_Acting = (
    add_partitions.AddPartitions
    | broker_down.BrokerDown
    | broker_pause.BrokerPause
    | duplicate_instance.DuplicateInstance
    | member_kill.MemberKill
    | member_restart.MemberRestart
    | remove_members.RemoveMembers
)


def make(fault_id: str, fault: SingleFault, context: FaultContext) -> tuple[_Acting, ...]:
    """Resolve the targets of a fault now, and return the acting half for each.

    That is none if the fault allows it. Raises TargetError if there is no target, and ChaosError
    if its brokers are not known before time is up or the run ends.
    """
    match fault:
        case MemberRestart():
            return member_restart.make(fault, context)
        case MemberKill():
            return member_kill.make(fault, context)
        case DuplicateInstance():
            return duplicate_instance.make(fault, context)
        case RemoveMembers():
            return remove_members.make(fault_id, fault, context)
        case AddPartitions():
            return add_partitions.make(fault, context)
        case BrokerKill():
            return broker_down.make(fault, fault.down_for_ms, context, cleanly=False)
        case BrokerStop():
            return broker_down.make(fault, fault.down_for_ms, context, cleanly=True)
        case BrokerRestart():
            return broker_down.make(fault, 0, context, cleanly=True)
        case BrokerPause():
            return broker_pause.make(fault, context)
        case _:
            assert_never(fault)


def heal_from_journal(undo: Mapping[str, Any], members: Members | None) -> str | None:
    """Carry out an `undo` of the journal, and return how; None if no fault writes this.

    `members` is None if the load process is gone. Raises ChaosError if it fails.
    """
    for kind in get_args(_Acting):
        if kind.kind == "recoverable":
            how: str | None = kind.heal_from_journal(undo, members)
            if how is not None:
                return how
    return None


__all__ = [
    "Fault",
    "FaultContext",
    "Finding",
    "OneShot",
    "Recoverable",
    "heal_from_journal",
    "make",
]
