"""Which members and brokers a target selects, once it is known who leads and coordinates.

It needs no client of Kafka's, so that a simulation resolves targets as a run does.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from chaos.errors import TargetError
from kafka_protocol.printable import shortened
from scenarios.setup import DUPLICATE, MemberSpec, Setup
from scenarios.targets import (
    Brokers,
    BrokerTarget,
    CoordinatorOf,
    LeaderMemberOf,
    MemberTarget,
    Names,
    PartitionLeader,
    in_words,
    selected,
)

if TYPE_CHECKING:
    from chaos.cluster_view import ClusterView


def resolve(
    target: MemberTarget,
    group: str | None,
    experiment: Setup,
    leader_of: Callable[[str], str | None],
    *,
    allow_empty: bool,
) -> tuple[MemberSpec, ...]:
    """Return the members that a target selects, in the file's order.

    `leader_of` returns the client.id of the leader of a group now, or None. Raises TargetError,
    which lists the members, if a name is unknown, or if no member is selected without
    `allow_empty`.
    """
    if isinstance(target, LeaderMemberOf):
        # a duplicate may lead; it belongs to its member
        leader = (leader_of(target.group) or "").removesuffix(DUPLICATE)
        found = tuple(
            one for one in experiment.members_by_group[target.group] if one.name == leader
        )
    else:
        if isinstance(target, Names):
            known = experiment.member_called
            if missing := [name for name in target.names if name not in known]:
                raise TargetError(
                    f"no member is called {', '.join(missing)}; there are {', '.join(known)}"
                )
        found = selected(target, group, experiment)
    if not found and not allow_empty:
        raise TargetError(f"{_nobody(target, group, experiment)}, or set allow_empty: true")
    return found


def brokers(target: BrokerTarget, view: "ClusterView") -> tuple[int, ...]:
    """Return the ids of the brokers that a target selects now; raises what `view` raises."""
    match target:
        case CoordinatorOf(group=group):
            return (view.coordinator(group),)
        case PartitionLeader(partition=partition):
            topic, _, number = partition.rpartition("/")
            return (view.leader(topic, int(number)),)
        case Brokers(brokers=ids):
            return tuple(dict.fromkeys(ids))
        case _:
            return (view.controller(),)


def _nobody(target: MemberTarget, group: str | None, experiment: Setup) -> str:
    where = target.group if isinstance(target, LeaderMemberOf) else group
    members = experiment.members_by_group.get(where or "", ())
    here = shortened([one.name for one in members]) or "nobody"
    why = " (the brokers' logs show no leader now)" if isinstance(target, LeaderMemberOf) else ""
    words = in_words(target, group)
    return f"target {words} matches no member{why}; group {where} has {here}: choose from these"
