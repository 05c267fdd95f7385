"""Carries out one fault: intent, injection, healing, verification, each journalled at once."""

import threading
from collections.abc import Callable, Mapping

from chaos.errors import ChaosError
from chaos.faults import Fault, Finding, Recoverable
from chaos.journal import Journal
from chaos.plan import Step


class FaultRunner:
    """Carries out faults, from any thread, and knows which of them are not healed.

    `stop` ends every wait; a fault that is active then is healed at once.
    """

    def __init__(
        self, journal: Journal, progress: Callable[[str], None], stop: threading.Event
    ) -> None:
        self._journal = journal
        self._progress = progress
        self._stop = stop
        self._open: set[str] = set()
        self._away: dict[int, str] = {}
        self._claiming = threading.Lock()

    @property
    def unhealed(self) -> tuple[str, ...]:
        """The ids of the faults that are not healed."""
        return tuple(sorted(self._open))

    def claim(self, faults: Mapping[str, Fault]) -> str | None:
        """Reserve the brokers that faults (by id) will hit; `carry_out` releases them.

        A broker has one fault at a time, since the healing of one would undo the other. If a broker
        is not free, none is reserved, and the reason is returned.
        """
        wanted = {
            fault.details["broker"]: fault_id
            for fault_id, fault in faults.items()
            if "broker" in fault.details
        }
        with self._claiming:
            for broker in wanted:
                if holder := self._away.get(broker):
                    return f"broker-{broker} is not back from {holder}"
            self._away.update(wanted)
        return None

    def carry_out(self, step: Step, fault_id: str, fault: Fault) -> None:
        """Inject one fault, verify it, and heal it in any case."""
        try:
            self._carry_out(step, fault_id, fault)
        finally:
            self._away.pop(fault.details.get("broker", 0), None)

    def _carry_out(self, step: Step, fault_id: str, fault: Fault) -> None:
        what = f"{fault_id} {step.fault} {fault.target}"
        self._journal.write(
            "intent",
            fault_id=fault_id,
            fault=step.fault,
            kind=fault.kind,
            cause=step.cause,
            target=fault.target,
            group=fault.group,
            args={**step.planned.args, **fault.details},
            undo=dict(fault.undo) if fault.kind == "recoverable" else None,
        )
        if fault.kind == "recoverable":
            finding = self._break_and_heal(what, fault_id, fault)
        else:
            self._inject(what, fault_id, fault)
            finding = fault.verify(self._stop)
        verified, witness = finding.holds, finding.evidence
        self._journal.write("verified", fault_id=fault_id, verified=verified, witness=witness)
        self._progress(f"{what}: {'verified' if verified else 'NOT verified'}: {witness}")

    def _break_and_heal(self, what: str, fault_id: str, fault: Recoverable) -> Finding:
        self._open.add(fault_id)
        try:
            self._inject(what, fault_id, fault)
            self._stop.wait(fault.lasts_ms / 1000)
            broken = fault.verify()
        finally:
            self._heal(what, fault_id, fault)
        healed = fault.verify_healed(self._stop)
        return Finding(broken.holds and healed.holds, f"{broken.evidence}, then {healed.evidence}")

    def _inject(self, what: str, fault_id: str, fault: Fault) -> None:
        known = dict(fault.details)
        fault.inject()
        shown = {name: value for name, value in fault.details.items() if name not in known}
        self._journal.write("injected", fault_id=fault_id, **shown)
        self._progress(f"{what}: injected")

    def _heal(self, what: str, fault_id: str, fault: Recoverable) -> None:
        try:
            how = fault.heal()
        except ChaosError as error:
            self._journal.write("healed", fault_id=fault_id, healed=False, how=str(error))
            self._progress(f"{what}: NOT healed: {error}")
            raise
        self._open.discard(fault_id)
        self._journal.write("healed", fault_id=fault_id, healed=True, how=how)
        self._progress(f"{what}: healed: {how}")
