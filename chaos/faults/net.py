"""Faults on the wire: a rule in the tap for each member that is hit, in force for a while."""

import threading
import zlib
from collections.abc import Mapping
from typing import Any, Literal

from chaos.errors import ChaosError
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.wire_evidence import WireEvidence, evidence_of
from chaos.tap import Rule, RunningTap, TapGoneError, has_ended
from scenarios import MemberSpec
from scenarios import faults as declared

Declared = (
    declared.NetPartition
    | declared.NetIsolate
    | declared.NetDelay
    | declared.NetDropAnswers
    | declared.NetHold
    | declared.NetDuplicate
)
_ENDS_S = 10.0
"""How long the tap may take to end after its run."""


class NetRule:
    """One rule of the tap for one member; `rule` in the journal is how the tap's lines name it."""

    kind: Literal["recoverable"] = "recoverable"
    details: Mapping[str, Any]
    undo: Mapping[str, Any]

    def __init__(
        self, member: MemberSpec, lasts_ms: int, rule: Rule, tap: RunningTap, evidence: WireEvidence
    ) -> None:
        self.target = member.name
        self.group = member.group
        self.lasts_ms = lasts_ms
        # `members` are those that no other fault may hit meanwhile: a rule goes beside any of them
        self.details = {"brokers": list(rule.brokers or ()), "members": []}
        self.undo = {
            "do": "end-tap-rule", "pid": tap.process_id, "started_at_ms": tap.started_at_ms,
        }  # fmt: skip
        self._rule = rule
        self._tap = tap
        self._evidence = evidence
        self._id: str | None = None

    def inject(self) -> None:
        """Put the rule in force."""
        self._id = self._tap.new_id()  # known also if the tap's answer does not come
        self._tap.add(self._id, self._rule)
        self.details = {**self.details, "rule": self._id}
        self._evidence.begin(self._id)

    def verify(self) -> Finding:
        """Return what the witness sees."""
        return self._evidence.broken()

    @classmethod
    def heal_from_journal(cls, undo: Mapping[str, Any]) -> str | None:
        """Return that the rule ended with the tap's process, once that is certain."""
        match undo:
            case {"do": "end-tap-rule", "pid": int(pid), "started_at_ms": int(started_ms)}:
                return _gone(pid, started_ms)
        return None

    def heal(self) -> str:
        """Remove the rule; what it held passes. Raises ChaosError if the tap does not answer."""
        if self._id is None:
            return "the rule was never in force"
        try:
            hits = self._tap.remove(self._id)
        except TapGoneError:
            return "the tap has ended, and its rules with it"
        return f"rule {self._id} removed, which hit {hits} requests"

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until what the witness saw is over."""
        return self._evidence.healed(stop)


def _gone(pid: int, started_ms: int) -> str:
    if not has_ended(pid, started_ms, _ENDS_S):
        raise ChaosError(
            f"the tap (process {pid}) still runs, with its rules; end it, then heal again"
        )
    return "the tap has ended, and its rules with it"


def make(fault_id: str, fault: Declared, context: FaultContext) -> tuple[NetRule, ...]:
    """Return the rule for each member that the fault hits now. Raises ChaosError without a tap."""
    tap = context.tap
    if tap is None:
        raise ChaosError(f"{fault.fault} needs the tap before the brokers; run with --tap")
    members = context.targets_of(fault)
    brokers = _brokers(fault, context)
    logs = {info.id: info.group_log for info in context.cluster.brokers}
    rules = []
    for number, member in enumerate(members):
        seed = zlib.crc32(f"{context.seed}:{fault_id}:{number}".encode())
        rule = _rule(fault, member, brokers, seed)
        evidence = evidence_of(rule, member.name, tap, logs, context.witness, context.stop)
        rules.append(NetRule(member, fault.for_ms, rule, tap, evidence))
    return tuple(rules)


def _brokers(fault: Declared, context: FaultContext) -> tuple[int, ...] | None:
    target = None if isinstance(fault, declared.NetIsolate) else fault.brokers
    return None if target is None else context.brokers_at(target)


def _rule(fault: Declared, member: MemberSpec, brokers: tuple[int, ...] | None, seed: int) -> Rule:
    common: dict[str, Any] = {
        "client_ids": (member.name,),
        "instance_ids": tuple(filter(None, [member.instance_id])),
        "brokers": brokers,
        "seed": seed,
    }
    match fault:
        case declared.NetPartition() | declared.NetIsolate():
            return Rule("partition", way=fault.way, **common)
        case declared.NetDelay():
            return Rule("delay", way=fault.way, latency_ms=fault.latency_ms,
                        jitter_ms=fault.jitter_ms, **common)  # fmt: skip
        case declared.NetHold():
            return Rule("hold", apis=fault.apis, **common)
        case declared.NetDropAnswers():
            return Rule("drop-answers", apis=fault.apis, count=fault.count,
                        probability=fault.probability, then=fault.then, **common)  # fmt: skip
        case declared.NetDuplicate():
            return Rule("duplicate", apis=fault.apis, count=fault.count,
                        probability=fault.probability, **common)  # fmt: skip
