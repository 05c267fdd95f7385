"""One run: cluster, load, steady state, faults, teardown. Its evidence is in the run folder.

A context manager ends everything that is started. A signal becomes an exception, or, while faults
are open, a command to the controller. However a run ends, no fault stays open and nothing runs on.
"""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.clusters import Cluster, ClusterError
from chaos.clusters.factory import Place, make
from chaos.clusters.local import LocalCluster
from chaos.controller import Controller, Outcome
from chaos.interruptible_wait import wait_interruptibly
from chaos.journal import Journal
from chaos.members import Members
from chaos.plan import Plan
from chaos.steady import await_steady
from groupquake import load_process, machine_sampler, wire_script_process
from groupquake.exits import AbortedError, NotHealedError, NotSteadyError
from groupquake.kafka_admin import KafkaAdmin
from groupquake.machine_sampler import MachineSampler
from groupquake.signals import Signals
from groupquake.wire_script_process import WireScripts
from scenarios import Experiment

Load = Callable[[Path, str, Experiment], AbstractContextManager[Members]]
"""Runs the load of an experiment, given run folder and bootstrap servers; yields its members."""


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
    load: Load = load_process.running
    load_ended: Callable[[], None] = lambda: None
    """Called when the load ends, while the members close and the brokers stop."""

    def run(self) -> Outcome:
        """Run the experiment; the evidence is complete when this returns.

        Raises ClusterError or NotSteadyError if the run ends before the first fault, and
        AbortedError if a signal ends it before that.
        """
        with closing(Journal(self.folder / "journal.jsonl")) as journal:
            try:
                load_process.prepare_java_members(
                    self.folder, self.experiment, self.place.kafka_home, self.progress
                )
                with self._running_cluster(journal) as cluster:
                    outcome = self._load(cluster, journal)
                    if self.keep and outcome.aborted is None and outcome.error is None:
                        self._wait(cluster)
            except AbortedError as error:
                journal.write("aborted", signal=error.signal)
                raise
            finally:
                journal.phase("end")
        return outcome

    @contextmanager
    def _running_cluster(self, journal: Journal) -> Iterator[Cluster]:
        """Start the cluster, and end it after the block; signals wait until it is ended."""
        if (busy := machine_sampler.busy_line()) is not None:
            self.progress(busy)
        cluster = self._cluster()
        cluster.start()
        came: list[str] = []
        samples = self.folder / machine_sampler.FILE
        try:
            with MachineSampler(samples, lambda: cluster.process_ids):
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

    def _cluster(self) -> LocalCluster:
        cluster = self.experiment.cluster
        return make(
            self.place,
            # marks all processes of this run: another run's folder may have the same name
            f"{self.folder.name}-{secrets.token_hex(4)}",
            self.folder / "brokers",
            version=cluster.version,
            coordinator=self.experiment.coordinator,
            brokers=cluster.brokers,
            config=cluster.config,
            progress=self.progress,
        )

    def _load(self, cluster: Cluster, journal: Journal) -> Outcome:
        """Run the load and the faults on the running cluster."""
        admin = KafkaAdmin(cluster.bootstrap)
        admin.create_topics(self.experiment)
        journal.phase("formation")
        self.progress(f"starting {len(self.experiment.members())} members in Locust")
        with self.load(self.folder, cluster.bootstrap, self.experiment) as members:
            steady = await_steady(self.experiment, admin.probes(), journal, threading.Event())
            if not steady.ok:
                missed = "; ".join(str(probe) for probe in steady.probes if not probe.holds)
                raise NotSteadyError(f"steady state not met: {missed}; see locust.log")
            self.progress("steady state met")
            controller = Controller(
                self.plan,
                self.experiment,
                cluster,
                members,
                admin,
                journal,
                progress=self.progress,
            )
            with wire_script_process.running(
                self.folder,
                cluster.bootstrap,
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
            if not self.keep:
                self.load_ended()
            self.progress("closing the members")
        return outcome

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
        except AbortedError:
            self.progress("stopping the cluster")
