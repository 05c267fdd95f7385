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
    broker_partition,
    broker_pause,
    broker_slow_network,
    clock_skew,
    coordinator_move,
    disk_full,
    disk_slow,
    duplicate_instance,
    member_kill,
    member_pause,
    member_restart,
    member_slow_poll,
    net,
    remove_members,
    swap_instance,
    topic_delete,
)
from chaos.faults.context import FaultContext
from chaos.faults.interface import Fault, Finding, OneShot, Recoverable
from scenarios import (
    AddPartitions,
    BrokerKill,
    BrokerPartition,
    BrokerPause,
    BrokerRestart,
    BrokerSlowNetwork,
    BrokerStop,
    ClockSkew,
    CoordinatorMove,
    DiskFull,
    DiskSlow,
    DuplicateInstance,
    MemberKill,
    MemberPause,
    MemberRestart,
    MemberSlowPoll,
    MembersScale,
    NetDelay,
    NetDropAnswers,
    NetDuplicate,
    NetHold,
    NetIsolate,
    NetPartition,
    RemoveMembers,
    SingleFault,
    SwapInstance,
    TopicDelete,
)

_Acting = (
    add_partitions.AddPartitions
    | broker_down.BrokerDown
    | broker_partition.BrokerPartition
    | broker_pause.BrokerPause
    | broker_slow_network.BrokerSlowNetwork
    | clock_skew.ClockSkew
    | coordinator_move.CoordinatorMove
    | disk_full.DiskFull
    | disk_slow.DiskSlow
    | duplicate_instance.DuplicateInstance
    | member_kill.MemberKill
    | member_pause.MemberPause
    | member_restart.MemberRestart
    | member_slow_poll.MemberSlowPoll
    | net.NetRule
    | remove_members.RemoveMembers
    | swap_instance.SwapInstance
    | topic_delete.TopicDelete
)


def make(  # noqa: C901, PLR0911, PLR0912 (one case for each fault)
    fault_id: str, fault: SingleFault, context: FaultContext
) -> tuple[_Acting, ...]:
    """Resolve the targets of a fault now, and return the acting half for each.

    That is none if the fault allows it. Raises TargetError if there is no target, and ChaosError
    if its brokers are not known before time is up or the run ends.
    """
    match fault:
        case MemberRestart():
            return member_restart.make(fault, context)
        case MemberKill():
            return member_kill.MemberKill.each(fault, fault.down_for_ms, context)
        case MemberPause():
            return member_pause.MemberPause.each(fault, fault.down_for_ms, context)
        case MemberSlowPoll():
            return member_slow_poll.MemberSlowPoll.each(fault, fault.lasts_ms, context)
        case DuplicateInstance():
            return duplicate_instance.DuplicateInstance.each(fault, fault.lasts_ms, context)
        case SwapInstance():
            return swap_instance.make(fault, context)
        case MembersScale():
            return member_restart.make_scaling(fault, context)
        case RemoveMembers():
            return remove_members.make(fault_id, fault, context)
        case AddPartitions():
            return add_partitions.make(fault, context)
        case TopicDelete():
            return topic_delete.make(fault, context)
        case CoordinatorMove():
            return coordinator_move.make(fault, context)
        case BrokerKill():
            return broker_down.make(fault, fault.down_for_ms, context, cleanly=False)
        case BrokerStop():
            return broker_down.make(fault, fault.down_for_ms, context, cleanly=True)
        case BrokerRestart():
            return broker_down.make(fault, 0, context, cleanly=True)
        case DiskFull():
            return disk_full.make(fault, context)
        case DiskSlow():
            return disk_slow.make(fault, context)
        case ClockSkew():
            return clock_skew.make(fault, context)
        case BrokerPause():
            return broker_pause.make(fault, context)
        case BrokerPartition():
            return broker_partition.make(fault, context)
        case BrokerSlowNetwork():
            return broker_slow_network.make(fault, context)
        case NetPartition():
            return net.make(fault_id, fault, context)
        case NetIsolate():
            return net.make(fault_id, fault, context)
        case NetDelay():
            return net.make(fault_id, fault, context)
        case NetDropAnswers():
            return net.make(fault_id, fault, context)
        case NetHold():
            return net.make(fault_id, fault, context)
        case NetDuplicate():
            return net.make(fault_id, fault, context)
        case _:
            assert_never(fault)


def heal_from_journal(undo: Mapping[str, Any]) -> str | None:
    """Carry out an `undo` of the journal of a run that died; return how, None if no fault has it.

    Raises ChaosError if it fails.
    """
    for kind in get_args(_Acting):
        if kind.kind == "recoverable":
            how: str | None = kind.heal_from_journal(undo)
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
