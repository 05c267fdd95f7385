"""A run folder as reports see it: the experiment, the environment, the fault journal."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reference_coordinator.profiles import Settings
from reports.errors import EvidenceError
from scenarios import Experiment, ScenarioError, load

ENVIRONMENT = ("kafka_version", "coordinator", "seed", "broker_config", "repeat_command")
PHASES = ("formation", "impact", "recovery", "teardown")


@dataclass(frozen=True)
class RunFolder:
    """Reads what a run left behind; every problem is an `EvidenceError` naming the file."""

    path: Path

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment as it was resolved."""
        try:
            return load(self._file("experiment.yaml"))
        except ScenarioError as error:
            raise EvidenceError(str(error)) from error

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Seed, versions, broker settings, git state, the command that repeats the run."""
        content = self._json("environment.json")
        missing = [name for name in ENVIRONMENT if name not in content]
        if missing:
            raise EvidenceError(
                f"{self.path}/environment.json: names no {missing[0]}; the run was cut off"
            )
        if not isinstance(content["broker_config"], dict) or not isinstance(
            content["kafka_version"], str
        ):
            raise EvidenceError(f"{self.path}/environment.json: kafka_version or broker_config off")
        return content

    @cached_property
    def settings(self) -> Settings:
        """The broker settings that the protocol depends on."""
        try:
            return Settings.from_properties(self.environment["broker_config"])
        except (TypeError, ValueError) as error:
            raise EvidenceError(
                f"{self.path}/environment.json: broker_config: {error}; it was altered"
            ) from error

    @cached_property
    def journal(self) -> tuple[dict[str, Any], ...]:
        """The fault journal's entries; a last line cut off by a crash is left out."""
        name = "journal.jsonl"
        entries: list[dict[str, Any]] = []
        lines = self._text(name).splitlines()
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                entries.append({"at_ms": entry["at_ms"], "event": entry["event"], **entry})
            except (ValueError, KeyError, TypeError) as error:
                if number < len(lines):
                    raise EvidenceError(
                        f"{self.path}/{name}:{number}: no journal entry; the journal was altered"
                    ) from error
        return tuple(entries)

    @cached_property
    def phases(self) -> tuple[tuple[str, float], ...]:
        """The phases that began, with their times."""
        return tuple(
            (entry["phase"], entry["at_ms"])
            for entry in self.journal
            if entry["event"] == "phase" and entry["phase"] in PHASES
        )

    def phase_at(self, at_ms: float) -> str:
        """Tell in which phase a time lies."""
        name = PHASES[0]
        for phase, began_ms in self.phases:
            if began_ms <= at_ms:
                name = phase
        return name

    @cached_property
    def faults(self) -> tuple[dict[str, Any], ...]:
        """The faults, each with what became of it, in the order they were meant to happen."""
        try:
            return self._faults()
        except KeyError as error:
            raise EvidenceError(
                f"{self.path}/journal.jsonl: an entry has no {error}; the journal was altered"
            ) from error

    def _faults(self) -> tuple[dict[str, Any], ...]:
        faults: dict[str, dict[str, Any]] = {}
        for entry in self.journal:
            fault = faults.get(entry.get("fault_id", ""))
            if entry["event"] == "intent":
                faults[entry["fault_id"]] = {
                    "name": entry["fault"],
                    "cause": entry.get("cause"),
                    "target": entry["target"],
                    "group": entry.get("group"),
                    "injected_at_ms": None,
                    "healed_at_ms": None,
                    "verified": False,
                    "witness": "",
                    "healed": False,
                }
            elif fault is None:
                continue
            elif entry["event"] == "injected":
                fault["injected_at_ms"] = entry["at_ms"]
            elif entry["event"] == "verified":
                fault["verified"], fault["witness"] = entry["verified"], entry["witness"]
            elif entry["event"] == "healed":
                fault["healed"], fault["healed_at_ms"] = entry["healed"], entry["at_ms"]
        return tuple(faults.values())

    @cached_property
    def never_began(self) -> tuple[str, ...]:
        """The plan's steps that the journal knows nothing of; hitting many, a step has sub-ids."""
        try:
            steps = [
                step["id"] for step in json.loads(self._file("plan.json").read_text())["steps"]
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise EvidenceError(f"{self.path}/plan.json: not a plan; it was altered") from error
        began = [e["fault_id"] for e in self.journal if e["event"] in ("intent", "skipped")]
        return tuple(
            step for step in steps if not any(f"{id_}.".startswith(f"{step}.") for id_ in began)
        )

    @property
    def failures(self) -> tuple[str, ...]:
        """What went wrong with faults, in words."""
        return tuple(
            f"fault {entry['fault_id']}: {entry['error']}" if entry["fault_id"] else entry["error"]
            for entry in self.journal
            if entry["event"] == "failed"
        )

    @property
    def aborted(self) -> bool:
        """Whether the run was ended by a signal."""
        return any(entry["event"] == "aborted" for entry in self.journal)

    @property
    def steady(self) -> bool:
        """Whether the steady state was met before the first fault."""
        states = [entry["ok"] for entry in self.journal if entry["event"] == "steady_state"]
        return bool(states) and states[0]

    def _json(self, name: str) -> dict[str, Any]:
        try:
            content = json.loads(self._text(name))
        except ValueError as error:
            raise EvidenceError(
                f"{self.path}/{name}: no JSON ({error}); the run was cut off or altered"
            ) from error
        if not isinstance(content, dict):
            raise EvidenceError(f"{self.path}/{name}: no JSON object; it was altered")
        return content

    def _text(self, name: str) -> str:
        file = self._file(name)
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EvidenceError(f"{file}: cannot be read ({error}); check the file") from error

    def _file(self, name: str) -> Path:
        file = self.path / name
        if not self.path.is_dir():
            raise EvidenceError(f"{self.path}: no such run folder; `ls runs` lists those there are")
        if not file.is_file():
            raise EvidenceError(f"{file}: missing; {self.path} is not the folder of a run")
        return file
