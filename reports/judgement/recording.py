"""A run folder judged in one process, without Spark: its lines, and the rows of each group.

Lines are read as for a report (`broker_log`), and the rows are those of its tables. Logs may be
plain or compressed (`group.log`, `group.log.xz`). The mutants and the tests use it.
"""

import json
import lzma
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kafka_protocol.apis import GROUP_APIS
from kafka_protocol.log_line import EVENT
from kafka_protocol.request_log import COMPLETED
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay import Evidence, ObservedRequest, Stall
from reports.judgement.clients.known_clients import known_clients
from reports.judgement.coordinators.coordinator_epochs import LINES, coordinator_epochs
from reports.judgement.coordinators.wire_epochs import WireEpochs, marks_in, of_groups
from reports.judgement.group import Judge
from reports.judgement.lateness.broker_activity import as_stalls, lines_of, stood_still
from reports.judgement.log.broker_log import TABLES, Log, Start
from reports.judgement.log.log_places import LOG, log_of
from reports.judgement.log.parsing import Parser
from reports.judgement.log.processes import BrokerProcess, is_patchy, whole
from reports.judgement.log.split_summary import start_of
from reports.judgement.logged import observed
from reports.judgement.missing.gaps import Gap, missing, unexplained, unreadable
from reports.judgement.run import deliveries as handed_on
from reports.judgement.run.deliveries import NOTHING_HELD, Deliveries
from reports.judgement.run.evidence_level import Level
from reports.judgement.run.history import ClientEvent, events_by_group, reader_of
from reports.judgement.run.json_form import Account
from reports.judgement.run.machine_log import Standstill
from reports.judgement.run.run_files import LARGEST
from reports.judgement.run.run_folder import HISTORY, RunFolder
from reports.judgement.run.skews import of_broker
from reports.judgement.timelines.fenced_lines import fenced_lines
from scenarios.regular_files import read_regular

Row = Mapping[str, Any]
COLUMNS = {
    table: tuple(column.split()[0] for column in columns.split(","))
    for table, columns in TABLES.items()
}


@dataclass(frozen=True)
class Line:
    """One line of a log; `text` is what follows its time and serial number.

    `row` is its row of the table `requests` (with None as `template`) or `transitions`, else empty.
    """

    broker: str
    number: int
    process: int
    at_ms: float
    text: str
    row: Row

    @property
    def template(self) -> str | None:
        """The template that a coordinator's line matches, else None."""
        name: str | None = self.row.get("template")
        return name

    @property
    def group(self) -> str | None:
        """The group that it is about, else None."""
        name: str | None = self.row.get("group")
        return name

    @cached_property
    def request(self) -> dict[str, Any] | None:
        """The logged request as JSON, if the line is about one."""
        if "request" not in self.row:
            return None
        event = re.match(EVENT, self.text)
        assert event is not None
        logged: dict[str, Any] = json.loads(event[2].removeprefix(COMPLETED))
        return logged

    @property
    def observed(self) -> ObservedRequest:
        """The request as the oracle sees it."""
        return observed(self.row)


@dataclass(frozen=True)
class ReadLog:
    """What was read of one broker's log: lines, its processes, and gaps."""

    lines: tuple[Line, ...]
    processes: tuple[tuple[str, BrokerProcess], ...]
    gaps: tuple[Gap, ...]

    @classmethod
    def of(
        cls,
        broker: str,
        parser: Parser,
        texts: Sequence[str],
        start: Start,
        held: Deliveries = NOTHING_HELD,
    ) -> "ReadLog":
        """Read the lines of a broker's log from a start on."""
        log = Log(broker, log_of(broker, parser.folder), parser, start, held)
        for text in texts:
            log.read(text)
        processes, lost = whole(broker, log.end())
        log.rows["lost"] += lost
        tables = {
            table: [dict(zip(COLUMNS[table], row, strict=True)) for row in rows]
            for table, rows in log.rows.items()
        }
        bare = {
            number: text.split(" ", 3 if parser.numbered else 2)[-1]
            for number, text in enumerate(texts, start.line + 1)
        }
        rows = {row["line"]: {**row, "template": None} for row in tables["requests"]}
        rows |= {row["line"]: row for row in tables["transitions"]}
        lines = (
            Line(broker, seen["line"], seen["process"], seen["at_ms"], bare[seen["line"]],
                 rows.get(seen["line"], {}))
            for seen in tables["coverage"]
        )  # fmt: skip
        gaps = [unreadable(row) for row in tables["coverage"] if row["status"] == "rejected"]
        return cls(
            tuple(lines),
            tuple((broker, process) for process in processes),
            (*gaps, *map(missing, tables["lost"])),
        )


