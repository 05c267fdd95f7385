"""A run folder: its experiment, its environment and its fault journal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf
from pathlib import Path
from typing import Any, Self

import msgspec

from kafka_protocol.coordinator_lines import GRAMMARS, Grammar, grammar_of
from kafka_protocol.log_line import is_numbered
from kafka_protocol.releases import FIRST_WITHOUT_ZOOKEEPER, RELEASE, number
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.timing import RECONNECTS_MS
from reports.judgement.errors import EvidenceError
from reports.judgement.log.log_places import LOG, Level, log_of
from reports.judgement.log.parsing import Parser
from reports.judgement.run import forecast, history, machine_log
from reports.judgement.run.disturbance import (
    Deletions,
    Disturbance,
    Skew,
    deletions,
    of_broker,
    on_right_clock,
    skews,
)
from reports.judgement.run.faults import JOURNAL, RunFaults
from reports.judgement.run.journal import PHASES, Account, Entry, Form, lacks, phase_of, span
from scenarios import Experiment, ScenarioError, load

HISTORY = history.FILE  # the client history
MACHINE = "machine.jsonl"  # what `groupquake.machine_sampler` noted; older runs have none
GROWTH = "topic.add-partitions"
BORROWED = "borrowed"  # the event of the journal that names what the run created
ENVIRONMENT: Form = {
    "kafka_version": str,
    "coordinator": str,
    "seed": int,
    "broker_config": dict,
    "repeat_command": str,
    "groupquake_version": str | None,
    "python_version": str | None,
    "platform": str | None,
    "machine": dict | None,
    "clients": dict | None,
    "broker_ids": list | None,
    "unsure": list | None,
}


def logs_bytes(folder: Path) -> int:
    """Return the size of all logs in a run folder of this machine, rotated ones too."""
    return sum(log.stat().st_size for log in folder.glob(f"*/*/{LOG}*") if log.is_file())


@dataclass(frozen=True, slots=True)
class Outside:
    """A cluster of the user's.

    `prefix` is what the names of the run's groups begin with: others may use the cluster, too.
    `coordinated_before` is the broker (id) of each partition of `__consumer_offsets` before the
    run, and when it was asked, in ms: no line of the run tells that it has loaded the partition.
    `unsure` says in words what is not certain, `assumed` whether an assumption may be wrong that
    answers depend on: then a difference proves nothing.
    """

    prefix: str
    coordinated_before: Mapping[int, tuple[str, float]]
    unsure: tuple[str, ...]
    assumed: bool

    @classmethod
    def of(
        cls, environment: Mapping[str, Any], journal: Sequence[Entry], prefix: str | None
    ) -> Self | None:
        """Read it; None for a cluster of groupquake's own."""
        if "cluster_id" not in environment:
            return None
        leaders = {
            partition: (str(broker), entry["at_ms"])
            for entry in journal
            if entry["event"] == BORROWED
            for partition, broker in enumerate(entry["offsets_leaders"])
        }
        unsure = tuple(map(str, environment.get("unsure") or ()))
        return cls(prefix or "", leaders, unsure, environment.get("assumed") is True)


