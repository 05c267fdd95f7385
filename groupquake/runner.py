"""One run: cluster, load, steady state, faults, teardown. Its evidence is in the run folder.

A context manager ends everything that is started. A signal becomes an exception, or, while faults
are open, a command to the controller. However a run ends, no fault stays open and nothing runs on.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from chaos.clusters import Cluster, ClusterError
from chaos.clusters.factory import Place, make
from chaos.clusters.tapped import TappedCluster
from chaos.controller import Controller, Outcome
from chaos.errors import ChaosError, LoadGoneError
from chaos.healing import heal
from chaos.interruptible_wait import wait_interruptibly
from chaos.journal import Journal
from chaos.members import Members
from chaos.plan import Plan
from chaos.steady import await_steady
from chaos.tap import RunningTap, TapGoneError
from groupquake import load_process, machine_sampler, open_runs, tap_process, wire_script_process
from groupquake.borrowed import GIVEN_BACK, Borrowed, require_allowed
from groupquake.clients import programs
from groupquake.exits import AbortedError, NotHealedError, NotSteadyError
from groupquake.kafka_admin import KafkaAdmin
from groupquake.machine_sampler import MachineSampler
from groupquake.producing import Producing
from groupquake.signals import Signals
from groupquake.wire_script_process import WireScripts
from loadtest.client_configs import closing_s
from scenarios import Experiment
from scenarios.faults import NETWORKS

HISTORIES_S = 40.0
"""How long the histories of workers may take to come once all members are closed."""

Load = Callable[[Path, str, Experiment, Mapping[str, str]], AbstractContextManager[Members]]
"""Runs the load of an experiment, given run folder, bootstrap servers and variables of its
environment; yields its members."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one experiment, in one run folder."""

    experiment: Experiment
    plan: Plan
    folder: Path
    place: Place
    keep: bool
    progress: Callable[[str], None]
    signals: Signals
    tap: bool = False
    """Whether members and wire scripts reach the brokers through the tap only."""
    load: Load = load_process.running
    prepare_analysis: Callable[[], None] = lambda: None
    """Called shortly before the plan ends, and once more as the members close: what starts slowly
    starts meanwhile."""
    _took: list[Borrowed] = field(default_factory=list)
    """What is to be deleted on a cluster of the user's."""

    def run(self) -> Outcome:
        """Run the experiment; the evidence is complete when this returns.

        Raises ClusterError or NotSteadyError if the run ends before the first fault, and
        AbortedError if a signal ends it before that.
        """
        with open_runs.begun(self.folder, self.place.kind) as (run_id, journal):
            try:
                programs.prepare(self.folder, self.experiment, self.place.kafka_home, self.progress)
                with self._running_cluster(run_id, journal) as cluster:
                    outcome = self._load(cluster, journal)
                    if self.keep and outcome.aborted is None and outcome.error is None:
                        self._wait(cluster)
                if outcome.aborted is not None and outcome.unhealed:
                    # brokers are healed by their end: on a full disk, say, none can start
                    left = [one.fault_id for one in heal(journal) if not one.healed]
                    outcome = replace(outcome, unhealed=tuple(left))
            except AbortedError as error:
                journal.write("aborted", signal=error.signal)
                raise
        return outcome

    @contextmanager
    def _running_cluster(self, run_id: str, journal: Journal) -> Iterator[Cluster]:
        """Start the cluster, and end it after the block; signals wait until it is ended."""
        if (busy := machine_sampler.busy_line()) is not None:
            self.progress(busy)
        cluster = self._cluster(run_id)
        came: list[str] = []
        samples = self.folder / machine_sampler.FILE
        with MachineSampler(samples, lambda: cluster.process_ids, self.signals.end):
            cluster.start()
            try:
                yield cluster
            finally:
                with self.signals.handling(came.append):
                    self._end(cluster, journal)
        if came:
            raise AbortedError(came[0])

    def _end(self, cluster: Cluster, journal: Journal) -> None:
        try:
            for broker, log_bytes in cluster.stop():
                journal.write("cut_short", broker=broker, log_bytes=log_bytes)
        except ClusterError as error:
            raise NotHealedError(
                f"NOT HEALED: the rest of the cluster: {error};"
                f" end it with: groupquake heal {self.folder}"
            ) from error
        self._give_back(journal)

    def _give_back(self, journal: Journal) -> None:
        """Delete what the run created on a cluster of the user's."""
        for borrowed in self._took:
            self.progress("deleting the groups and topics of this run")
            try:
                borrowed.give_back()
            except ChaosError as error:
                raise NotHealedError(
                    f"NOT HEALED: {error}; delete them with: groupquake heal {self.folder}"
                ) from error
            journal.write(GIVEN_BACK)

    def _cluster(self, run_id: str) -> Cluster:
        cluster = self.experiment.cluster
        return make(
            self.place,
            run_id,
            self.folder / "brokers",
            version=cluster.version,
            coordinator=self.experiment.coordinator,
            brokers=cluster.brokers,
            config=cluster.config,
            heap_mb=cluster.heap_mb,
            volumes="volume" in self.experiment.needs,
            networks=[kind for kind in NETWORKS if kind in self.experiment.needs],
            clocks="clock" in self.experiment.needs,
            progress=self.progress,
        )

    def _load(self, cluster: Cluster, journal: Journal) -> Outcome:
        """Run the load and the faults on the running cluster."""
        admin = KafkaAdmin(cluster.bootstrap, cluster.client_properties)
        if (target := self.place.external) is not None:
            borrowed = Borrowed.of(self.experiment, target)
            borrowed.take(journal, target.client_properties_file, admin.offsets_leaders())
            self._took.append(borrowed)
        admin.create_topics(self.experiment)
        journal.phase("formation")
        if not self.tap:
            return self._load_through(cluster, admin, journal)
        outcome: Outcome | None = None
        try:
            with tap_process.running(self.folder, cluster, self.progress) as tap:
                logs = None if self._has_logs else self.folder.resolve() / tap_process.FOLDER
                seen = TappedCluster(cluster, tap.bootstrap, logs)
                outcome = self._load_through(seen, admin, journal, tap)
        except TapGoneError as error:
            if outcome is None:
                raise ClusterError(str(error)) from error
            journal.write("failed", fault_id=None, error=str(error))
            # what is unhealed or was aborted counts for more
            return replace(outcome, error=outcome.error or error)
        return outcome

    @property
    def _has_logs(self) -> bool:
        """Whether the logs of the brokers themselves can be read."""
        return self.place.external is None or self.place.external.logs is not None

    def _load_through(
        self, cluster: Cluster, admin: KafkaAdmin, journal: Journal, tap: RunningTap | None = None
    ) -> Outcome:
        """Run the load and the faults on the cluster as clients see it."""
        bootstrap = cluster.bootstrap
        self.progress(f"starting {len(self.experiment.members())} members in Locust")
        security = load_process.security_of(self.experiment, tap=self.tap)
        with (
            self.load(self.folder, bootstrap, self.experiment, security) as members,
            ExitStack() as watching,
        ):
            controller = Controller(
                self.plan,
                self.experiment,
                cluster,
                members,
                admin,
                journal,
                progress=self.progress,
                history=self.folder / "history.jsonl",
                tap=tap,
                ends_soon=self.prepare_analysis,
            )
            watching.enter_context(controller.watching())
            self._await_steady(controller, admin, journal)
            with wire_script_process.running(
                self.folder,
                bootstrap,
                self.experiment,
                self.plan.seed,
                journal,
                self.progress,
            ) as wire_scripts:
                with (
                    self.signals.handling(lambda name: self._abort(controller, wire_scripts, name)),
                    self.signals.stopping(lambda: self._stop(controller, wire_scripts)),
                ):
                    outcome = controller.run()
                if wire_scripts is not None:
                    if outcome.error is not None:
                        wire_scripts.stop()
                    with self.signals.stopping(wire_scripts.stop):
                        wire_scripts.finish()
            journal.phase("teardown")
            self.prepare_analysis()
            self.progress("closing the members")
            self._close(members, journal, outcome)
        return outcome

    def _await_steady(self, controller: Controller, admin: KafkaAdmin, journal: Journal) -> None:
        """Return once the steady state holds. Raises NotSteadyError, at once if members go."""
        history = self.folder / "history.jsonl"
        producing = Producing(history, self.experiment)
        steady = await_steady(
            *(self.experiment, admin.probes(), journal, controller.lost), producing.observed
        )
        for outsider in programs.outsiders(self.experiment, admin.client_ids):
            self.progress(outsider)
        losses = controller.losses[:3]
        if missed := losses or [str(probe) for probe in steady.probes if not probe.holds]:
            require_allowed(history, self.experiment.cluster.prefix or "")
            raise NotSteadyError(f"steady state not met: {'; '.join(missed)}; see locust.log")
        self.progress("steady state met")

    def _close(self, members: Members, journal: Journal, outcome: Outcome) -> None:
        """Close the members; what is missing of the load then makes the verdict `unknown`."""
        try:
            missing = members.finish(HISTORIES_S + closing_s(len(self.experiment.members())))
        except LoadGoneError as error:
            missing = () if isinstance(outcome.error, LoadGoneError) else (str(error),)
        except ChaosError as error:
            missing = (str(error),)
        for what in missing:
            self.progress(what)
            journal.write("failed", fault_id=None, error=what)

    def _abort(self, controller: Controller, wire_scripts: WireScripts | None, name: str) -> None:
        self.progress(f"{name}: healing and stopping")
        controller.abort(name)
        if wire_scripts is not None:
            wire_scripts.stop()

    def _stop(self, controller: Controller, wire_scripts: WireScripts | None) -> None:
        self.progress("stop: healing what is open; what happened so far is judged")
        controller.stop()
        if wire_scripts is not None:
            wire_scripts.stop()

    def _wait(self, cluster: Cluster) -> None:
        """Keep the cluster running until a signal."""
        try:  # a signal may come as soon as the line is printed
            self.progress(f"the cluster keeps running at {cluster.bootstrap}; end it with Ctrl-C")
            wait_interruptibly(time.sleep)
        except AbortedError as error:
            self.progress(f"{error.signal}: stopping the cluster")
