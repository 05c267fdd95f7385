"""One run: cluster, load, steady state, chaos, teardown; what is left behind is the evidence.

Everything started is inside a context manager, and a signal becomes an exception (or, while faults
are open, an order to the controller): whichever way a run ends, nothing stays broken or running.
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
from groupquake.wire_script_process import Stories
from scenarios import Experiment

Load = Callable[[Path, str, Experiment], AbstractContextManager[Members]]
"""Runs an experiment's load: run folder and bootstrap servers in, the way to its members out."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Carries one experiment out, inside one run folder."""

    experiment: Experiment
    plan: Plan
    folder: Path
    place: Place
    keep: bool
    progress: Callable[[str], None]
    signals: Signals
    load: Load = load_process.running

    def run(self) -> Outcome:
        """Run the experiment; the evidence is complete when this returns.

        Raises ClusterError or NotSteadyError if it never got as far as the first fault, and
        AbortedError if a signal came before it.
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
        """Start the cluster, and leave nothing of it behind: signals wait until that is done."""
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
            with self.signals.ordering(came.append):
                self._end(cluster, journal)
        if came:
            raise AbortedError(came[0])

    def _end(self, cluster: Cluster, journal: Journal) -> None:
        try:
            for broker, log_bytes in cluster.stop():
                journal.write("cut_short", broker=broker, log_bytes=log_bytes)
        except ClusterError as error:
            raise NotHealedError(
                f"NOT HEALED: what is left of the cluster: {error};"
                f" end it with: groupquake heal {self.folder}"
            ) from error

    def _cluster(self) -> LocalCluster:
        cluster = self.experiment.cluster
        return make(
            self.place,
            # the mark by which all of it is known: another run's folder may have this name
            f"{self.folder.name}-{secrets.token_hex(4)}",
            self.folder / "brokers",
            version=cluster.version,
            coordinator=self.experiment.coordinator,
            brokers=cluster.brokers,
            config=cluster.config,
            progress=self.progress,
        )

    def _load(self, cluster: Cluster, journal: Journal) -> Outcome:
        """Run load and chaos on a cluster that is up."""
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
            with wire_script_process.telling(
                self.folder,
                cluster.bootstrap,
                self.experiment,
                self.plan.seed,
                journal,
                self.progress,
            ) as stories:
                with (
                    self.signals.ordering(lambda name: self._abort(controller, stories, name)),
                    self.signals.stopping(lambda: self._stop(controller, stories)),
                ):
                    outcome = controller.run()
                if stories is not None:
                    if outcome.error is not None:
                        stories.stop()
                    with self.signals.stopping(stories.stop):
                        stories.finish()
            journal.phase("teardown")
            self.progress("closing the members")
        return outcome

    def _abort(self, controller: Controller, stories: Stories | None, name: str) -> None:
        self.progress(f"{name}: healing and stopping")
        controller.abort(name)
        if stories is not None:
            stories.stop()

    def _stop(self, controller: Controller, stories: Stories | None) -> None:
        self.progress("stop: healing what is open; what happened so far is judged")
        controller.stop()
        if stories is not None:
            stories.stop()

    def _wait(self, cluster: Cluster) -> None:
        """Leave the cluster up for a look, until a signal ends it."""
        self.progress(f"the cluster stays up at {cluster.bootstrap}; end it with Ctrl-C")
        try:
            wait_interruptibly(time.sleep)
        except AbortedError:
            self.progress("stopping the cluster")
