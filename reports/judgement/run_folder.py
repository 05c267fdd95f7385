"""A run folder: its experiment, its environment and its fault journal."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, cast

from kafka_protocol.coordinator_lines import GRAMMARS, Grammar, grammar_of
from kafka_protocol.log_line import is_numbered
from kafka_protocol.releases import FIRST_WITHOUT_ZOOKEEPER, number
from reference_coordinator.classic.profiles import Settings
from reference_coordinator.replay import Outage, Stall
from reference_coordinator.replay.coordinator_epochs import RECONNECTS_MS
from reports.judgement import faults, machine_log
from reports.judgement.absences import Absence, absences
from reports.judgement.errors import EvidenceError
from reports.judgement.faults import Fault
from reports.judgement.journal import PHASES, Entry, phase_of, read
from reports.judgement.json_form import Form, lacks, parse
from reports.judgement.log_places import LOG, log_of
from reports.judgement.machine_log import Busy, Standstill
from scenarios import Experiment, ScenarioError, load

HISTORY = "history.jsonl"
"""The client history."""
JOURNAL = "journal.jsonl"
MACHINE = "machine.jsonl"
"""What `groupquake.machine_sampler` noted; older runs have none."""
GROWTH = "topic.add-partitions"
ENVIRONMENT: Form = {
    "kafka_version": str,
    "coordinator": str,
    "seed": int,
    "broker_config": dict,
    "repeat_command": str,
}


def logs_bytes(folder: Path) -> int:
    """Return the size of all brokers' logs in a run folder of this machine, rotated ones too."""
    return sum(log.stat().st_size for log in folder.glob(f"brokers/*/{LOG}*"))


