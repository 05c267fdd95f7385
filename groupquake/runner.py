"""One run: cluster, load, steady state, chaos, teardown; what is left behind is the evidence.

Everything started is inside a context manager, and a signal becomes an exception (or, while faults
are open, an order to the controller): whichever way a run ends, nothing stays broken or running.
"""

import secrets
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from chaos.clusters import Cluster
from chaos.clusters.process import ProcessCluster
from chaos.controller import Controller, Outcome
from chaos.journal import Journal
from chaos.plan import Plan
from chaos.steady import await_steady
from groupquake import load_process
from groupquake.exits import AbortedError, NotSteadyError
from groupquake.kafka_admin import KafkaAdmin
from groupquake.signals import Signals
from scenarios import Experiment


@dataclass(frozen=True, slots=True)
class Runner:
    """Carries one experiment out, inside one run folder."""

    experiment: Experiment
    plan: Plan
    folder: Path
    kafka_home: Path | None
    ports: tuple[int, ...] | None
    keep: bool
    progress: Callable[[str], None]
    signals: Signals

    def run(self) -> Outcome:
        """Run the experiment; the evidence is complete when this returns.

        Raises ClusterError or NotSteadyError if it never got as far as the first fault, and
        AbortedError if a signal came before it.
        """
        with closing(Journal(self.folder / "journal.jsonl")) as journal:
            try:
                with self._cluster() as cluster:
                    outcome = self._load(cluster, journal)
                    if self.keep and outcome.aborted is None and outcome.error is None:
                        self._wait(cluster)
            except AbortedError as error:
                journal.write("aborted", signal=str(error))
                raise
            finally:
                journal.phase("end")
        return outcome

    def _cluster(self) -> ProcessCluster:
        cluster = self.experiment.cluster
        return ProcessCluster(
            # the mark by which its processes are known: another run's folder may have this name
            f"{self.folder.name}-{secrets.token_hex(4)}",
            self.folder / "brokers",
            cluster.version,
            cluster.brokers,
            cluster.config,
            progress=self.progress,
            kafka_home=self.kafka_home,
            ports=self.ports,
        )

    def _load(self, cluster: Cluster, journal: Journal) -> Outcome:
        """Run load and chaos on a cluster that is up."""
        admin = KafkaAdmin(cluster.bootstrap)
        admin.create_topics(self.experiment)
        journal.phase("formation")
        self.progress(f"starting {len(self.experiment.members())} members in Locust")
        with load_process.running(self.folder, cluster.bootstrap, self.experiment) as members:
            steady = await_steady(self.experiment, admin.probes(), journal, threading.Event())
            if not steady.ok:
                missed = "; ".join(str(probe) for probe in steady.probes if not probe.holds)
                raise NotSteadyError(f"steady state not met: {missed}; see locust.log")
            self.progress("steady state met")
            controller = Controller(
                self.plan, self.experiment, cluster, members, journal, progress=self.progress
            )
            with self.signals.ordering(lambda name: self._abort(controller, name)):
                outcome = controller.run()
            journal.phase("teardown")
            self.progress("closing the members")
        return outcome

    def _abort(self, controller: Controller, name: str) -> None:
        self.progress(f"{name}: healing and stopping")
        controller.abort(name)

    def _wait(self, cluster: Cluster) -> None:
        """Leave the cluster up for a look, until a signal ends it."""
        self.progress(f"the cluster stays up at {cluster.bootstrap}; end it with Ctrl-C")
        try:
            threading.Event().wait()
        except AbortedError:
            self.progress("stopping the cluster")
