"""The faults, a module for each family: what the file says of one, its checks, and what it does.

In: the keys of a fault, and, when it fires, what `chaos` hands it: members, brokers, logs.
Out: steps of the plan; targets that were broken and healed, and what a witness saw of that.
It imports nothing of `chaos`, but for types. A new fault is a class in the module of its family,
and a line in `FAULTS`.
"""

from typing import Annotated, Any, Union

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from scenarios.faults import broker, disk_and_clock, group, member, network, topic, wire
from scenarios.faults.base import BY_HAND, NETWORKS, Fault, Needs

FAULTS: dict[str, type[Fault]] = {
    kind.name(): kind
    for kind in (
        member.MemberRestart,
        member.MemberKill,
        member.MemberPause,
        member.MemberSlowPoll,
        member.MemberUnsubscribe,
        member.DuplicateInstance,
        member.SwapInstance,
        group.MembersScale,
        group.RemoveMembers,
        group.GroupConfigure,
        topic.AddPartitions,
        topic.TopicDelete,
        group.CoordinatorMove,
        broker.BrokerKill,
        broker.BrokerStop,
        broker.BrokerPause,
        broker.BrokerRestart,
        network.BrokerPartition,
        network.BrokerSlowNetwork,
        wire.NetPartition,
        wire.NetIsolate,
        wire.NetDelay,
        wire.NetDropAnswers,
        wire.NetHold,
        wire.NetDuplicate,
        wire.NetAnswerError,
        disk_and_clock.DiskFull,
        disk_and_clock.DiskSlow,
        disk_and_clock.ClockSkew,
        group.GroupBounce,
        broker.RollingRestart,
    )
}
"""Every fault by its name."""

IN_CONTAINERS: frozenset[Needs] = frozenset(("clock", *NETWORKS))
"""What only brokers in containers have."""


class _ByName:
    """Lets pydantic tell the faults apart by their names."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds: Any = Union[tuple(FAULTS.values())]  # noqa: UP007 (of a tuple)
        return handler.generate_schema(Annotated[kinds, Field(discriminator="fault")])


AnyFault = Annotated[Fault, _ByName]
"""Any fault of a file."""

__all__ = ["BY_HAND", "FAULTS", "IN_CONTAINERS", "NETWORKS", "AnyFault", "Fault", "Needs"]
