"""One run: cluster, load, steady state, chaos, teardown; then the analysis of what it left behind.

Everything started is inside a context manager, and a signal becomes an exception (or, while faults
are open, an order to the controller): whichever way a run ends, nothing stays broken or running.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from chaos.clusters import Cluster
from chaos.clusters.process import ProcessCluster
from chaos.controller import Controller, Outcome
from chaos.journal import Journal
from chaos.plan import Plan
from chaos.steady import await_steady
from groupquake import load_process
from groupquake.exits import AbortedError, NotSteadyError
from groupquake.kafka_admin import KafkaAdmin
from scenarios import Experiment

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class Runner:
    """Carries one experiment out, inside one run folder."""

    experiment: Experiment
    plan: Plan
    folder: Path
    kafka_home: Path | None
    ports: tuple[int, ...] | None
    keep: bool
    progress: Callable[[str], None]
    controller: Controller | None = None

    def run(self) -> Outcome:
        """Run the experiment; the evidence is complete when this returns.

        Raises ClusterError or NotSteadyError if it never got as far as the first fault, and
        AbortedError if a signal came before it.
        """
        with self._signals(), closing(Journal(self.folder / "journal.jsonl")) as journal:
            try:
                with self._cluster() as cluster:
                    outcome = self._load(cluster, journal)
                    if self.keep:
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
            self.folder.name,
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
        count = len(self.experiment.members())
        self.progress(f"starting {count} members in Locust")
        with load_process.running(self.folder, cluster.bootstrap) as members:
            steady = await_steady(self.experiment, admin.probes(), journal, threading.Event())
            if not steady.ok:
                missed = "; ".join(str(probe) for probe in steady.probes if not probe.holds)
                raise NotSteadyError(f"steady state not met: {missed}; see locust.log")
            self.progress("steady state met")
            controller = Controller(
                self.plan, self.experiment, cluster, members, journal, progress=self.progress
            )
            self.controller = controller
            try:
                outcome = controller.run()
            finally:
                self.controller = None
            journal.phase("teardown")
            self.progress("closing the members")
        return outcome

    def _wait(self, cluster: Cluster) -> None:
        """Leave the cluster up for a look, until a signal ends it."""
        self.progress(f"the cluster stays up at {cluster.bootstrap}; end it with Ctrl-C")
        try:
            threading.Event().wait()
        except AbortedError:
            self.progress("stopping the cluster")

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Turn SIGINT and SIGTERM into a clean end; further ones change nothing."""
        seen: list[int] = []

        def handle(number: int, _: FrameType | None) -> None:
            if seen and self.controller is None and not self.keep:
                return
            seen.append(number)
            name = signal.Signals(number).name
            if self.controller is not None:
                self.progress(f"{name}: healing and stopping")
                self.controller.abort(name)
            else:
                raise AbortedError(name)

        before = {number: signal.signal(number, handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