@dataclass(frozen=True, eq=False)
class Recording:
    """A recorded run folder."""

    folder: Path

    @cached_property
    def run(self) -> RunFolder:
        """The run folder without its logs."""
        return RunFolder(self.folder)

    @property
    def environment(self) -> dict[str, Any]:
        """Versions and settings."""
        return self.run.environment

    @cached_property
    def profile(self) -> Profile:
        """The rules of its coordinator under its settings."""
        environment = self.environment
        profile = CLASSIC.profile_for(environment["kafka_version"], environment["coordinator"])
        assert profile is not None
        return profile.with_settings(self.run.settings)

    @cached_property
    def parser(self) -> Parser:
        """The parser of its lines."""
        return self.run.parser

    @cached_property
    def _read(self) -> Sequence[ReadLog]:
        return [
            ReadLog.of(
                *(log.parent.name, self.parser, texts),
                start_of(texts, self.parser, of_broker(self.parser.skews, log.parent.name)),
                self.deliveries,
            )
            for log in sorted(self.folder.glob(f"{self.parser.folder}/*/{LOG}*"))
            for texts in [_texts(log)]
        ]

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines, broker by broker, as they stand in the logs."""
        return tuple(line for read in self._read for line in read.lines)

    @cached_property
    def processes(self) -> tuple[tuple[str, BrokerProcess], ...]:
        """Each process of each broker."""
        return tuple(process for read in self._read for process in read.processes)

    @cached_property
    def gaps(self) -> list[Gap]:
        """The gaps in its logs that no fault of the run explains."""
        requests = (line.row for line in self.lines if "request" in line.row)
        serving = {r["broker"] for r in requests if r["readable"] and r["api"] in GROUP_APIS}
        return unexplained([gap for read in self._read for gap in read.gaps], self.run, serving)

    @cached_property
    def rows_by_group(self) -> Mapping[str, Sequence[Row]]:
        """The rows of each group: its requests and its coordinator lines."""
        rows: dict[str, list[Row]] = defaultdict(list)
        for line in self.lines:
            if line.group is not None:
                rows[line.group].append(line.row)
        return dict(rows)

    @cached_property
    def history(self) -> Account:
        """The account of the client history, once `events_by_group` is read."""
        return Account()

    @cached_property
    def events_by_group(self) -> Mapping[str, Sequence[ClientEvent]]:
        """What clients saw, by group; empty without a client history."""
        history = self.folder / HISTORY
        if not history.is_file():
            return {}
        lines = read_regular(history, LARGEST).splitlines()
        return events_by_group(lines, reader_of(self.run), self.history)

    @cached_property
    def judge(self) -> Judge:
        """Judges its groups as a report does, by the rules of the release alone."""
        rows = [line.row for line in self.lines if line.template in LINES]
        processes = [
            {"broker": broker, "process": process.number, "last_ms": process.last_ms}
            for broker, process in self.processes
        ]
        named = (
            process.partition for _, process in self.processes if process.partition is not None
        )
        most = max(named, default=None)
        rules, run = self.profile, self.run
        partitions = None if most is None else most + 1
        epochs = coordinator_epochs(
            rows,
            processes,
            partitions,
            run.requests_enabled,
            run.reconnects_ms,
            run.outside.coordinated_before if run.outside else {},
            run.partings,
        )
        pauses, standstills = self._stood_still
        stalls = (*pauses, *as_stalls(standstills))
        return Judge(
            run.grammar, rules, rules, epochs, stalls, run.outages,
            first_alone=is_patchy(process.statuses for _, process in self.processes),
            partitions=run.first_partitions, absences=run.absences, broken_wires=run.broken_wires,
            clients=known_clients(run.experiment, self.deliveries), kills=run.killed_between,
            unmeasured=run.unmeasured_kills,
            has_history=run.has_history,
            fenced=fenced_lines((line.row for line in self.lines if line.row), run.grammar),
            grown_ms=run.grown_ms,
            deleted=run.deleted,
            wire=self.wire_epochs,
        )  # fmt: skip

    @property
    def wire_epochs(self) -> Mapping[str, WireEpochs] | None:
        """At level `wire` the coordinator epochs of groups; else None."""
        if self.run.level is not Level.WIRE:
            return None
        requests = (line.row for line in self.lines if "request" in line.row)
        return of_groups(marks_in(requests), self.run.restarts)

    @cached_property
    def deliveries(self) -> Deliveries:
        """What the tap held back of answers, if it could."""
        logs = sorted(self.folder.glob("tap/*/group.log*"))
        return handed_on.read(line for log in logs for line in _texts(log))

    @property
    def standstills(self) -> list[Standstill]:
        """When brokers stood still, proven, and by no fault of the journal."""
        return self._stood_still[1]

    @cached_property
    def _stood_still(self) -> tuple[tuple[Stall, ...], list[Standstill]]:
        """When brokers stood still, paused by faults, and otherwise."""
        pauses, standstills = self.run.stalls, self.run.standstills
        lines = lines_of(*self.activity) if pauses or standstills else {}
        return stood_still(pauses, standstills, lines)

    @property
    def activity(self) -> tuple[list[Row], list[Row]]:
        """What brokers did: rows of `requests`, and of `transitions`."""
        rows = [line.row for line in self.lines if line.row]
        requests = [row for row in rows if "request" in row]
        return requests, [row for row in rows if "request" not in row]

    @cached_property
    def partitions(self) -> dict[str, int]:
        """The partition of `__consumer_offsets` of each group whose lines name it."""
        rows = (line.row for line in self.lines if line.template and line.group is not None)
        return {row["group"]: row["partition"] for row in rows if row["partition"] is not None}

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups that have requests."""
        found = {line.group for line in self.lines if "request" in line.row}
        return tuple(sorted(filter(None, found)))

    def evidence(self, group: str) -> Evidence:
        """Return what the logs tell of a group."""
        return replace(self.evidence_with_faults(group), stalls=(), outages=())

    def evidence_with_faults(self, group: str) -> Evidence:
        """Return what is known of a group, including when its brokers were paused or down."""
        return self.judge.evidence(group, self.rows_by_group.get(group, ()))


def _texts(log: Path) -> list[str]:
    packed = log.read_bytes()
    content = lzma.decompress(packed) if log.suffix == ".xz" else packed
    lines = content.decode(errors="replace").split("\n")
    return [line.rstrip("\r") for line in (lines if lines[-1] else lines[:-1])]
