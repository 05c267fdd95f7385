"""From a step of the plan to the faults themselves, one for each target that there is now."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import TypeVar

from chaos import faults, targets
from chaos.cluster_view import ClusterView
from chaos.clusters import Cluster
from chaos.errors import ChaosError, TargetError, UnreachableError
from chaos.faults import Fault, MemberEvidence
from chaos.members import SAME, Identity, Members
from chaos.plan import Step
from chaos.removal import Removal, remove_members, static_members
from chaos.witness import Witness
from scenarios import (
    Brokers,
    BrokerTarget,
    CoordinatorOf,
    Experiment,
    MemberSpec,
    MemberTarget,
    PartitionLeader,
)

ANSWER_WITHIN_S = 30.0
"""How long the cluster may be without whoever is asked for: after SIGKILL, a lease of 9 s."""
LEFT_S = 8.0
"""What a request that is under way gets once the run is to end: nothing can interrupt it."""
_POLL_S = 0.2

Answer = TypeVar("Answer")


class FaultFactory:
    """Makes faults for the members of an experiment and the brokers of a cluster."""

    def __init__(
        self, experiment: Experiment, cluster: Cluster, members: Members, view: ClusterView
    ) -> None:
        self._experiment = experiment
        self._groups = {group.name: group for group in experiment.workload.groups}
        self._cluster = cluster
        self._members = members
        self._view = view
        self._witness = Witness({broker.id: broker.group_log for broker in cluster.brokers})

    def make(self, step: Step, stop: threading.Event) -> tuple[Fault, ...]:
        """Find out whom a step hits now, and return a fault for each; nobody, if that is allowed.

        Raises TargetError if it hits nobody, and ChaosError if the cluster cannot tell before time
        is up or `stop` is set.
        """
        match step.target:
            case None if step.fault == "topic.add-partitions":
                return (self._partitions(step, stop),)
            case None:
                return (self._removal(step, stop),)
            case "controller" | CoordinatorOf() | PartitionLeader() | Brokers() as target:
                return self._of_brokers(step, target, stop)
            case target:
                return self._of_members(step, target)

    def _removal(self, step: Step, stop: threading.Event) -> Fault:
        group, instances = step.group, step.args["instances"]
        assert group is not None, "an experiment always names the group"
        bootstrap = self._cluster.bootstrap
        if instances == "all":
            instances = _unless_ended(partial(static_members, bootstrap, group), stop)
        if not instances:
            raise TargetError(f"group {group} has no static members now; give it some, or name ids")
        client_id = f"groupquake-{step.id}"

        def remove(ids: Sequence[str]) -> Removal:
            ask = partial(remove_members, bootstrap, group, ids, client_id=client_id)
            return _unless_ended(ask, stop)

        return faults.RemoveMembers(group, instances, client_id, remove, self._witness)

    def _partitions(self, step: Step, stop: threading.Event) -> Fault:
        topic, to = step.args["topic"], step.args["to"]

        def add() -> None:
            _unless_ended(partial(self._view.add_partitions, topic, to), stop)

        return faults.AddPartitions(topic, to, add, self._cluster.brokers, self._view)

    def _of_brokers(
        self, step: Step, target: BrokerTarget, stop: threading.Event
    ) -> tuple[Fault, ...]:
        ids = _once_known(partial(targets.brokers, target, self._view), stop)
        group = target.group if isinstance(target, CoordinatorOf) else None
        return tuple(self._of_broker(step, broker, group) for broker in ids)

    def _of_broker(self, step: Step, broker: int, group: str | None) -> Fault:
        probe = self._probe(broker)
        lasts_ms = step.args.get("down_for_ms", 0)
        if step.fault == "broker.pause":
            return faults.BrokerPause(broker, group, lasts_ms, self._cluster, probe)
        cleanly = step.fault != "broker.kill"
        return faults.BrokerDown(broker, group, lasts_ms, self._cluster, probe, cleanly=cleanly)

    def _probe(self, broker: int) -> faults.BrokerProbe:
        return faults.BrokerProbe(broker, self._cluster.brokers, self._view)

    def _of_members(self, step: Step, target: MemberTarget) -> tuple[Fault, ...]:
        self._witness.poll()
        found = targets.resolve(
            target,
            step.group,
            self._experiment,
            self._witness.leader,
            allow_empty=step.allow_empty,
        )
        return tuple(self._of_member(step, member) for member in found)

    def _of_member(self, step: Step, member: MemberSpec) -> Fault:
        group = self._groups[member.group]
        evidence = MemberEvidence(
            member.name,
            group.heartbeat_interval_ms,
            group.max_poll_interval_ms,
            self._witness,
            lambda broker: self._probe(broker).answers(),
        )
        whom = (member.name, member.group)
        match step.fault:
            case "member.restart":
                identity = self._identity(step, member)
                lasts_ms = step.args["down_for_ms"]
                return faults.MemberRestart(*whom, lasts_ms, evidence, self._members, identity)
            case "member.kill":
                return faults.MemberKill(*whom, step.args["down_for_ms"], evidence, self._members)
            case _:
                return faults.DuplicateInstance(
                    *whom, step.args["lasts_ms"], evidence, self._members
                )

    def _identity(self, step: Step, member: MemberSpec) -> Identity:
        """Return who a member comes back as; `{n}` is its place in its group."""
        match step.args.get("becomes"):
            case None:
                return SAME
            case "dynamic":
                return {"instance_id": None}
            case becomes:
                group = [m.name for m in self._experiment.members() if m.group == member.group]
                place = str(group.index(member.name))
                return {"instance_id": becomes["instance_id"].replace("{n}", place)}


def _once_known(ask: Callable[[], tuple[int, ...]], stop: threading.Event) -> tuple[int, ...]:
    """Ask until there is an answer; raises the last ChaosError when time is up or `stop` is set."""
    deadline = time.monotonic() + ANSWER_WITHIN_S
    while True:
        try:
            return ask()
        except ChaosError:
            if time.monotonic() > deadline or stop.wait(_POLL_S):
                raise


def _unless_ended(ask: Callable[[], Answer], stop: threading.Event) -> Answer:
    """Ask in another thread, which is left to itself if it has no answer `LEFT_S` after `stop`.

    Raises UnreachableError then, and else whatever `ask` raises.
    """
    answer: Future[Answer] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:  # noqa: BLE001 (whatever it is, who waits gets it)
            answer.set_exception(error)

    threading.Thread(target=work, name="asking", daemon=True).start()
    while not wait([answer], _POLL_S).done and not stop.is_set():
        continue
    if not wait([answer], LEFT_S).done:
        raise UnreachableError("the run was ended, and there was no answer yet")
    return answer.result()
