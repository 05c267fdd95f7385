"""The controller: carries out the plan, and heals every fault, however the run ends.

The faults of the file run in parallel, each in a thread of its own; the steps of one fault run one
after the other. Those threads wait on one event, which ends every wait at once. What happens is put
as a call into one queue, for the thread that is in `run`. It is a queue because a signal handler
may put into it at any moment; a lock could block there for ever.
"""

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from chaos.by_hand import lacked, steps_by_hand
from chaos.cluster_view import ClusterView
from chaos.clusters import Cluster
from chaos.errors import ChaosError, LoadGoneError, RefusedError
from chaos.fault_context import FaultContext
from chaos.fault_runner import FaultRunner
from chaos.journal import Journal
from chaos.members import Members
from chaos.plan import Plan, Step
from chaos.steady import await_condition
from chaos.tail import following
from chaos.tap.process import RunningTap
from chaos.timing import INTERRUPTIBLE_S, POLL_S, SOON_S
from kafka_protocol.printable import shortened
from scenarios import Experiment
from scenarios.faults import Fault


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the plan ended: as planned if `aborted` and `error` are None.

    `aborted` is the signal that ended it early, `error` the first error. `unhealed` are the ids of
    the faults that are not healed.
    """

    aborted: str | None
    error: Exception | None
    unhealed: tuple[str, ...]


class Controller:
    """Carries out a plan once, through the phases impact and recovery.

    `view` finds the brokers that have the roles of the plan, and whether they are in sync again.
    `progress` gets a line for each thing that happens, from several threads. `history` is the
    load's, `tap` what members reach the brokers through, if they do. `ends_soon` is called `SOON_S`
    before the plan ends, or as a shorter recovery begins; not at all where it is ended before.
    """

    def __init__(
        self,
        plan: Plan,
        experiment: Experiment,
        cluster: Cluster,
        members: Members,
        view: ClusterView,
        journal: Journal,
        *,
        progress: Callable[[str], None],
        history: Path,
        tap: RunningTap | None = None,
        ends_soon: Callable[[], None] = lambda: None,
    ) -> None:
        self._plan = plan
        self._ends_soon = ends_soon
        self._experiment = experiment
        self._phases = experiment.phases
        self._members = members
        self._journal = journal
        self._progress = progress
        self._history = history
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._stop = threading.Event()
        self._context = FaultContext(experiment, cluster, members, view, self._stop, tap, plan.seed)
        self._runner = FaultRunner(journal, progress, self._stop)
        self._running: set[threading.Thread] = set()
        self._began = 0.0
        self._refuses = "no fault can be injected yet: the steady state is not met"
        self._refusing = threading.Lock()
        self._one_by_hand = threading.Lock()
        self._given_up: set[str] = set()
        self.by_hand: list[Step] = []
        """The steps that were injected by hand, and those of their series."""
        self._aborted: str | None = None
        self._error: Exception | None = None
        self.losses: list[str] = []
        """What went of the load that had members, in words."""
        self.lost = threading.Event()
        """Set with the first of the losses."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside the block, journal what goes of the load; the end of all of it ends `run`."""
        with ExitStack() as watch:
            watch.enter_context(following(self._history, self._take_line))
            try:
                watch.enter_context(self._members.watch(self._load_ended))
            except LoadGoneError as error:
                self._load_ended(error)
            yield

    def abort(self, signal: str) -> None:
        """End every wait and heal every open fault; `run` returns when that is done.

        May be called at any time, from any thread and from a signal handler.
        """
        self._events.put(partial(self._abort, signal))

    def stop(self) -> None:
        """End the plan as `abort` does, but so that the run is analysed.

        May be called whenever `abort` may.
        """
        self._events.put(self._end_plan)

    def inject(self, asked: Mapping[str, Any]) -> tuple[Step, ...]:
        """Inject a fault by hand, spelled as in a file but for `at`; return its steps.

        The first happens now, the next ones of a series as they are due. Raises RefusedError, out
        of the impact phase as well, and ScenarioError; then nothing was done. May be called from
        any thread.
        """
        with self._one_by_hand:
            if self._refuses:
                raise RefusedError(self._refuses)
            now_ms = round((time.monotonic() - self._began) * 1000)
            number = 1 + len({step.origin for step in self.by_hand})
            wider, steps = steps_by_hand(self._experiment, asked, number, now_ms, self._plan.seed)
            faults = self._aimed_by_hand(steps[0])
            with self._refusing:
                if taken := self._refuses or self._runner.claim(faults):
                    raise RefusedError(taken)
                self._experiment = wider
                self.by_hand += steps
                self._begin(steps, faults)
            return steps

    def _aimed_by_hand(self, step: Step) -> dict[str, Fault]:
        """Return what `_aimed` does. Raises RefusedError if there is no target, or none can be."""
        if why := lacked(step.what, self._experiment.needs, self._context.tap):
            raise RefusedError(why)
        try:
            faults = self._aimed(step)
        except ChaosError as error:
            raise RefusedError(str(error)) from error
        if not faults:
            raise RefusedError(f"{step.planned.hits} matches nobody; choose another target")
        return faults

    def heal(self, fault_id: str) -> tuple[str, ...]:
        """Heal an open fault before its time, on all of its targets; return the ids.

        A series by hand ends with it. Raises RefusedError if it is not open.
        """
        self._given_up.add(fault_id.partition(".")[0])
        if not (healed := self._runner.heal(fault_id)):
            raise RefusedError(f"{fault_id} is not open: it is healed, or was never injected")
        return healed

    def heal_all(self) -> tuple[str, ...]:
        """Heal every open fault, and end the series by hand; return the ids."""
        self._given_up.update(thread.name for thread in tuple(self._running))
        return self._runner.heal()

    def run(self) -> Outcome:
        """Carry out the plan; return when it has ended and every fault is healed that can be.

        It is `watching` the load meanwhile.
        """
        try:
            self._work()
        except ChaosError as error:
            self._error = self._error or error
        return Outcome(self._aborted, self._error, self._runner.unhealed)

    def _load_ended(self, error: LoadGoneError) -> None:
        self._events.put(partial(self._fail, error, None))
        self._lose(str(error))

    def _lose(self, what: str) -> None:
        self.losses.append(what)
        self.lost.set()

    def _take_line(self, line: str) -> None:
        """Write that a worker or a member ended, if a line of the history says so."""
        if '"ended"' not in line and '"worker_lost"' not in line:
            return
        match fields := json.loads(line):
            case {"event": "ended", "member": member, "error": how}:
                gone, what = [member], f"{member}: {how}"
            case {"event": "worker_lost", "worker": worker, "members": gone}:
                what = f"worker lost: {worker}" + (f", with {shortened(gone)}" if gone else "")
            case _:
                return
        event, at_ms = fields.pop("event"), fields.pop("at_ms")
        with suppress(ChaosError):  # the journal itself may be what failed
            self._journal.write(event, seen_at_ms=at_ms, **fields)
        self._progress(what)
        if gone:
            self._lose(what)

    def _work(self) -> None:
        phases = self._phases
        first_ms = min((step.at_ms for step in self._plan.steps), default=0)
        in_order = sorted(self._plan.steps, key=attrgetter("origin"))
        self._handle_waiting()
        self._journal.phase("impact")
        self._began = time.monotonic()
        try:
            for _, steps in itertools.groupby(in_order, key=attrgetter("origin")):
                self._begin(list(steps))
            self._refuse("")
            self._handle_until(self._began + (first_ms + phases.impact_ms) / 1000)
            self._refuse("no fault can be injected any more: the impact phase is over")
            if not self._stop.is_set():
                self._journal.phase("recovery")
                ends = time.monotonic() + phases.recovery_ms / 1000
                self._handle_until(ends - SOON_S)
                if not self._stop.is_set():
                    self._ends_soon()
                self._handle_until(ends)
        finally:
            self._refuse("no fault can be injected any more: the run ends")
            self._end()
            for thread in tuple(self._running):
                if thread.ident is not None:
                    thread.join()
            self._handle_waiting()

    def _refuse(self, why: str) -> None:
        """Refuse faults by hand from now on, or accept them."""
        with self._refusing:
            self._refuses = why

    def _begin(self, steps: Sequence[Step], faults: Mapping[str, Fault] | None = None) -> None:
        """Run the steps of one fault in a thread; `faults` are those of the first, if it is due."""
        args = (steps, faults)
        thread = threading.Thread(target=self._run_steps, args=args, name=steps[0].origin)
        self._running.add(thread)
        thread.start()

    def _end(self) -> None:
        """End every wait, and heal what is open."""
        self._stop.set()
        self._runner.heal()

    def _handle_until(self, deadline: float) -> None:
        """Handle events until the deadline has passed and all faults of the file are done."""
        while not self._stop.is_set():
            left_s = deadline - time.monotonic()
            if left_s <= 0 and not self._running:
                return
            try:
                wait_s = min(left_s, INTERRUPTIBLE_S) if left_s > 0 else INTERRUPTIBLE_S
                self._events.get(timeout=wait_s)()
            except Empty:
                continue

    def _handle_waiting(self) -> None:
        while not self._events.empty():
            self._events.get()()

    def _end_plan(self) -> None:
        self._end()
        self._journal.write("stopped")

    def _abort(self, signal: str) -> None:
        self._end()
        if self._aborted is None:
            self._aborted = signal
            self._journal.write("aborted", signal=signal)

    def _fail(self, error: Exception, fault_id: str | None) -> None:
        self._end()
        self._error = self._error or error
        with suppress(ChaosError):  # the journal itself may be what failed
            self._journal.write("failed", fault_id=fault_id, error=str(error))

    def _run_steps(self, steps: Sequence[Step], faults: Mapping[str, Fault] | None) -> None:
        """Run the steps of one fault, each when it is due and the one before is done.

        A fault by hand that breaks down ends no run: the verdict cannot count it.
        """
        try:
            for step in steps:
                if faults is None:
                    if self._stop.wait(self._began + step.at_ms / 1000 - time.monotonic()):
                        return
                    if step.by_hand and step.origin in self._given_up:
                        return
                    self._fire(step)
                else:
                    self._carry_out(step, faults)
                    faults = None
        except Exception as error:  # noqa: BLE001 (`run` has to know of any error)
            if step.by_hand and isinstance(error, ChaosError):
                self._progress(f"{step.id} {step.fault}: FAILED: {error}")
                with suppress(ChaosError):  # the journal itself may be what failed
                    self._journal.write("failed", fault_id=step.id, error=str(error))
            else:
                self._events.put(partial(self._fail, error, step.id))
        finally:
            # in the thread of `run`, so that it is not waiting for the next event
            self._events.put(partial(self._running.discard, threading.current_thread()))

    def _fire(self, step: Step) -> None:
        """Hit all targets of a step at the same time, once its condition holds."""
        if step.what.when is not None:
            met = await_condition(step.what.when, self._context)
            if met is None:
                return
            if not met.holds:
                self._runner.give_up(step, met.evidence)
                return
            self._progress(f"{step.id} {step.fault}: {met.evidence}")
        if faults := self._ready(step):
            self._carry_out(step, faults)

    def _carry_out(self, step: Step, faults: Mapping[str, Fault]) -> None:
        with ThreadPoolExecutor(len(faults)) as pool:
            carry_out = partial(self._runner.carry_out, step)
            list(pool.map(carry_out, faults.keys(), faults.values()))

    def _aimed(self, step: Step) -> dict[str, Fault]:
        """Return the acting faults of a step by their ids, one for each target that it has now."""
        faults = step.what.aimed(self._context.of_step(step.id))
        several = [f"{step.id}.{i + 1}" for i in range(len(faults))]
        return dict(zip(several if len(faults) > 1 else [step.id], faults, strict=False))

    def _ready(self, step: Step) -> dict[str, Fault]:
        """Return the acting faults of a step by their ids, once no other fault holds their brokers.

        The result is empty if no target matches and the fault allows that, or if the run ends.
        """
        announced = None
        while True:
            faults = self._aimed(step)
            if not faults:
                hits = step.planned.hits
                self._progress(f"{step.id} {step.fault}: {hits} matches no member, as allowed")
                self._journal.write("skipped", fault_id=step.id, why=f"{hits} matches nobody")
            blocked = self._runner.claim(faults)
            if blocked is None:
                return {} if self._stop.is_set() else faults
            if blocked != announced:
                self._progress(f"{step.id} {step.fault}: waits: {blocked}")
                announced = blocked
            if self._stop.wait(POLL_S):
                return {}
