"""What faults act on in virtual time: they are carried out by their own `inject` and `heal`.

It has what those ask of a `FaultContext`. Nothing witnesses a fault here, and none is verified.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from chaos.errors import TargetError
from chaos.members import Order
from chaos.targets import brokers, resolve
from groupquake.simulate.brokers import SimulatedBrokers
from groupquake.simulate.group import SimulatedGroup
from kafka_protocol.apis import CONFIGURE
from kafka_protocol.group_configs import GROUP, changes
from scenarios import Experiment
from scenarios.setup import DUPLICATE, SAME, Identity, MemberSpec
from scenarios.targets import BrokerTarget, MemberTarget


class NotForeseenError(Exception):
    """A fault does what virtual time does not have; the text says what."""


class Unseen:
    """A witness that sees nothing: whatever is asked of it is nothing, too."""

    def __getattr__(self, _: str) -> Self:
        return self

    def __call__(self, *_: object, **__: object) -> Self:
        """Return nothing."""
        return self

    def __bool__(self) -> bool:
        """Return that it is nothing."""
        return False


class SimulatedMembers:
    """The members of all groups, controlled as a load's are."""

    def __init__(self, experiment: Experiment, groups: Mapping[str, SimulatedGroup]) -> None:
        self._of = {name: groups[one.group] for name, one in experiment.member_called.items()}

    def of(self, member: str) -> SimulatedGroup:
        """Return the group of a member."""
        return self._of[member]

    def order(self, order: Order, member: str, identity: Identity = SAME) -> None:
        """Let something happen to a member; see `chaos.members.Members.order`."""
        group, duplicate = self._of[member], member + DUPLICATE
        match order:
            case "start":
                group.instances[member] = identity.get("instance_id", group.instances[member])
                group.start(member)
            case "stop":
                group.stop(member)
            case "kill" if member in group.called:
                group.kill(group.called[member])
            case "pause":
                group.freeze(member)
            case "stop-polling":
                group.stop_polling(member)
            case "resume":
                group.resume(member)
            case "duplicate":
                group.start(duplicate)
            case "end-duplicate" if duplicate in group.called:
                group.kill(group.called[duplicate])

    def restart_as(self, instance_ids: Mapping[str, str]) -> tuple[str, ...]:
        """Close members, then start each with an instance id; none is lost."""
        for member in instance_ids:
            self.order("stop", member)
        for member, instance_id in instance_ids.items():
            self.order("start", member, {"instance_id": instance_id})
        return ()


class SimulatedTopics:
    """What a view of the cluster changes and tells."""

    def __init__(
        self, counts: dict[str, int], groups: Mapping[str, SimulatedGroup],
        brokers: SimulatedBrokers,
    ) -> None:  # fmt: skip
        self._counts, self._groups = counts, groups
        self.coordinator, self.leader = brokers.coordinator, brokers.leader
        self.controller, self.move_coordinator = brokers.controller, brokers.move_coordinator

    def add_partitions(self, topic: str, to: int) -> None:
        """Give a topic more partitions; leaders see it when their metadata is old."""
        for group in self._groups.values():
            group.look()
        self._counts[topic] = to
        for group in self._groups.values():
            if topic in group.of.topics:
                group.notice()

    def delete_topic(self, topic: str) -> None:
        """Refuse: what clients make of it is theirs alone."""
        raise NotForeseenError(f"what the clients make of a deleted topic, here {topic}")


class SimulatedContext:
    """What `chaos.fault_context.FaultContext` is to faults, as far as they act."""

    def __init__(
        self, experiment: Experiment, members: SimulatedMembers, cluster: SimulatedBrokers,
        view: SimulatedTopics, groups: Mapping[str, SimulatedGroup],
    ) -> None:  # fmt: skip
        self.experiment, self.members, self.cluster = experiment, members, cluster
        self.view, self.groups = view, groups
        self.witness = self.stop = Unseen()
        self.fault_id = ""

    def evidence(self, _: str) -> Unseen:
        """Return nothing."""
        return Unseen()

    probe = is_open = end_broker = evidence

    def unless_stopped(self, ask: Callable[[], Any]) -> Any:
        """Ask."""
        return ask()

    def targets_of(
        self, target: MemberTarget, group: str | None, *, allow_empty: bool
    ) -> tuple[MemberSpec, ...]:
        """Return the members that a target selects now."""

        def leader(name: str) -> str | None:
            return self.groups[name].leader

        return resolve(target, group, self.experiment, leader, allow_empty=allow_empty)

    def brokers_at(self, target: BrokerTarget) -> tuple[int, ...]:
        """Return the brokers that a target selects now."""
        return brokers(target, self.view)  # type: ignore[arg-type]

    def static_members(self, group: str) -> tuple[str, ...]:
        """Return the instance ids of a group. Raises TargetError if it has none now."""
        if found := tuple(self.groups[group].group.static_ids):
            return found
        raise TargetError(f"group {group} has no static members then")

    def remove_members(self, group: str, instances: Sequence[str], client_id: str) -> int:
        """Remove static members with one request; return the error of the answer."""
        _ = client_id
        named = [{"memberId": "", "groupInstanceId": one} for one in instances]
        return self.groups[group].administer("LEAVE_GROUP", members=named)

    def configure(self, group: str, configs: Mapping[str, str], client_id: str) -> int:
        """Set configs of a group; return the error of the answer."""
        _ = client_id
        resource = {"resourceType": GROUP, "resourceName": group, "configs": changes(configs)}
        return self.groups[group].administer(CONFIGURE, resources=[resource])
