"""What faults act on, and how their targets are resolved when they fire."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import TypeVar

from chaos import targets
from chaos.cluster_view import ClusterView
from chaos.clusters import Cluster
from chaos.errors import ChaosError, UnreachableError
from chaos.faults.broker_probe import BrokerProbe
from chaos.faults.member_evidence import MemberEvidence
from chaos.members import Members
from chaos.tap import RunningTap
from chaos.witness import Witness
from scenarios import BrokerFault, BrokerTarget, CoordinatorOf, Experiment, MemberFault, MemberSpec

ANSWER_WITHIN_S = 30.0
"""How long the cluster may lack a coordinator, leader or controller: after SIGKILL, a lease of
9 s."""
LEFT_S = 8.0
"""What a request that is under way gets once the run is to end: nothing can interrupt it."""
_POLL_S = 0.2

Answer = TypeVar("Answer")


@dataclass(slots=True)
class FaultContext:
    """The experiment, and what acts on and observes its members and brokers.

    `stop` is set when the run is to end: it ends every wait. `tap` is None if members reach the
    brokers directly. `seed` is the plan's.
    """

    experiment: Experiment
    cluster: Cluster
    members: Members
    view: ClusterView
    stop: threading.Event
    tap: RunningTap | None = None
    seed: int = 0
    witness: Witness = field(init=False)

    def __post_init__(self) -> None:
        self.witness = Witness({info.id: info.group_log for info in self.cluster.brokers})

    def targets_of(self, fault: MemberFault) -> tuple[MemberSpec, ...]:
        """Return the members that a fault hits now, in the file's order.

        Raises TargetError if there is none and the fault does not allow that.
        """
        self.witness.poll()
        return targets.resolve(
            fault.target,
            fault.group,
            self.experiment,
            self.witness.leader,
            allow_empty=fault.allow_empty,
        )

    def brokers_of(self, fault: BrokerFault) -> tuple[tuple[int, str | None], ...]:
        """Return the ids of the brokers that a fault hits now, and the group they are chosen for.

        Raises ChaosError if the brokers are not known before time is up or `stop` is set.
        """
        group = fault.target.group if isinstance(fault.target, CoordinatorOf) else None
        return tuple((node, group) for node in self.brokers_at(fault.target))

    def brokers_at(self, target: BrokerTarget) -> tuple[int, ...]:
        """Return the ids of the brokers that a target selects now; raises as `brokers_of`."""
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while True:
            try:
                return targets.brokers(target, self.view)
            except ChaosError:
                if time.monotonic() > deadline or self.stop.wait(_POLL_S):
                    raise

    def evidence(self, member: MemberSpec) -> MemberEvidence:
        """Return the evidence of a member in the brokers' logs."""
        group = next(g for g in self.experiment.workload.groups if g.name == member.group)
        return MemberEvidence(
            member.name,
            group.heartbeat_interval_ms,
            group.max_poll_interval_ms,
            self.witness,
            lambda broker: self.probe(broker).answers(),
        )

    def probe(self, broker: int) -> BrokerProbe:
        """Return what can be seen of a broker from outside."""
        return BrokerProbe(broker, self.cluster.brokers, self.view)

    def unless_stopped(self, ask: Callable[[], Answer]) -> Answer:
        """Ask in another thread, and give up on it `LEFT_S` after `stop`.

        Raises UnreachableError if it is given up on, and otherwise what `ask` raises.
        """
        answer: Future[Answer] = Future()

        def work() -> None:
            try:
                answer.set_result(ask())
            except Exception as error:  # noqa: BLE001 (the caller gets it, whatever it is)
                answer.set_exception(error)

        threading.Thread(target=work, name="request", daemon=True).start()
        while not wait([answer], _POLL_S).done and not self.stop.is_set():
            continue
        if not wait([answer], LEFT_S).done:
            raise UnreachableError("the run was ended, and there was no answer yet")
        return answer.result()
