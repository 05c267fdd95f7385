"""What faults act on and what they see, and how their targets are resolved when they fire."""

import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeVar

from chaos.broker_probe import BrokerProbe
from chaos.cluster_view import ClusterView
from chaos.clusters import Cluster
from chaos.clusters.volume import SlowDisk
from chaos.errors import ChaosError, ClusterError, TargetError, UnreachableError
from chaos.member_evidence import MemberEvidence, is_open
from chaos.members import Members
from chaos.removal import configure_group, remove_members, static_members
from chaos.tap.process import RunningTap
from chaos.tap.rules import Rule
from chaos.targets import brokers, resolve
from chaos.timing import ENDED_ANSWER_S, REMOTE_POLL_S, ROLE_S
from chaos.wire_rules import WireRule
from chaos.witness import Witness
from scenarios.faults.base import Finding, await_finding
from scenarios.setup import MemberSpec, Setup
from scenarios.targets import BrokerTarget, MemberTarget

Answer = TypeVar("Answer")


@dataclass(slots=True)
class FaultContext:
    """The experiment, and what acts on and observes its members and brokers.

    `stop` is set when the run is to end: it ends every wait. `tap` is None if members reach the
    brokers directly. `seed` is the plan's, `fault_id` the step's that fires.
    """

    experiment: Setup
    cluster: Cluster
    members: Members
    view: ClusterView
    stop: threading.Event
    tap: RunningTap | None = None
    seed: int = 0
    fault_id: str = ""
    witness: Witness = field(init=False)

    def __post_init__(self) -> None:
        """Follow the logs of the brokers."""
        self.witness = Witness({info.id: info.group_log for info in self.cluster.brokers})

    def of_step(self, fault_id: str) -> Self:
        """Return the same for one step of the plan."""
        mine = copy(self)
        mine.fault_id = fault_id
        return mine

    # Targets

    def targets_of(
        self, target: MemberTarget, group: str | None, *, allow_empty: bool
    ) -> tuple[MemberSpec, ...]:
        """Return the members that a target selects now, in the order of the file (`resolve`)."""
        self.witness.poll()
        leader = self.witness.leader
        return resolve(target, group, self.experiment, leader, allow_empty=allow_empty)

    def brokers_at(self, target: BrokerTarget) -> tuple[int, ...]:
        """Return the ids of the brokers that a target selects now.

        Raises ChaosError if they are not known before time is up or `stop` is set.
        """
        deadline = time.monotonic() + ROLE_S
        while True:
            try:
                return brokers(target, self.view)
            except ChaosError:
                if time.monotonic() > deadline or self.stop.wait(REMOTE_POLL_S):
                    raise

    # Witnesses

    def evidence(self, member: str) -> MemberEvidence:
        """Return the evidence of a member in the brokers' logs."""
        name = self.experiment.member_called[member].group
        group = next(one for one in self.experiment.workload.groups if one.name == name)
        return MemberEvidence(
            member,
            group.heartbeat_interval_ms,
            group.max_poll_interval_ms,
            self.witness,
            lambda broker: self.probe(broker).answers(),
        )

    def probe(self, broker: int) -> BrokerProbe:
        """Return what can be seen of a broker from outside."""
        return BrokerProbe(broker, self.cluster.brokers, self.view, self.witness)

    def by_broker(self, ask: Callable[[str], Answer]) -> dict[int, Answer]:
        """Return what each broker answers, by its address; without those that do not answer."""
        answers = {}
        for broker in self.cluster.brokers:
            with suppress(ChaosError):  # another fault has taken it down
                answers[broker.id] = ask(broker.address)
        return answers

    def await_finding(
        self, look: Callable[[], Finding | None], within_ms: int, missing: str
    ) -> Finding:
        """Look until there is a finding, time is up or the run is to end; errors are none."""

        def quietly() -> Finding | None:
            with suppress(ChaosError):
                return look()
            return None

        return await_finding(quietly, within_ms, missing, self.stop)

    def is_open(self, connection: str) -> bool:
        """Return whether this machine has the client's end of a connection that a broker names."""
        return is_open(connection)

    # Acting

    def unless_stopped(self, ask: Callable[[], Answer]) -> Answer:
        """Ask in another thread, and give up on it `ENDED_ANSWER_S` after `stop`.

        Raises UnreachableError if it is given up on, and otherwise what `ask` raises.
        """
        answer: Future[Answer] = Future()

        def work() -> None:
            try:
                answer.set_result(ask())
            except Exception as error:  # noqa: BLE001 (the caller gets it, whatever it is)
                answer.set_exception(error)

        threading.Thread(target=work, name="request", daemon=True).start()
        while not wait([answer], REMOTE_POLL_S).done and not self.stop.is_set():
            continue
        if not wait([answer], ENDED_ANSWER_S).done:
            raise UnreachableError("the run was ended, and there was no answer yet")
        return answer.result()

    def static_members(self, group: str) -> tuple[str, ...]:
        """Return the instance ids of a group. Raises TargetError if it has none now."""
        at, config = self.cluster.bootstrap, self.cluster.client_properties
        found = self.unless_stopped(lambda: static_members(at, group, config))
        if not found:
            raise TargetError(f"group {group} has no static members now; give it some, or name ids")
        return found

    def remove_members(self, group: str, instances: Sequence[str], client_id: str) -> int:
        """Remove static members with one request; return the error code of the whole answer."""
        at, config = self.cluster.bootstrap, self.cluster.client_properties
        send = partial(remove_members, at, group, instances, client_id=client_id, config=config)
        return self.unless_stopped(send).error

    def configure(self, group: str, configs: Mapping[str, str], client_id: str) -> int:
        """Set configs of a group; return the error code of the answer."""
        at, config = self.cluster.bootstrap, self.cluster.client_properties
        send = partial(configure_group, at, group, configs, client_id=client_id, config=config)
        return self.unless_stopped(send)

    def end_broker(self, broker: int) -> None:
        """Kill a broker of ours, if it still runs."""
        with suppress(ClusterError):
            self.cluster.act("kill", broker)

    def slow_disk(self, broker: int) -> SlowDisk:
        """Return the disk of a broker, whose writes can be made to wait."""
        return SlowDisk(self.cluster.volume(broker), f"broker-{broker}")

    def tap_for(self, fault: str) -> RunningTap:
        """Return the tap. Raises ChaosError if there is none."""
        if self.tap is None:
            raise ChaosError(f"{fault} needs the tap before the brokers; run with --tap")
        return self.tap

    def wire_rule(
        self, action: Any, member: str, nodes: tuple[int, ...] | None, keys: Mapping[str, Any]
    ) -> WireRule:
        """Return a rule of the tap for what a member sends to brokers, all without `nodes`."""
        spec = self.experiment.member_called[member]
        rule = Rule(
            action,
            client_ids=(member,),
            instance_ids=tuple(filter(None, [spec.instance_id])),
            brokers=nodes,
            seed=zlib.crc32(f"{self.seed}:{self.fault_id}:{member}".encode()),
            **keys,
        )
        logs = {info.id: info.group_log for info in self.cluster.brokers}
        return WireRule(self.tap_for(action), rule, logs)