@dataclass(frozen=True)
class RunFolder(RunFaults):
    """Reads the files of a run; every problem is an `EvidenceError` that names the file."""

    @property
    def has_history(self) -> bool:
        """Whether there is a client history."""
        return self._size(HISTORY) is not None

    @property
    def lost_history(self) -> bool:
        """Whether the run wrote a client history that is gone; older runs do not tell."""
        return self.environment.get("client_history") is True and not self.has_history

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that was run."""
        try:
            return load(self._there("experiment.yaml"))
        except ScenarioError as error:
            raise EvidenceError("; ".join(error.args)) from error

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Seed, versions, broker settings, git state, and the command that repeats the run."""
        found = self._json("environment.json", ENVIRONMENT)
        if not RELEASE.fullmatch(found["kafka_version"]):
            raise self._altered(f"kafka_version: {found['kafka_version']!r} is no release")
        return found

    @cached_property
    def settings(self) -> Settings:
        """The broker settings that the protocol depends on."""
        try:
            return Settings.from_properties(self.environment["broker_config"])
        except (TypeError, ValueError, OverflowError) as error:
            raise self._altered(f"broker_config: {error}") from error

    @cached_property
    def level(self) -> Level:
        """What the verdict rests on."""
        named = self.environment.get("evidence", Level.REQUESTS)
        if named not in [*Level]:
            raise self._altered(f"a run has no evidence level {named!r}, only {', '.join(Level)}")
        return Level(named)

    @cached_property
    def foreseen(self) -> forecast.Foreseen | None:
        """What was foreseen of the run; None where nothing was, as in older ones."""
        if self._size(forecast.FILE) is None:
            return None
        try:
            return msgspec.json.decode(self._bytes(forecast.FILE), type=forecast.Foreseen)
        except (ValueError, RecursionError) as error:
            raise self._altered(str(error), forecast.FILE) from error

    @property
    def grammar(self) -> Grammar:
        """The templates of the lines that the run's coordinators write."""
        coordinator = self.environment["coordinator"]
        try:
            return grammar_of(self.environment["kafka_version"], coordinator)
        except KeyError:
            known = ", ".join(GRAMMARS)
            raise self._altered(f"no coordinator is called {coordinator!r}, only {known}") from None

    @property
    def profile(self) -> Profile | None:
        """The rules of the run's coordinator, or those that its command line names.

        None if the oracle has none for its release.
        """
        if (name := self.environment.get("profile")) is None:
            of_run = self.environment["kafka_version"], self.environment["coordinator"]
            return CLASSIC.profile_for(*of_run)
        if (named := CLASSIC.profile_named(str(name))) is None:
            raise self._altered(f"profile: {name!r} is not known")
        return named

    @property
    def rules(self) -> str | None:
        """What was judged by which rules, where the command line named a build or rules."""
        build, profile = self.environment.get("build"), self.environment.get("profile")
        if profile is None:
            return None
        by = f"judged by the rules of {profile}"
        if not isinstance(build, Mapping):
            return f"Kafka {self.environment['kafka_version']}, {by}, which --profile names"
        commit = f", commit {build['commit']}" if build.get("commit") else ""
        place = f"{build.get('version')}{commit} in {build.get('place')}"
        return f"a build of the user's, {place}, {by}"

    @property
    def numbered_lines(self) -> bool:
        """Whether the brokers' lines have serial numbers; log4j 2 adds them (Kafka 4.0 on)."""
        return is_numbered(self.environment["kafka_version"])

    @property
    def reconnects_ms(self) -> float:
        """How long a broker may wait before it asks its ZooKeeper again, where it has one."""
        with_zookeeper = number(self.environment["kafka_version"]) < FIRST_WITHOUT_ZOOKEEPER
        return RECONNECTS_MS if with_zookeeper else 0.0

    @cached_property
    def cut_short(self) -> frozenset[str]:
        """The brokers (ids) killed as they did not shut down, whose logs are still whole."""
        sizes = {str(one["broker"]): one["log_bytes"] for one in self.entries("cut_short")}
        return frozenset(one for one, size in sizes.items() if self._size(log_of(one)) == size)

    @cached_property
    def requests_enabled(self) -> tuple[tuple[str, float], ...]:
        """The brokers (ids) that were seen to answer requests, and when, in ms: after each start.

        The load starts when all of them answer.
        """
        began = [at_ms for phase, at_ms in self.phases if phase == "formation"]
        healed = (f for f in self.faults if f["broker"] is not None and f["healed"])
        again = ((fault["broker"], fault["healed_at_ms"]) for fault in healed)
        return (*product(self.brokers, began), *again)

    @cached_property
    def skews(self) -> tuple[Skew, ...]:
        """When faults had set the clocks of brokers off; one that was not healed, to the end."""
        return tuple(skews(self.faults))

    @cached_property
    def standstills(self) -> tuple[Disturbance, ...]:
        """When brokers stood still, as the samples of the machine and the JVMs' logs have it."""
        found = machine_log.standstills(self._samples[0])
        for log in sorted(self.path.glob("brokers/*/jvm-*.log")):
            broker, content = log.parent.name, self._bytes(str(log.relative_to(self.path)))
            seen = machine_log.of_jvm(broker, content.decode(errors="replace").splitlines())
            found += on_right_clock(seen, of_broker(self.skews, broker))
        return tuple(found)

    @cached_property
    def _samples(self) -> tuple[Sequence[Entry], Account]:
        is_there = (self.path / MACHINE).exists()
        return machine_log.read(self._bytes(MACHINE) if is_there else b"")

    @cached_property
    def busy(self) -> tuple[Disturbance, ...]:
        """When the machine gave the brokers too little CPU time to rely on it."""
        doubts = (machine_log.busy(-inf, inf, doubt) for doubt in self.altered_samples)
        return (*machine_log.busy_times(self._samples[0]), *self.unsampled, *doubts)

    @property
    def late_ms(self) -> float:
        """How late anything may be for want of a CPU: see `machine_log.late_ms`."""
        return machine_log.late_ms(self._samples[0], self.busy)

    @property
    def altered_samples(self) -> Sequence[str]:
        """What of the samples of the machine is not understood, in words."""
        return self._samples[1].doubts(MACHINE)

    @cached_property
    def unsampled(self) -> Sequence[Disturbance]:
        """When the machine may have been busy, as its samples are gone; older runs do not tell."""
        if self.environment.get("machine_samples") is not True:
            return ()
        began = dict(self.phases)
        until_ms = began.get("teardown", min(began.values(), default=-inf))
        return machine_log.unsampled(self._samples[0], until_ms)

    @property
    def brokers(self) -> tuple[str, ...]:
        """The ids of the brokers."""
        ids = self.environment.get("broker_ids") or range(1, self.experiment.cluster.brokers + 1)
        return tuple(map(str, ids))

    @cached_property
    def outside(self) -> Outside | None:
        """What is known of a cluster that is not groupquake's; None for one of its own."""
        return Outside.of(self.environment, self.journal, self.experiment.cluster.prefix)

    @property
    def parser(self) -> Parser:
        """The parser of the run's lines."""
        on_wire = self.level is Level.WIRE
        prefix = self.outside.prefix if self.outside else ""
        skews = () if on_wire else self.skews
        off_ms = max((abs(skew.by_ms) for skew in skews), default=0.0)
        times = span(self.journal, off_ms, completed=self.completed)
        return Parser(self.grammar, on_wire or self.numbered_lines, prefix, on_wire, skews, times)

    @property
    def tap_parser(self) -> Parser:
        """The parser of what the tap wrote beside the brokers' logs."""
        return replace(self.parser, numbered=True, on_wire=True, skews=())

    @property
    def starts(self) -> Counter[str]:
        """How often each broker (id) was started according to the journal: at first, and healed.

        One that ran before the run was not started at first. A fault that was not healed may have
        started its broker once more.
        """
        first = self.brokers if self.outside is None else ()
        again = (f["broker"] for f in self._done("killed", "stopped") if f["healed"])
        return Counter([*first, *again])

    @property
    def cut_off(self) -> bool:
        """Whether the journal ends within a line: its writer died."""
        return not (b"\n" + self._bytes(JOURNAL)).endswith(b"\n")

    @cached_property
    def phases(self) -> tuple[tuple[str, float], ...]:
        """The phases that began, and when, in ms."""
        began = ((entry["phase"], entry["at_ms"]) for entry in self.entries("phase"))
        return tuple((phase, at_ms) for phase, at_ms in began if phase in PHASES)

    @property
    def teardown(self) -> tuple[float, float] | None:
        """When the teardown of a run that was completed began and was over, in ms."""
        began = {entry["phase"]: entry["at_ms"] for entry in self.entries("phase")}
        if not (self.completed and "teardown" in began):
            return None
        return began["teardown"], began["end"]

    def phase_at(self, at_ms: float) -> str:
        """Return the phase of a time."""
        return phase_of(self.phases, at_ms)

    @property
    def deleted(self) -> Deletions:
        """The topics that faults deleted."""
        return deletions(self.faults)

    @property
    def first_partitions(self) -> dict[str, int]:
        """How many partitions each topic of the experiment had at first, and so all the time."""
        return {topic.name: topic.partitions for topic in self.experiment.workload.topics}

    @cached_property
    def partitions(self) -> dict[str, int]:
        """How many partitions each topic of the experiment had at the end."""
        had = self.first_partitions
        injected = {entry["fault_id"] for entry in self.entries("injected")}
        for entry in self.entries("intent"):
            if entry["fault"] == GROWTH and entry["fault_id"] in injected:
                args = entry.get("args") or {}
                if wrong := lacks(args, {"topic": str, "to": int}):
                    raise self._altered(f"{GROWTH}: {wrong}", JOURNAL)
                had[args["topic"]] = args["to"]
        return had

    @property
    def grown_ms(self) -> tuple[float, float]:
        """When topics grew last, and when the load was stopped; infinity if they never did."""
        grown = (fault["injected_at_ms"] for fault in self.faults if fault["name"] == GROWTH)
        stopped_ms = dict(self.phases).get("teardown", inf)
        return max((at_ms for at_ms in grown if at_ms is not None), default=inf), stopped_ms

    @cached_property
    def _steps(self) -> list[Mapping[str, Any]]:
        steps: list[Mapping[str, Any]] = self._json("plan.json", {"steps": list})["steps"]
        for step in steps:
            if wrong := lacks(step, {"id": str}):
                raise self._altered(f"a step: {wrong}", "plan.json")
        return steps

    @cached_property
    def wrongly_skipped(self) -> tuple[str, ...]:
        """The steps that the journal skips though the plan does not allow it."""
        allowed = {step["id"] for step in self._steps if step.get("allow_empty") is True}
        skipped = (entry["fault_id"] for entry in self.entries("skipped"))
        return tuple(dict.fromkeys(step for step in skipped if step not in allowed))

    @cached_property
    def never_began(self) -> tuple[str, ...]:
        """The plan's steps without a journal entry; a step with several targets has sub-ids."""
        began = [entry["fault_id"] for entry in self.entries("intent", "skipped")]
        return tuple(
            step["id"]
            for step in self._steps
            if not any(f"{id_}.".startswith(f"{step['id']}.") for id_ in began)
        )

    @property
    def failures(self) -> tuple[str, ...]:
        """The errors of faults, in words."""
        of = lambda entry: f"fault {entry['fault_id']}: " if entry.get("fault_id") else ""
        return tuple(f"{of(entry)}{entry['error']}" for entry in self.entries("failed"))

    @property
    def completed(self) -> bool:
        """Whether the journal says that the plan was carried out and the cluster stopped."""
        return {"recovery", "end"} <= {entry["phase"] for entry in self.entries("phase")}

    @property
    def aborted(self) -> bool:
        """Whether a signal ended the run."""
        return any(self.entries("aborted"))

    @property
    def stopped(self) -> bool:
        """Whether the plan was stopped before its end."""
        return any(self.entries("stopped"))

    @property
    def steady(self) -> bool:
        """Whether the group was in its steady state before the first fault."""
        first = next(self.entries("steady_state"), None)
        return first is not None and first["ok"]