@dataclass(frozen=True)
class RunFolder:
    """Reads the files of a run; every problem is an `EvidenceError` that names the file."""

    path: Path
    uri: str = ""
    """Where the run folder is, if `path` holds only a copy of its small files."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """The files that are at `uri` alone, by their names in the run folder, and their bytes."""

    @property
    def place(self) -> str:
        """The run folder, as messages name it."""
        return self.uri or str(self.path)

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self.place.rpartition("/")[2]

    @property
    def has_history(self) -> bool:
        """Whether there is a client history."""
        return (self.path / HISTORY).is_file() or HISTORY in self.elsewhere

    @property
    def lost_history(self) -> bool:
        """Whether the run wrote a client history that is gone; older runs do not tell."""
        return self.environment.get("client_history") is True and not self.has_history

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that was run."""
        try:
            return load(self._file("experiment.yaml"))
        except ScenarioError as error:
            raise EvidenceError(str(error)) from error

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Seed, versions, broker settings, git state, and the command that repeats the run."""
        return self._json("environment.json", ENVIRONMENT)

    @cached_property
    def settings(self) -> Settings:
        """The broker settings that the protocol depends on."""
        try:
            return Settings.from_properties(self.environment["broker_config"])
        except (TypeError, ValueError, OverflowError) as error:
            raise EvidenceError(
                f"{self.place}/environment.json: broker_config: {error}; it was altered"
            ) from error

    @property
    def grammar(self) -> Grammar:
        """The templates of the lines that the run's coordinators write."""
        coordinator = self.environment["coordinator"]
        try:
            return grammar_of(self.environment["kafka_version"], coordinator)
        except KeyError:
            raise EvidenceError(
                f"{self.place}/environment.json: no coordinator is called {coordinator!r};"
                f" it is one of {', '.join(GRAMMARS)}"
            ) from None

    @property
    def numbered_lines(self) -> bool:
        """Whether the brokers' lines have serial numbers; log4j 2 adds them (Kafka 4.0 on)."""
        return is_numbered(self.environment["kafka_version"])

    @property
    def reconnects_ms(self) -> float:
        """How long a broker may wait before it asks its ZooKeeper again, where it has one."""
        with_zookeeper = number(self.environment["kafka_version"]) < FIRST_WITHOUT_ZOOKEEPER
        return RECONNECTS_MS if with_zookeeper else 0.0

    @property
    def kills(self) -> tuple[tuple[str, float], ...]:
        """The brokers (ids) that a fault killed, and when, in ms."""
        return tuple((broker, by_ms) for broker, _, by_ms in self.killed_between)

    @cached_property
    def killed_between(self) -> tuple[tuple[str, float, float], ...]:
        """The brokers (ids) that a fault killed, and between when, in ms."""
        return tuple(faults.killed_between(self.faults))

    @cached_property
    def log_lines(self) -> Mapping[tuple[str, float], int]:
        """How many lines the log of a killed broker had then, by its kill; older runs tell none."""
        return faults.log_lines(self.faults)

    @cached_property
    def cut_short(self) -> frozenset[str]:
        """The brokers (ids) killed as they did not shut down, whose logs are still whole."""
        noted = [entry for entry in self.journal if entry["event"] == "cut_short"]
        sizes = {str(entry["broker"]): entry["log_bytes"] for entry in noted}
        return frozenset(
            broker for broker, size in sizes.items() if self._log_bytes(broker) == size
        )

    def _log_bytes(self, broker: str) -> int | None:
        """Return the size of a broker's log; None without one."""
        name = log_of(broker)
        log = self.path / name
        return log.stat().st_size if log.is_file() else self.elsewhere.get(name)

    @cached_property
    def outages(self) -> tuple[Outage, ...]:
        """When faults had brokers down or paused, with the time to catch up afterwards."""
        return tuple(faults.outages(self.faults))

    @cached_property
    def requests_enabled(self) -> tuple[tuple[str, float], ...]:
        """The brokers (ids) that were seen to answer requests, and when, in ms: after each start.

        The load starts when all of them answer.
        """
        began = [at_ms for phase, at_ms in self.phases if phase == "formation"]
        first = ((broker, at_ms) for broker in self.brokers for at_ms in began)
        return (*first, *faults.healed(self.faults))

    @cached_property
    def stalls(self) -> tuple[Stall, ...]:
        """When faults paused brokers; one that was not resumed is paused to the end."""
        return tuple(faults.stalls(self.faults))

    @cached_property
    def standstills(self) -> tuple[Standstill, ...]:
        """When brokers stood still, as the samples of the machine and the JVMs' logs have it."""
        of_jvms = (
            machine_log.of_jvm(log.parent.name, lines.splitlines())
            for log in sorted(self.path.glob("brokers/*/jvm-*.log"))
            for lines in _if_readable(log)
        )
        stopped = (machine_log.standstills(text) for text in _if_readable(self.path / MACHINE))
        return tuple(chain.from_iterable((*stopped, *of_jvms)))

    @cached_property
    def busy(self) -> tuple[Busy, ...]:
        """When the machine gave the brokers too little CPU time to rely on it."""
        texts = _if_readable(self.path / MACHINE)
        return tuple(chain.from_iterable(map(machine_log.busy_times, texts)))

    @property
    def brokers(self) -> tuple[str, ...]:
        """The ids of the brokers."""
        return tuple(map(str, range(1, self.experiment.cluster.brokers + 1)))

    @property
    def starts(self) -> Counter[str]:
        """How often each broker (id) was started according to the journal: at first, and healed.

        A fault that was not healed may have started its broker once more.
        """
        return Counter([*self.brokers, *faults.started_again(self.faults)])

    @cached_property
    def journal(self) -> tuple[Entry, ...]:
        """The fault journal's complete entries."""
        return read(f"{self.place}/{JOURNAL}", self._text(JOURNAL))

    @property
    def cut_off(self) -> bool:
        """Whether the journal ends within a line: its writer died."""
        return not f"\n{self._text(JOURNAL)}".endswith("\n")

    @cached_property
    def phases(self) -> tuple[tuple[str, float], ...]:
        """The phases that began, and when, in ms."""
        return tuple(
            (entry["phase"], entry["at_ms"])
            for entry in self.journal
            if entry["event"] == "phase" and entry["phase"] in PHASES
        )

    @property
    def teardown(self) -> tuple[float, float] | None:
        """When the teardown began and was over, in ms, if the journal has both."""
        began = {e["phase"]: e["at_ms"] for e in self.journal if e["event"] == "phase"}
        if not {"teardown", "end"} <= began.keys():
            return None
        return began["teardown"], began["end"]

    def phase_at(self, at_ms: float) -> str:
        """Return the phase of a time."""
        return phase_of(self.phases, at_ms)

    @cached_property
    def faults(self) -> tuple[Fault, ...]:
        """The faults and their outcomes, in the order of the journal."""
        return faults.faults_of(self.journal)

    @cached_property
    def absences(self) -> tuple[Absence, ...]:
        """When faults on members had clients down."""
        return absences(self.journal)

    @property
    def first_partitions(self) -> dict[str, int]:
        """How many partitions each topic of the experiment had at first, and so all the time."""
        return {topic.name: topic.partitions for topic in self.experiment.workload.topics}

    @cached_property
    def partitions(self) -> dict[str, int]:
        """How many partitions each topic of the experiment had at the end."""
        had = self.first_partitions
        grows = {e["fault_id"]: e for e in self.journal if e["event"] == "intent"}
        for entry in self.journal:
            intent = grows.get(entry.get("fault_id") or "")
            if entry["event"] == "injected" and intent and intent["fault"] == GROWTH:
                args = intent["args"]
                if wrong := lacks(args, {"topic": str, "to": int}):
                    raise EvidenceError(
                        f"{self.place}/{JOURNAL}: {GROWTH}: {wrong}; it was altered"
                    )
                had[args["topic"]] = args["to"]
        return had

    @cached_property
    def _steps(self) -> list[Mapping[str, Any]]:
        """The plan's steps."""
        steps: list[Mapping[str, Any]] = self._json("plan.json", {"steps": list})["steps"]
        for step in steps:
            if wrong := lacks(step, {"id": str}):
                raise EvidenceError(f"{self.place}/plan.json: a step: {wrong}; it was altered")
        return steps

    @cached_property
    def wrongly_skipped(self) -> tuple[str, ...]:
        """The steps that the journal skips though the plan does not allow it."""
        allowed = {step["id"] for step in self._steps if step.get("allow_empty") is True}
        skipped = (e["fault_id"] for e in self.journal if e["event"] == "skipped")
        return tuple(dict.fromkeys(step for step in skipped if step not in allowed))

    @cached_property
    def never_began(self) -> tuple[str, ...]:
        """The plan's steps without a journal entry; a step with several targets has sub-ids."""
        began = [e["fault_id"] for e in self.journal if e["event"] in ("intent", "skipped")]
        return tuple(
            step["id"]
            for step in self._steps
            if not any(f"{id_}.".startswith(f"{step['id']}.") for id_ in began)
        )

    @property
    def failures(self) -> tuple[str, ...]:
        """The errors of faults, in words."""
        return tuple(
            f"fault {entry['fault_id']}: {entry['error']}"
            if entry.get("fault_id")
            else entry["error"]
            for entry in self.journal
            if entry["event"] == "failed"
        )

    @property
    def completed(self) -> bool:
        """Whether the journal says that the plan was carried out and the cluster stopped."""
        began = {entry["phase"] for entry in self.journal if entry["event"] == "phase"}
        return {"recovery", "end"} <= began

    @property
    def aborted(self) -> bool:
        """Whether a signal ended the run."""
        return any(entry["event"] == "aborted" for entry in self.journal)

    @property
    def stopped(self) -> bool:
        """Whether the plan was stopped before its end."""
        return any(entry["event"] == "stopped" for entry in self.journal)

    @property
    def steady(self) -> bool:
        """Whether the group was in its steady state before the first fault."""
        states = [entry["ok"] for entry in self.journal if entry["event"] == "steady_state"]
        return bool(states) and states[0]

    def _json(self, name: str, form: Form) -> dict[str, Any]:
        try:
            content = parse(self._text(name))
        except ValueError as error:
            raise EvidenceError(
                f"{self.place}/{name}: no JSON ({error}); the run was cut off or altered"
            ) from error
        if wrong := lacks(content, form):
            raise EvidenceError(f"{self.place}/{name}: {wrong}; the run was cut off or altered")
        return cast(dict[str, Any], content)

    def _text(self, name: str) -> str:
        file = self._file(name)
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EvidenceError(
                f"{self.place}/{name}: cannot be read ({error}); check the file"
            ) from error

    def _file(self, name: str) -> Path:
        file = self.path / name
        if not self.path.is_dir():
            raise EvidenceError(f"{self.path}: no such run folder; `ls runs` lists those there are")
        if not file.is_file():
            raise EvidenceError(
                f"{self.place}/{name}: missing; {self.place} is not the folder of a run"
            )
        return file


def _if_readable(file: Path) -> Iterator[str]:
    """Yield the text of a file, if there is one."""
    with suppress(OSError):
        yield file.read_text(encoding="utf-8", errors="replace")
