"""A run folder judged in one process, without Spark: its lines, and the rows of each group.

Lines are read as for a report, by the same functions, and the rows are those of its tables. The
mutants and the tests use it.
"""

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kafka_protocol.log_line import EVENT
from kafka_protocol.request_log import COMPLETED
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay import Evidence
from reports.judgement.group import evidence_of
from reports.judgement.judging import Rules, context_of
from reports.judgement.log.broker_log import Place
from reports.judgement.log.log_bytes import unpacked
from reports.judgement.log.log_places import LOG, Split
from reports.judgement.log.merging import ReadLogs, read_logs
from reports.judgement.log.split_rows import How
from reports.judgement.missing.gaps import missing, unexplained, unreadable
from reports.judgement.rows import Row
from reports.judgement.run import deliveries as handed_on
from reports.judgement.run.deliveries import Deliveries
from reports.judgement.run.disturbance import Disturbance
from reports.judgement.run.faults import LARGEST
from reports.judgement.run.history import ClientEvent, events_by_group, reader_of
from reports.judgement.run.journal import Account
from reports.judgement.run.machine_log import spans_of
from reports.judgement.run.run_folder import HISTORY, RunFolder
from reports.judgement.run_context import RunContext
from scenarios.regular_files import read_regular


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
        return self.row.get("template")

    @property
    def group(self) -> str | None:
        """The group that it is about, else None."""
        return self.row.get("group")

    @cached_property
    def request(self) -> dict[str, Any] | None:
        """The logged request as JSON, if the line is about one."""
        if "request" not in self.row:
            return None
        event = re.match(EVENT, self.text)
        assert event is not None
        logged: dict[str, Any] = json.loads(event[2].removeprefix(COMPLETED))
        return logged


def lines_of(
    texts: Iterable[bytes], tables: Mapping[str, Sequence[Row]], place: Place
) -> Iterator[Line]:
    """Yield the lines of a split; the `tables` are those of `broker_log`, of all brokers."""
    of = lambda name: (row for row in tables[name] if row["broker"] == place.broker)
    rows = {row["line"]: {**row, "template": None} for row in of("requests")}
    rows |= {row["line"]: row for row in of("transitions")}
    unused = {row["line"]: row for row in of("coverage")}
    process = place.process
    for number, text in enumerate(texts, place.line + 1):
        row = rows.get(number, {})
        seen = unused.get(number) or row
        process = seen.get("process", process)
        at_ms = seen["logged_ms"] if "logged_ms" in seen else seen["at_ms"]
        bare = text.decode(errors="replace").split(" ", 3 if place.numbered else 2)[-1]
        yield Line(place.broker, number, process, at_ms, bare, row)


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
        profile = self.run.profile
        assert profile is not None
        return profile.with_settings(self.run.settings)

    @cached_property
    def texts(self) -> Mapping[Split, Sequence[bytes]]:
        """The lines of its logs, by file."""
        logs = sorted(self.folder.glob(f"{self.run.parser.folder}/*/{LOG}*"))
        return {Split(str(log), 0): [*_texts(log)] for log in logs}

    @cached_property
    def logs(self) -> ReadLogs:
        """What its logs hold."""
        how = How(spans=spans_of(self.run.stalls, self.run.standstills), deliveries=self.deliveries)
        return read_logs(self.texts, self.run.parser, how)

    @cached_property
    def tables(self) -> Mapping[str, Sequence[Row]]:
        """The tables of its lines (`broker_log.TABLES`)."""
        return self.logs.tables()

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines, broker by broker, as they stand in the logs."""
        return tuple(
            line
            for split, place in self.logs.merged.starts.items()
            for line in lines_of(self.texts[split], self.tables, place)
        )

    @cached_property
    def gaps(self) -> list[Disturbance]:
        """The gaps in its logs that no fault of the run explains."""
        rejected = (row for row in self.tables["coverage"] if row["status"] == "rejected")
        gaps = [*map(unreadable, rejected), *map(missing, self.tables["lost"])]
        return unexplained(gaps, self.run)

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
    def context(self) -> RunContext:
        """Judges its groups as a report does, by the rules of the release alone."""
        rules = Rules(self.profile, self.profile, None)
        context = context_of(self.run, rules, self.logs.merged, self.deliveries)
        return replace(context, digester=None)

    @cached_property
    def deliveries(self) -> Deliveries:
        """What the tap held back of answers, if it could."""
        logs = sorted(self.folder.glob("tap/*/group.log*"))
        lines = (line for log in logs for line in _texts(log))
        return handed_on.read(line.decode(errors="replace") for line in lines)

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
        return evidence_of(self.context, group, self.rows_by_group.get(group, ()))


def _texts(log: Path) -> Iterator[bytes]:
    return (line.rstrip(b"\r") for line in unpacked(io.BytesIO(log.read_bytes()), log.name))
