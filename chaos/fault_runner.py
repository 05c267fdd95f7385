"""Carries out one fault: intent, injection, healing, verification, each journalled at once.

A run that died before it could heal its faults is healed from the journal alone.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chaos.errors import ChaosError, GoneError, LoadGoneError, WorkerGoneError
from chaos.external.cluster import run_again
from chaos.journal import Entry, Journal, open_faults, read
from chaos.plan import Step
from chaos.tap.process import TapGoneError, has_ended
from chaos.timing import POLL_S, TAP_ENDED_S
from scenarios.faults import FAULTS, Fault
from scenarios.faults.base import Finding, Hit


@dataclass(slots=True, eq=False)
class FaultRunner:
    """Carries out faults, from any thread, and knows which of them are not healed.

    `stop` ends every wait. With the call of `heal` that follows, what is active is healed at once.
    """

    _journal: Journal
    _progress: Callable[[str], None]
    _stop: threading.Event
    _open: dict[str, threading.Event] = field(default_factory=dict)
    _away: dict[str, str] = field(default_factory=dict)
    _claiming: threading.Lock = field(default_factory=threading.Lock)

    @property
    def unhealed(self) -> tuple[str, ...]:
        """The ids of the faults that are not healed."""
        return tuple(sorted(self._open))

    def heal(self, fault_id: str = "") -> tuple[str, ...]:
        """Let a fault be healed before its time, on all of its targets, or all; return the ids.

        It is healed once its witness has seen it, or its time is over; at once after `stop`.
        """
        ends = {
            one: event
            for one, event in tuple(self._open.items())
            if f"{one}.".startswith(fault_id and f"{fault_id}.")
        }
        for event in ends.values():
            event.set()
        return tuple(sorted(ends))

    def claim(self, faults: Mapping[str, Fault]) -> str | None:
        """Reserve the brokers and members that faults (by id) will hit; `carry_out` releases them.

        Each has one fault at a time, since the healing of one would undo the other. If one is not
        free, none is reserved, and the reason is returned.
        """
        with self._claiming:
            for fault in faults.values():
                for one in fault.held:
                    if holder := self._away.get(one):
                        return f"{one} is not back from {holder}"
            for fault_id, fault in faults.items():
                self._away.update(dict.fromkeys(fault.held, fault_id))
        return None

    def give_up(self, step: Step, why: str) -> None:
        """Note that a fault was not injected: the verdict cannot count it."""
        hit = Hit(step.planned.hits, step.planned.group)
        self._intend(step, step.id, "one-shot", hit)
        self._verified(f"{step.id} {step.fault} {hit.target}", step.id, Finding(False, why))

    def carry_out(self, step: Step, fault_id: str, fault: Fault) -> None:
        """Inject one fault, verify it, and heal it in any case.

        It fails if its member is gone with a worker of the load; others are carried out.
        """
        held = fault.held
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
        self._intend(step, fault_id, "one-shot" if fault.one_shot else "recoverable", fault.hit)
        if fault.one_shot:
            self._inject(what, fault_id, fault)
            finding = _seen(fault)
        else:
            finding = self._break_and_heal(what, fault_id, fault)
        self._verified(what, fault_id, finding)

    def _intend(self, step: Step, fault_id: str, kind: str, hit: Hit) -> None:
        named = {"fault_id": fault_id, "fault": step.fault, "kind": kind, "cause": step.cause}
        where = {"target": hit.target, "group": hit.group}
        args = {**step.planned.args, **hit.details}
        self._journal.write("intent", **named, **where, args=args, undo=hit.undo)

    def _verified(self, what: str, fault_id: str, finding: Finding) -> None:
        holds, witness = finding.holds, finding.evidence
        self._journal.write("verified", fault_id=fault_id, verified=holds, witness=witness)
        if not holds:
            self._progress(f"{what}: NOT verified: {witness}")

    def _break_and_heal(self, what: str, fault_id: str, fault: Fault) -> Finding:
        ends = self._open[fault_id] = threading.Event()
        if self._stop.is_set():
            ends.set()
        try:
            self._inject(what, fault_id, fault)
            broken = self._lasting(fault, ends)
        finally:
            how = self._heal(what, fault_id, fault)
        if how == WorkerGoneError.left:
            return Finding(False, f"{broken.evidence}, then {how}")
        healed = fault.verify_healed()
        return Finding(broken.holds and healed.holds, f"{broken.evidence}, then {healed.evidence}")

    def _lasting(self, fault: Fault, ends: threading.Event) -> Finding:
        """Wait until a fault is to be healed; return what its witness says."""
        deadline = time.monotonic() + fault.lasting_ms / 1000
        ends.wait(fault.lasting_ms / 1000)
        broken = _seen(fault)
        while not broken.holds and time.monotonic() < deadline and not self._stop.wait(POLL_S):
            broken = _seen(fault)
        return broken

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
        self._open.pop(fault_id, None)
        self._journal.write("healed", fault_id=fault_id, healed=True, how=how)
        self._progress(f"{what}: healed")
        return how


def _seen(fault: Fault) -> Finding:
    """Return what the witness says; one that cannot tell has not seen it."""
    try:
        return fault.verify()
    except GoneError:  # no later fault would act either
        raise
    except ChaosError as error:
        return Finding(False, str(error))


class Healed(NamedTuple):
    """Whether one open fault was healed, and how, or why not."""

    fault_id: str
    healed: bool
    how: str


def heal(journal: Journal) -> tuple[Healed, ...]:
    """Undo every fault that the journal leaves open, the latest first, and note it there.

    The load and our brokers have ended by then: nothing of them is healed one by one. Calling
    `heal` twice does no harm. Raises ChaosError if the journal cannot be read.
    """
    results = tuple(map(_undo, reversed(open_faults(read(journal.path)))))
    for result in results:
        journal.write("healed", **result._asdict())
    return results


def _undo(intent: Entry) -> Healed:
    fault_id, undo = intent["fault_id"], intent.get("undo")
    try:
        how = heal_from_journal(undo or {})
    except ChaosError as error:
        return Healed(fault_id, False, str(error))
    if how is None:
        return Healed(fault_id, False, f"this version does not know how to undo {undo}")
    return Healed(fault_id, True, how)


def heal_from_journal(undo: Mapping[str, Any]) -> str | None:
    """Carry out an `undo` of the journal of a run that died; return how, None if no fault has it.

    Members are gone with the load, rules with the tap, and our brokers end with their cluster. What
    a user's hook did to a broker is undone by another. Raises ChaosError if it fails.
    """
    if undo.get("do") not in {kind.undo_name for kind in FAULTS.values() if not kind.one_shot}:
        return None
    match undo:
        case {"broker": int(broker), "hook": dict(hook)}:
            return run_again(broker, hook)
        case {"broker": int(broker)}:
            return f"nothing to undo: broker {broker} ends with all that is left of its cluster"
        case {"member": str()} | {"instance_ids": dict()}:
            return LoadGoneError.left
        case {"pid": int(pid), "started_at_ms": int(started_ms)}:
            if has_ended(pid, started_ms, TAP_ENDED_S):
                return TapGoneError.left
            raise ChaosError(
                f"the tap (process {pid}) still runs, with its rules; end it, then heal again"
            )
    return None
