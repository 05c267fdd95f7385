"""`member.swap-instance`: two static members restart with each other's instance id (KIP-345)."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal

from chaos.errors import WorkerGoneError
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import MemberEvidence
from chaos.faults.one_member import GONE, WORKER_GONE, unless_gone
from chaos.journal import now_ms
from chaos.members import Members
from scenarios import faults as declared


class SwapInstance:
    """Restarts both over the control channel; the brokers' logs are the witness.

    `own` has the instance id of each, in the order of `evidence`; `stop` ends every wait.
    """

    kind: Literal["recoverable"] = "recoverable"
    details: Mapping[str, Any]
    undo: Mapping[str, Any]

    def __init__(
        self,
        own: Mapping[str, str],
        group: str,
        lasts_ms: int,
        evidence: Mapping[str, MemberEvidence],
        members: Members,
        stop: threading.Event,
    ) -> None:
        first, second = own
        self.target = f"{first}, {second}"
        self.group = group
        self.lasts_ms = lasts_ms
        self.details = {"members": [first, second]}
        self.undo = {"do": "give-ids", "instance_ids": dict(own)}
        self._own = own
        self._swapped = {first: own[second], second: own[first]}
        self._evidence = evidence
        self._members = members
        self._stop = stop
        self._began_ms = self._healing_ms = 0
        self._lost: tuple[str, ...] = ()

    def inject(self) -> None:
        """Close both, and start each with the id of the other; they have not joined yet."""
        self._began_ms = now_ms()
        restart_as(self._swapped, self._members)

    def verify(self) -> Finding:
        """Return whether the brokers let each join with the id of the other."""
        return self._joined(self._swapped, self._began_ms, self._stop)

    @classmethod
    def heal_from_journal(cls, undo: Mapping[str, Any]) -> str | None:
        """Return that its members ended with the load."""
        match undo:
            case {"do": "give-ids", "instance_ids": dict()}:
                return GONE
        return None

    def heal(self) -> str:
        """Close both, and start each with its own id; they have not joined yet."""
        self._healing_ms = now_ms()
        return unless_gone(self._give_back)

    def _give_back(self) -> str:
        self._lost = give_back(self._own, self._members)
        return _how(self._own, self._lost)

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until the brokers let each join with its own id; one that is lost does not."""
        ids = {member: one for member, one in self._own.items() if member not in self._lost}
        found = self._joined(ids, self._healing_ms, stop)
        lost = "".join(f"; {member}: lost with its worker" for member in self._lost)
        return Finding(found.holds and not lost, found.evidence + lost)

    def _joined(self, ids: Mapping[str, str], since_ms: int, stop: threading.Event) -> Finding:
        found = [
            (member, self._evidence[member].rejoined(since_ms, stop, {"instance_id": one}))
            for member, one in ids.items()
        ]
        evidence = "; ".join(f"{member}: {finding.evidence}" for member, finding in found)
        return Finding(all(finding.holds for _, finding in found), evidence)


def restart_as(instance_ids: Mapping[str, str], members: Members) -> None:
    """Close members, then start each with an instance id: no id is used twice in between."""
    for member in instance_ids:
        members.stop(member)
    for member, one in instance_ids.items():
        members.start(member, {"instance_id": one})


def give_back(own: Mapping[str, str], members: Members) -> tuple[str, ...]:
    """Restart both with their own ids; return the one that is lost with its worker, if one is.

    Raises WorkerGoneError if both are.
    """
    lost: dict[str, WorkerGoneError] = {}

    def each(do: Callable[[str], object]) -> None:
        for member in (one for one in own if one not in lost):
            try:
                do(member)
            except WorkerGoneError as error:
                lost[member] = error

    each(members.stop)
    each(lambda member: members.start(member, {"instance_id": own[member]}))
    if len(lost) == len(own):
        raise next(iter(lost.values()))
    return tuple(lost)


def _how(own: Mapping[str, str], lost: tuple[str, ...]) -> str:
    if not lost:
        return "both restarted with their own instance ids over the control channel"
    there = ", ".join(member for member in own if member not in lost)
    restarted = f"{there} restarted with its own instance id over the control channel"
    return f"{restarted}; {', '.join(lost)}: {WORKER_GONE}"


def make(fault: declared.SwapInstance, context: FaultContext) -> tuple[SwapInstance]:
    """Return the swap of the two members that the fault names."""
    pair = [m for m in context.experiment.members() if m.name in fault.members]
    return (
        SwapInstance(
            {member.name: str(member.instance_id) for member in pair},
            pair[0].group,
            fault.lasts_ms,
            {member.name: context.evidence(member) for member in pair},
            context.members,
            context.stop,
        ),
    )
