"""The controller: works the plan, and leaves nothing broken behind, however it ends.

The faults of the file go on beside each other, each in a thread of its own; the steps of one fault
happen one after the other. Those threads wait on one event alone, which ends every wait at once.
Whatever happens to the run goes through one queue to the thread that is in `run`: a queue, because
a signal handler may put into it at any moment, where taking a lock could wait forever.
"""

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import attrgetter
from queue import Empty, SimpleQueue

from chaos import targets
from chaos.clusters import Cluster
from chaos.errors import ChaosError
from chaos.faults import Fault, MemberRestart
from chaos.journal import Journal
from chaos.members import Members
from chaos.plan import Plan, Step
from chaos.witness import Witness
from scenarios import Experiment


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the plan went: undisturbed if `aborted` and `error` are None.

    `aborted` is the signal that ended it early, `error` what went wrong first. `unhealed` are the
    ids of the faults that are still there.
    """

    aborted: str | None
    error: Exception | None
    unhealed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Abort:
    signal: str


class _OneEnded:
    """A fault of the file is through with all its steps."""


class Controller:
    """Works a plan once, through the phases impact and recovery.

    `progress` is told what happens, a line at a time, from several threads.
    """

    def __init__(
        self,
        plan: Plan,
        experiment: Experiment,
        cluster: Cluster,
        members: Members,
        journal: Journal,
        *,
        progress: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._experiment = experiment
        self._groups = {group.name: group for group in experiment.workload.groups}
        self._members = members
        self._journal = journal
        self._progress = progress
        self._witness = Witness({broker.id: broker.group_log for broker in cluster.brokers})
        self._news: SimpleQueue[_Abort | _OneEnded | Exception] = SimpleQueue()
        self._stop = threading.Event()
        self._open: set[str] = set()
        self._running = 0
        self._began = 0.0
        self._aborted: str | None = None
        self._error: Exception | None = None

    def abort(self, signal: str) -> None:
        """End every wait and heal what is open; `run` returns when that is done.

        May be called at any time, from any thread and from a signal handler.
        """
        self._news.put(_Abort(signal))

    def run(self) -> Outcome:
        """Work the plan, and return once it is done or ended, with all healed that can be."""
        try:
            with self._members.watch(self._load_is_gone):
                self._work()
        except ChaosError as error:
            self._error = self._error or error
        return Outcome(self._aborted, self._error, tuple(sorted(self._open)))

    def _load_is_gone(self, error: Exception) -> None:
        self._journal.write("failed", fault_id=None, error=str(error))
        self._news.put(error)

    def _work(self) -> None:
        phases = self._experiment.phases
        first_ms = min((step.at_ms for step in self._plan.steps), default=0)
        in_order = sorted(self._plan.steps, key=attrgetter("origin"))
        threads = [
            threading.Thread(target=self._take_turns, args=(list(steps),), name=origin)
            for origin, steps in itertools.groupby(in_order, key=attrgetter("origin"))
        ]
        self._hear_the_news()
        self._journal.phase("impact")
        self._began = time.monotonic()
        try:
            for thread in threads:
                self._running += 1
                thread.start()
            self._go_on_until(self._began + (first_ms + phases.impact_ms) / 1000)
            if not self._stop.is_set():
                self._journal.phase("recovery")
                self._go_on_until(time.monotonic() + phases.recovery_ms / 1000)
        finally:
            self._stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            self._hear_the_news()

    def _go_on_until(self, deadline: float) -> None:
        """Deal with what happens, until the deadline has passed and every fault is through."""
        while not self._stop.is_set():
            left_s = deadline - time.monotonic()
            if left_s <= 0 and not self._running:
                return
            try:
                self._hear(self._news.get(timeout=left_s if left_s > 0 else None))
            except Empty:
                continue

    def _hear_the_news(self) -> None:
        while not self._news.empty():
            self._hear(self._news.get())

    def _hear(self, news: _Abort | _OneEnded | Exception) -> None:
        match news:
            case _OneEnded():
                self._running -= 1
            case _Abort(signal):
                self._stop.set()
                if self._aborted is None:
                    self._aborted = signal
                    self._journal.write("aborted", signal=signal)
            case error:
                self._stop.set()
                self._error = self._error or error

    def _take_turns(self, steps: Sequence[Step]) -> None:
        """Do the steps of one fault, each when it is due and the one before is through."""
        try:
            for step in steps:
                if self._stop.wait(self._began + step.at_ms / 1000 - time.monotonic()):
                    return
                self._fire(step)
        except Exception as error:  # noqa: BLE001 (whatever it is, `run` has to hear of it)
            self._news.put(error)
            self._journal.write("failed", fault_id=step.id, error=str(error))
        finally:
            self._news.put(_OneEnded())

    def _fire(self, step: Step) -> None:
        """Hit all targets of a step at the same time."""
        faults = self._faults(step)
        if not faults:
            whom = targets.in_words(step.target, step.group)
            self._progress(f"{step.id} {step.fault}: {whom} matches nobody, as allowed")
            self._journal.write("skipped", fault_id=step.id, why=f"{whom} matches nobody")
            return
        ids = [step.id] if len(faults) == 1 else [f"{step.id}.{i + 1}" for i in range(len(faults))]
        with ThreadPoolExecutor(len(faults)) as pool:
            list(pool.map(self._carry_out, itertools.repeat(step), ids, faults))

    def _faults(self, step: Step) -> list[Fault]:
        self._witness.poll()
        members = targets.resolve(
            step.target,
            step.group,
            self._experiment,
            self._witness.leader,
            allow_empty=step.allow_empty,
        )
        return [
            MemberRestart(
                member.name,
                member.group,
                heartbeat_interval_ms=self._groups[member.group].heartbeat_interval_ms,
                rebalance_timeout_ms=self._groups[member.group].max_poll_interval_ms,
                members=self._members,
                witness=self._witness,
            )
            for member in members
        ]

    def _carry_out(self, step: Step, fault_id: str, fault: Fault) -> None:
        """Inject one fault, verify it and heal it, come what may."""
        what = f"{fault_id} {step.fault} {fault.target}"
        self._journal.write(
            "intent",
            fault_id=fault_id,
            fault=step.fault,
            kind=fault.kind,
            cause=step.cause,
            target=fault.target,
            group=fault.group,
            args=dict(step.args),
            undo=dict(fault.undo),
        )
        self._open.add(fault_id)
        try:
            fault.inject()
            self._journal.write("injected", fault_id=fault_id)
            self._progress(f"{what}: injected")
            self._stop.wait(step.args["down_for_ms"] / 1000)
            broken = fault.verify()
        finally:
            self._heal(what, fault_id, fault)
        healed = fault.verify_healed(self._stop)
        verified = broken.holds and healed.holds
        witness = f"{broken.evidence}, then {healed.evidence}"
        self._journal.write("verified", fault_id=fault_id, verified=verified, witness=witness)
        self._progress(f"{what}: {'verified' if verified else 'NOT verified'}: {witness}")

    def _heal(self, what: str, fault_id: str, fault: Fault) -> None:
        try:
            how = fault.heal()
        except ChaosError as error:
            self._journal.write("healed", fault_id=fault_id, healed=False, how=str(error))
            self._progress(f"{what}: NOT healed: {error}")
            raise
        self._open.discard(fault_id)
        self._journal.write("healed", fault_id=fault_id, healed=True, how=how)
        self._progress(f"{what}: healed: {how}")
