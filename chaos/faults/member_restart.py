"""`member.restart`: a member closes, and starts again, if asked with another identity."""

import threading

from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import MemberEvidence
from chaos.faults.one_member import OneMember, unless_gone
from chaos.journal import now_ms
from chaos.members import SAME, Identity, Members
from scenarios import Experiment, MemberSpec, Static
from scenarios import faults as declared


class MemberRestart(OneMember):
    """Stops and starts one member over the control channel; the brokers' logs are the witness."""

    UNDO = "start"

    def __init__(
        self,
        member: str,
        group: str,
        lasts_ms: int,
        evidence: MemberEvidence,
        members: Members,
        identity: Identity = SAME,
    ) -> None:
        super().__init__(member, group, lasts_ms, evidence, members)
        self.details = dict(identity)
        self.undo = {**self.undo, **identity}
        self._identity = identity

    def inject(self) -> None:
        """Close the member; it is closed when this returns."""
        self._members.stop(self.target)
        self._began_ms = now_ms()

    def heal(self) -> str:
        """Start the member; it has not joined yet when this returns."""
        self._healing_ms = now_ms()
        return unless_gone(self._start)

    def _start(self) -> str:
        self._members.start(self.target, self._identity)
        return "started over the control channel"

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the brokers let the member join and gave it its assignment."""
        return self._evidence.rejoined(self._healing_ms, stop, self._identity)


def make(fault: declared.MemberRestart, context: FaultContext) -> tuple[MemberRestart, ...]:
    """Return the restart of each member that the fault hits now."""
    return tuple(
        MemberRestart(
            member.name,
            member.group,
            fault.down_for_ms,
            context.evidence(member),
            context.members,
            _identity(fault, member, context.experiment),
        )
        for member in context.targets_of(fault)
    )


def make_scaling(fault: declared.MembersScale, context: FaultContext) -> tuple[MemberRestart, ...]:
    """Return the stop and start of each member that goes as the group is scaled down."""
    group = [member for member in context.experiment.members() if member.group == fault.group]
    return tuple(
        MemberRestart(
            member.name, member.group, fault.lasts_ms, context.evidence(member), context.members
        )
        for member in group[fault.to :]
    )


def _identity(
    fault: declared.MemberRestart, member: MemberSpec, experiment: Experiment
) -> Identity:
    """Return the identity that a member restarts with; `{n}` is its position in its group."""
    match fault.becomes:
        case None:
            return SAME
        case Static(instance_id=pattern):
            group = [m.name for m in experiment.members() if m.group == member.group]
            return {"instance_id": pattern.replace("{n}", str(group.index(member.name)))}
        case "dynamic":
            return {"instance_id": None}
