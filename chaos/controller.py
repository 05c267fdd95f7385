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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from queue import Empty, SimpleQueue

from chaos.cluster_view import ClusterView
from chaos.clusters import Cluster
from chaos.errors import ChaosError, LoadGoneError
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
        self._phases = experiment.phases
        self._members = members
        self._journal = journal
        self._progress = progress
        self._history = history
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._stop = threading.Event()
        self._context = FaultContext(experiment, cluster, members, view, self._stop, tap, plan.seed)
        self._runner = FaultRunner(journal, progress, self._stop)
        self._running = 0
        self._began = 0.0
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
        threads = [
            threading.Thread(target=self._run_steps, args=(list(steps),), name=origin)
            for origin, steps in itertools.groupby(in_order, key=attrgetter("origin"))
        ]
        self._handle_waiting()
        self._journal.phase("impact")
        self._began = time.monotonic()
        try:
            for thread in threads:
                self._running += 1
                thread.start()
            self._handle_until(self._began + (first_ms + phases.impact_ms) / 1000)
            if not self._stop.is_set():
                self._journal.phase("recovery")
                ends = time.monotonic() + phases.recovery_ms / 1000
                self._handle_until(ends - SOON_S)
                if not self._stop.is_set():
                    self._ends_soon()
                self._handle_until(ends)
        finally:
            self._stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            self._handle_waiting()

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
        self._stop.set()
        self._journal.write("stopped")

    def _abort(self, signal: str) -> None:
        self._stop.set()
        if self._aborted is None:
            self._aborted = signal
            self._journal.write("aborted", signal=signal)

    def _fail(self, error: Exception, fault_id: str | None) -> None:
        self._stop.set()
        self._error = self._error or error
        with suppress(ChaosError):  # the journal itself may be what failed
            self._journal.write("failed", fault_id=fault_id, error=str(error))

    def _done(self) -> None:
        """Note that all steps of a fault of the file are done."""
        self._running -= 1

    def _run_steps(self, steps: Sequence[Step]) -> None:
        """Run the steps of one fault, each when it is due and the one before is done."""
        try:
            for step in steps:
                if self._stop.wait(self._began + step.at_ms / 1000 - time.monotonic()):
                    return
                self._fire(step)
        except Exception as error:  # noqa: BLE001 (`run` has to know of any error)
            self._events.put(partial(self._fail, error, step.id))
        finally:
            self._events.put(self._done)

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
        faults = self._ready(step)
        if not faults:
            return
        with ThreadPoolExecutor(len(faults)) as pool:
            carry_out = partial(self._runner.carry_out, step)
            list(pool.map(carry_out, faults.keys(), faults.values()))

    def _ready(self, step: Step) -> dict[str, Fault]:
        """Return the acting faults of a step by their ids, once no other fault holds their brokers.

        The result is empty if no target matches and the fault allows that, or if the run ends.
        """
        announced = None
        while True:
            faults = step.what.aimed(self._context.of_step(step.id))
            if not faults:
                hits = step.planned.hits
                self._progress(f"{step.id} {step.fault}: {hits} matches no member, as allowed")
                self._journal.write("skipped", fault_id=step.id, why=f"{hits} matches nobody")
            ids = [f"{step.id}.{i + 1}" for i in range(len(faults))]
            by_id: dict[str, Fault] = dict(
                zip(ids if len(faults) > 1 else [step.id], faults, strict=False)
            )
            blocked = self._runner.claim(by_id)
            if blocked is None:
                return {} if self._stop.is_set() else by_id
            if blocked != announced:
                self._progress(f"{step.id} {step.fault}: waits: {blocked}")
                announced = blocked
            if self._stop.wait(POLL_S):
                return {}
