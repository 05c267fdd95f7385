"""One run: cluster, load, steady state, faults, teardown. Its evidence is in the run folder.

A context manager ends everything that is started. A signal becomes an exception, or, while faults
are open, a command to the controller. However a run ends, no fault stays open and nothing runs on.
"""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from chaos.cluster_view import ClusterView
from chaos.clusters import Cluster, ClusterError
from chaos.clusters.factory import Place, make
from chaos.controller import Controller, Outcome
from chaos.errors import ChaosError, LoadGoneError, TopicsError
from chaos.fault_runner import heal
from chaos.journal import Journal
from chaos.members import Members
from chaos.plan import Plan
from chaos.steady import Observation, await_steady
from chaos.tail import Tail
from chaos.tap.process import RunningTap, TapGoneError, TapSettings, running
from chaos.waiting import until
from groupquake import (
    external_resources,
    load_process,
    machine_sampler,
    open_runs,
    wire_script_process,
)
from groupquake.access import require_allowed
from groupquake.clients import programs
from groupquake.exits import AbortedError, NotHealedError, NotSteadyError
from groupquake.machine_sampler import MachineSampler
from groupquake.signals import Signals
from groupquake.timing import HISTORIES_S
from groupquake.wire_script_process import WireScripts
from loadtest.configs import closing_s, configs_in
from scenarios import Experiment
from scenarios.faults import NETWORKS

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
    progress: Callable[[str], None]
    signals: Signals
    tap: bool = False
    """Whether members and wire scripts reach the brokers through the tap only."""
    load: Load = load_process.running
    prepare_analysis: Callable[[], None] = lambda: None
    """Called shortly before the plan ends, and once more as the members close: what starts slowly
    starts meanwhile."""
    commanded: Callable[[Controller], None] = lambda _: None
    """Called with the controller: somebody who watches the run may command it, too."""
    judge: Callable[[], None] | None = None
    """Judges a run whose cluster is kept, which then runs until a signal; None ends the cluster.
    One that ended early is not kept."""

    def run(self) -> Outcome:
        """Run the experiment; the evidence is complete when this returns.

        Raises ClusterError or NotSteadyError if the run ends before the first fault, and
        AbortedError if a signal ends it before that.
        """
        with open_runs.begun(self.folder, self.place.kind) as (run_id, journal):
            try:
                programs.prepare(self.folder, self.experiment, self.place.kafka_home, self.progress)
                with self._running_cluster(run_id, journal) as (cluster, sampling):
                    outcome = self._load(cluster, journal)
                    if self.judge and outcome.aborted is None and outcome.error is None:
                        sampling.close()
                        self._keep(cluster, journal, self.judge)
                if outcome.aborted is not None and outcome.unhealed:
                    # brokers are healed by their end: on a full disk, say, none can start
                    left = [one.fault_id for one in heal(journal) if not one.healed]
                    outcome = replace(outcome, unhealed=tuple(left))
            except AbortedError as error:
                journal.write("aborted", signal=error.signal)
                raise
        return outcome

    @contextmanager
    def _running_cluster(
        self, run_id: str, journal: Journal
    ) -> Iterator[tuple[Cluster, ExitStack]]:
        """Start the cluster and the sampling of the machine, and end them after the block.

        Signals wait until the cluster is ended.
        """
        if (busy := machine_sampler.busy_line()) is not None:
            self.progress(busy)
        cluster = self._cluster(run_id)
        came: list[str] = []
        samples = self.folder / machine_sampler.FILE
        sampler = MachineSampler(samples, lambda: cluster.process_ids, self.signals.end)
        with ExitStack() as sampling:
            sampling.enter_context(sampler)
            cluster.start()
            try:
                yield cluster, sampling
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
        try:
            if deleted := external_resources.delete(journal):
                self.progress(f"deleted: {', '.join(deleted)}")
        except NotHealedError as error:
            raise NotHealedError(
                f"{error}; delete them with: groupquake heal {self.folder}"
            ) from error

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
        view = ClusterView(cluster.bootstrap, cluster.client_properties)
        try:
            if self.place.external is None:
                view.create_topics(self.experiment)
            else:
                external_resources.create(self.experiment, self.place.external, view, journal)
        except TopicsError as error:
            raise NotSteadyError(f"{error}; see brokers/*/server.log") from error
        journal.phase("formation")
        if not self.tap:
            return self._load_through(cluster, view, journal)
        outcome: Outcome | None = None
        settings = TapSettings(
            {info.id: info.address for info in cluster.brokers},
            self.folder.resolve() / "tap",
            {
                name: value
                for name, value in cluster.client_properties.items()
                if name.startswith(("security.", "ssl."))  # not who the clients are
            },
        )
        try:
            with running(settings) as tap:
                self.progress(f"the tap listens at {tap.bootstrap}")
                # the logs of brokers themselves cannot be read where they log no shutdown
                logs = None if cluster.logs_shutdowns else settings.folder
                seen = cluster.behind_tap(tap.bootstrap, logs)
                outcome = self._load_through(seen, view, journal, tap)
        except TapGoneError as error:
            if outcome is None:
                raise ClusterError(str(error)) from error
            journal.write("failed", fault_id=None, error=str(error))
            # what is unhealed or was aborted counts for more
            return replace(outcome, error=outcome.error or error)
        return outcome

    def _load_through(
        self, cluster: Cluster, view: ClusterView, journal: Journal, tap: RunningTap | None = None
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
                *(self.plan, self.experiment, cluster, members, view, journal),
                progress=self.progress,
                history=self.folder / "history.jsonl",
                tap=tap,
                ends_soon=self.prepare_analysis,
            )
            watching.enter_context(controller.watching())
            self.commanded(controller)
            self._await_steady(controller, view, journal)
            with wire_script_process.running(
                self.folder, bootstrap, self.experiment, self.plan.seed, journal, self.progress
            ) as wire_scripts:
                with (
                    self.signals.handling(lambda name: self._abort(controller, wire_scripts, name)),
                    self.signals.stopping(lambda: self._stop(controller, wire_scripts)),
                ):
                    outcome = controller.run()
                if outcome.error is not None:
                    wire_scripts.stop()
                with self.signals.stopping(wire_scripts.stop):
                    wire_scripts.finish()
            journal.phase("teardown")
            self.prepare_analysis()
            self.progress("closing the members")
            self._close(members, journal, outcome)
        return outcome

    def _await_steady(self, controller: Controller, view: ClusterView, journal: Journal) -> None:
        """Return once the steady state holds. Raises NotSteadyError, at once if members go."""
        history = self.folder / "history.jsonl"
        producing = Producing(history, self.experiment)
        steady = await_steady(
            *(self.experiment, view.probes(), journal, controller.lost), producing.observed
        )
        for outsider in programs.outsiders(self.experiment, view.client_ids):
            self.progress(outsider)
        losses = controller.losses[:3]
        if missed := losses or [str(probe) for probe in steady.probes if not probe.holds]:
            require_allowed(history, self.experiment.cluster.prefix or "")
            raise NotSteadyError(
                f"steady state not met: {'; '.join(missed)}; see locust.log, or what its clients"
                f" did: groupquake report {shlex.quote(str(self.folder))}"
            )
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

    def _abort(self, controller: Controller, wire_scripts: WireScripts, name: str) -> None:
        self.progress(f"{name}: healing and stopping")
        controller.abort(name)
        wire_scripts.stop()

    def _stop(self, controller: Controller, wire_scripts: WireScripts) -> None:
        self.progress("stop: healing what is open; what happened so far is judged")
        controller.stop()
        wire_scripts.stop()

    def _keep(self, cluster: Cluster, journal: Journal, judge: Callable[[], None]) -> None:
        """Judge the run, then keep the cluster running until a signal, even one that came before.

        The evidence ends first: what brokers log and the journal notes after that changes none.
        """
        came: list[str] = []

        def end(name: str) -> None:
            came.append(name)
            self.progress(f"{name}: stopping the cluster")

        with self.signals.handling(end):
            for broker, log_bytes in cluster.end_logs():
                journal.write("cut_short", broker=broker, log_bytes=log_bytes)
            journal.seal()
            judge()
            self.progress(f"the cluster keeps running at {cluster.bootstrap}; end it with Ctrl-C")
            until(lambda: came, inf)


class Producing:
    """What the history of a load tells of its producers, read as it grows.

    Producers are left out that send fewer than two records within the time of the steady state.
    """

    def __init__(self, history: Path, experiment: Experiment) -> None:
        within_s = experiment.steady_state.within_ms / 1000
        producers = configs_in(experiment).producers
        self._topics = {one.name: one.topic for one in producers if one.rate * within_s >= 2}
        self._tail = Tail(history)
        self._records: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._last: dict[str, str] = {}

    def observed(self) -> tuple[Observation, ...]:
        """Return for each producer whether brokers have acknowledged records of it."""
        for line in self._tail.appended():
            if '"producer"' in line:
                event = json.loads(line)
                name = event["member"]
                self._records[name] += event.get("records", 0)
                self._errors[name] += event.get("errors", 0)
                self._last[name] = event.get("error", self._last.get(name, "no answer"))
        return tuple(
            Observation(
                *(f"{name} produces", "records", topic, "some"),
                "some"
                if self._records[name]
                else f"none ({self._errors[name]} errors: {self._last.get(name, 'not started')})",
            )
            for name, topic in self._topics.items()
        )
