"""What faults act on in virtual time: they are carried out by their own `inject` and `heal`.

It has what those ask of a `FaultContext`. Nothing witnesses a fault here, and none is verified.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from chaos.errors import TargetError
from chaos.members import Order
from chaos.tap.rules import Rule
from chaos.targets import brokers, resolve
from groupquake.simulate.brokers import SimulatedBrokers
from groupquake.simulate.group import SimulatedGroup
from kafka_protocol.apis import CONFIGURE
from kafka_protocol.group_configs import GROUP, changes
from scenarios import Experiment
from scenarios.faults import Fault
from scenarios.setup import DUPLICATE, SAME, Identity, MemberSpec
from scenarios.targets import BrokerTarget, MemberTarget


class NotForeseenError(Exception):
    """A fault does what virtual time does not have; the text says what."""


def missing(fault: Fault) -> str:
    """Return what a fault needs of a cluster that virtual time does not have; often nothing."""
    return f"virtual time has no {fault.needs}" if fault.needs not in (None, "tap") else ""


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


class SimulatedRule:
    """A rule of the tap for what a member sends and gets; see `chaos.wire_rules.WireRule`."""

    probed = ()

    def __init__(self, group: SimulatedGroup, rule: Rule) -> None:
        self._group, self._rule = group, rule

    def put(self) -> str:
        """Put the rule in force; return its id."""
        self._group.tap(str(id(self)), self._rule)
        return str(id(self))

    def remove(self) -> str:
        """Remove the rule; what it held passes."""
        self._group.wire.end(str(id(self)))
        return ""


class SimulatedContext:
    """What `chaos.fault_context.FaultContext` is to faults, as far as they act.

    It is also the members that it controls and the view of the cluster. `counts` are the partitions
    of each topic now.
    """

    def __init__(
        self, experiment: Experiment, groups: Mapping[str, SimulatedGroup],
        brokers: SimulatedBrokers, counts: dict[str, int],
    ) -> None:  # fmt: skip
        self.experiment, self.groups = experiment, groups
        self.cluster, self.counts = brokers, counts
        self.members = self.view = self
        self.coordinator, self.leader = brokers.coordinator, brokers.leader
        self.controller, self.move_coordinator = brokers.controller, brokers.move_coordinator
        self.witness = self.stop = self.fault_id = Unseen()

    def evidence(self, _: object) -> Unseen:
        """Return nothing."""
        return Unseen()

    probe = is_open = end_broker = tap_for = evidence

    def unless_stopped(self, ask: Callable[[], Any]) -> Any:
        """Ask."""
        return ask()

    # Targets.

    def targets_of(
        self, target: MemberTarget, group: str | None, *, allow_empty: bool
    ) -> tuple[MemberSpec, ...]:
        """Return the members that a target selects now."""

        def leader(name: str) -> str | None:
            return self.groups[name].leader

        return resolve(target, group, self.experiment, leader, allow_empty=allow_empty)

    def brokers_at(self, target: BrokerTarget) -> tuple[int, ...]:
        """Return the brokers that a target selects now."""
        return brokers(target, self)  # type: ignore[arg-type]

    # Members.

    def group_of(self, member: str) -> SimulatedGroup:
        """Return the group of a member."""
        return self.groups[self.experiment.member_called[member].group]

    def order(self, order: Order, member: str, identity: Identity = SAME) -> None:
        """Let something happen to a member; see `chaos.members.Members.order`."""
        group, duplicate = self.group_of(member), member + DUPLICATE
        match order:
            case "start":
                group.start(member, identity)
            case "stop":
                group.stop(member)
            case "kill" if member in group.called:
                group.kill(group.called[member])
            case "pause":
                group.freeze(member)
            case "stop-polling":
                group.stop_polling(member)
            case "unsubscribe":
                group.unsubscribe(member)
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

    def wire_rule(
        self, action: Any, member: str, nodes: tuple[int, ...] | None, keys: Mapping[str, Any]
    ) -> SimulatedRule:
        """Return a rule for what a member sends to brokers, all without `nodes`.

        Raises NotForeseenError where it is the client's own matter how long it waits in vain, or
        what it makes of an error.
        """
        if "error" in keys:
            raise NotForeseenError("what a client makes of an error that its broker did not give")
        if (client := self.experiment.member_called[member].client) != "librdkafka":
            raise NotForeseenError(f"when {client} gives a request up")
        if keys.get("then") == "silence":
            raise NotForeseenError("when a client gives a request up whose connection is open")
        instances = tuple(filter(None, [self.experiment.member_called[member].instance_id]))
        rule = Rule(action, (member,), instances, nodes, **keys)
        return SimulatedRule(self.group_of(member), rule)

    # Topics.

    def add_partitions(self, topic: str, to: int) -> None:
        """Give a topic more partitions; members see it when their metadata is old."""
        self._change(topic, {topic: to})

    def delete_topic(self, topic: str) -> None:
        """Delete a topic; members see it when their metadata is old."""
        self._change(topic, {})

    def _change(self, topic: str, counts: Mapping[str, int]) -> None:
        for group in self.groups.values():
            group.look()
        del self.counts[topic]
        self.counts.update(counts)
        for group in self.groups.values():
            if topic in group.of.topics:
                group.notice()
