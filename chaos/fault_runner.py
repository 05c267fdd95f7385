"""Carries out one fault: intent, injection, healing, verification, each journalled at once."""

import threading
from collections.abc import Callable, Mapping

from chaos.errors import ChaosError, GoneError, WorkerGoneError
from chaos.journal import Journal
from chaos.plan import Step
from scenarios.faults import Fault
from scenarios.faults.finding import Finding


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
        self._away: dict[str, str] = {}
        self._claiming = threading.Lock()

    @property
    def unhealed(self) -> tuple[str, ...]:
        """The ids of the faults that are not healed."""
        return tuple(sorted(self._open))

    def claim(self, faults: Mapping[str, Fault]) -> str | None:
        """Reserve the brokers and members that faults (by id) will hit; `carry_out` releases them.

        Each has one fault at a time, since the healing of one would undo the other. If one is not
        free, none is reserved, and the reason is returned.
        """
        with self._claiming:
            for fault in faults.values():
                for one in _held_by(fault):
                    if holder := self._away.get(one):
                        return f"{one} is not back from {holder}"
            for fault_id, fault in faults.items():
                self._away.update(dict.fromkeys(_held_by(fault), fault_id))
        return None

    def give_up(self, step: Step, why: str) -> None:
        """Note that a fault was not injected: the verdict cannot count it."""
        planned = step.planned
        self._journal.write(
            "intent",
            fault_id=step.id,
            fault=step.fault,
            kind="one-shot",
            cause=step.cause,
            target=planned.hits,
            group=planned.group,
            args=dict(planned.args),
            undo=None,
        )
        self._journal.write("verified", fault_id=step.id, verified=False, witness=why)
        self._progress(f"{step.id} {step.fault} {planned.hits}: {why}")

    def carry_out(self, step: Step, fault_id: str, fault: Fault) -> None:
        """Inject one fault, verify it, and heal it in any case.

        It fails if its member is gone with a worker of the load; others are carried out.
        """
        held = _held_by(fault)
        try:
            self._carry_out(step, fault_id, fault)
        except WorkerGoneError as error:
            self._journal.write("failed", fault_id=fault_id, error=str(error))
            self._progress(f"{fault_id} {step.fault} {fault.hit.target}: FAILED: {error}")
        finally:
            for one in held:
                self._away.pop(one, None)

    def _carry_out(self, step: Step, fault_id: str, fault: Fault) -> None:
        what = f"{fault_id} {step.fault} {fault.hit.target}"
        self._journal.write(
            "intent",
            fault_id=fault_id,
            fault=step.fault,
            kind="one-shot" if fault.one_shot else "recoverable",
            cause=step.cause,
            target=fault.hit.target,
            group=fault.hit.group,
            args={**step.planned.args, **fault.hit.details},
            undo=None if fault.hit.undo is None else dict(fault.hit.undo),
        )
        if fault.one_shot:
            self._inject(what, fault_id, fault)
            finding = _seen(fault)
        else:
            finding = self._break_and_heal(what, fault_id, fault)
        verified, witness = finding.holds, finding.evidence
        self._journal.write("verified", fault_id=fault_id, verified=verified, witness=witness)
        self._progress(f"{what}: {'verified' if verified else 'NOT verified'}: {witness}")

    def _break_and_heal(self, what: str, fault_id: str, fault: Fault) -> Finding:
        self._open.add(fault_id)
        try:
            self._inject(what, fault_id, fault)
            self._stop.wait(fault.lasting_ms / 1000)
            broken = _seen(fault)
        finally:
            how = self._heal(what, fault_id, fault)
        if how == WorkerGoneError.left:
            return Finding(False, f"{broken.evidence}, then {how}")
        healed = fault.verify_healed()
        return Finding(broken.holds and healed.holds, f"{broken.evidence}, then {healed.evidence}")

    def _inject(self, what: str, fault_id: str, fault: Fault) -> None:
        known = dict(fault.hit.details)
        fault.inject()
        shown = {name: value for name, value in fault.hit.details.items() if name not in known}
        self._journal.write("injected", fault_id=fault_id, **shown)
        self._progress(f"{what}: injected")

    def _heal(self, what: str, fault_id: str, fault: Fault) -> str:
        try:
            how = fault.heal()
        except GoneError as error:
            how = error.left
        except ChaosError as error:
            self._journal.write("healed", fault_id=fault_id, healed=False, how=str(error))
            self._progress(f"{what}: NOT healed: {error}")
            raise
        self._open.discard(fault_id)
        self._journal.write("healed", fault_id=fault_id, healed=True, how=how)
        self._progress(f"{what}: healed: {how}")
        return how


def _held_by(fault: Fault) -> tuple[str, ...]:
    """Return the broker or the members that a fault has until it is healed."""
    if fault.one_shot:
        return ()
    return tuple(fault.hit.details.get("members", (fault.hit.target,)))


def _seen(fault: Fault) -> Finding:
    """Return what the witness says; one that cannot tell has not seen it."""
    try:
        return fault.verify()
    except ChaosError as error:
        return Finding(False, str(error))
