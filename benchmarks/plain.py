"""The plain loop that Spark is compared with: one process and one thread around the same oracle.

It parses the same lines with the same templates, and builds the same evidence for the same
`replay`. It reads each line and decodes each body once, typed where fields are known. Unlike the
pipeline, it stores no tables and compares no timelines.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kafka_protocol.apis import GROUP_APIS
from kafka_protocol.coordinator_lines import Grammar, LineParser
from kafka_protocol.log_line import NUMBERED
from kafka_protocol.request_log import COMPLETED, LOGGER
from kafka_protocol.request_log.typed import Completed as CompletedLine
from reference_coordinator.replay import EpochEvent, Evidence, Hint, HintKind, ObservedRequest
from reports.judgement.coordinators.coordinator_epochs import EPOCH_EVENTS
from reports.judgement.log.broker_log import offset_ms
from reports.judgement.log.parsing import ARRIVAL_ERROR_MS, HANDLING_DELAY_MS
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.timelines.timeline import HINTS

Json = dict[str, Any]
Item = TypeVar("Item", ObservedRequest, Hint, EpochEvent)


MARK = f" DEBUG {COMPLETED}".encode()
END = f" ({LOGGER})\n".encode()


class Completed(CompletedLine, rename="camel", gc=False):
    """What a line says of a request, its bodies decoded with it."""

    request: Json  # type: ignore[assignment]
    response: Json  # type: ignore[assignment]


class CompiledGrammar:
    """A grammar with its compiled patterns."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.line = re.compile(NUMBERED)
        self.coordinator = LineParser(grammar)


@dataclass(slots=True)
class ProcessLog:
    """The log of one broker process, with the times of its own clock."""

    requests: list[tuple[int, int, Completed]] = field(default_factory=list)
    """Line number, nanoseconds, content."""
    lines: list[tuple[int, str, Json]] = field(default_factory=list)
    """Nanoseconds, template, fields."""
    apart_us: Counter[int] = field(default_factory=Counter)
    """How far its two clocks are apart, in µs."""

    def end_nanos(self) -> int:
        """Return the time of the begin of the shutdown, or else of the last line."""
        down = [nanos for nanos, template, _ in self.lines if template == "shutting_down"]
        lines = [nanos for nanos, *_ in self.lines] + [nanos for _, nanos, _ in self.requests]
        return min(down or [max(lines, default=0)])


@dataclass(slots=True)
class Reader:
    """Collects the evidence of all groups from the brokers' logs."""

    grammar: CompiledGrammar
    lines: int = 0
    rejected: int = 0
    requests: dict[str, list[ObservedRequest]] = field(default_factory=lambda: defaultdict(list))
    hints: dict[str, list[Hint]] = field(default_factory=lambda: defaultdict(list))
    epochs: dict[int, list[EpochEvent]] = field(default_factory=lambda: defaultdict(list))
    starts: list[EpochEvent] = field(default_factory=list)
    partitions: dict[str, int] = field(default_factory=dict)

    def read(self, log: Path) -> None:
        """Read one broker's log."""
        for process in self._processes(log):
            apart_ms = offset_ms(process.apart_us)
            seen: set[tuple[str, int]] = set()
            for number, nanos, content in process.requests:
                self._add_request(log.parent.name, number, nanos / 1e6 + apart_ms, content, seen)
            self.starts.append(
                EpochEvent(process.end_nanos() / 1e6 + apart_ms, log.parent.name, "ended")
            )
            for nanos, template, fields in process.lines:
                self._add_line(log.parent.name, nanos / 1e6 + apart_ms, template, fields)

    def _processes(self, log: Path) -> Iterator[ProcessLog]:
        process, broker = ProcessLog(), log.parent.name
        first_line_end = f"{self.grammar.grammar.first_line_end} (".encode()
        decode = msgspec.json.Decoder(Completed).decode
        apart_us, requests, end, known = process.apart_us, process.requests, -len(END), len(MARK)
        number = 0
        with log.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                at = line.find(MARK)
                if at < 0:
                    if first_line_end in line:
                        if apart_us:
                            yield process
                        process = ProcessLog()
                        apart_us, requests = process.apart_us, process.requests
                    self._add_other(process, broker, line)
                    continue
                try:
                    _, ms, printed_ns, _ = line.split(b" ", 3)
                    nanos = int(printed_ns)
                    requests.append((number, nanos, decode(line[at + known : end])))
                    apart_us[(int(ms) * 1_000_000 - nanos) // 1_000] += 1
                except ValueError:  # msgspec's errors are among them
                    self.rejected += 1
        self.lines += number
        if apart_us:
            yield process

    def _add_other(self, process: ProcessLog, broker: str, line: bytes) -> None:
        """Read a line that is no request's."""
        text = line.decode(errors="replace").rstrip("\r\n")
        match = self.grammar.line.match(text)
        if match is None:
            self.rejected += 1
            return
        _, ms, printed_ns, _, body, logger = match.groups()
        nanos = int(printed_ns)
        process.apart_us[(int(ms) * 1_000_000 - nanos) // 1_000] += 1
        if logger in self.grammar.grammar.irrelevant_loggers:
            return
        found = self._parsed(broker, logger, body)
        if found is None:
            self.rejected += 1
        else:
            process.lines.append((nanos, *found))

    def _parsed(self, broker: str, logger: str, body: str) -> tuple[str, Json] | None:
        """Parse a coordinator line; None if no template matches."""
        line = self.grammar.coordinator.parsed(broker, logger, body)
        if line.template is None:
            return None
        shard = {"partition": line.partition} if line.partition else {}
        return line.template, {**line.fields, **shard}

    def _add_request(
        self, broker: str, line: int, at_ms: float, content: Completed, seen: set[tuple[str, int]]
    ) -> None:
        """Add a request, unless it is incomplete, a duplicate, or has inconsistent times."""
        header, request, response = content.request_header, content.request, content.response
        api, serial, connection = (
            header.request_api_key_name,
            header.correlation_id,
            content.connection,
        )
        local, remote, total = content.local_time_ms, content.remote_time_ms, content.total_time_ms
        after = content.response_queue_time_ms + content.send_time_ms
        whole = ("errorCode" in response or "topics" in response) and "groupId" in request
        exact = abs(total - content.request_queue_time_ms - local - remote - after) < 1.0
        if not whole or not exact or api not in GROUP_APIS or (connection, serial) in seen:
            self.rejected += 1
            return
        seen.add((connection, serial))
        read_ms = at_ms - total + content.request_queue_time_ms
        done_ms = read_ms + local
        answered_ms = at_ms - after
        due_ms = min(done_ms, at_ms - total + HANDLING_DELAY_MS)
        self.requests[request["groupId"]].append(
            ObservedRequest(
                f"{broker}:{line}",
                broker,
                api,
                header.request_api_version,
                header.client_id,
                connection,
                read_ms - ARRIVAL_ERROR_MS,
                read_ms + local / 2,
                min(answered_ms, due_ms + HANDLING_DELAY_MS),
                answered_ms,
                request,
                response,
                serial,
            )
        )

    def _add_line(self, broker: str, at_ms: float, template: str, fields: Json) -> None:
        """Add a coordinator line: a hint about an instant, or an event of a coordinator epoch."""
        if template == "starting":
            self.starts.append(EpochEvent(at_ms, broker, "started"))
        elif template in EPOCH_EVENTS:
            epoch_event = EpochEvent(at_ms, broker, EPOCH_EVENTS[template])
            self.epochs[int(fields["partition"])].append(epoch_event)
        group = fields.get("group")
        if group is None:
            return
        if "partition" in fields:
            partition = int(fields["partition"])
            self.partitions[group] = min(partition, self.partitions.get(group, partition))
        kinds = [HINTS[template]] if template in HINTS else []
        if template == "preparing":
            classed = self.grammar.grammar.classed(fields["reason"])
            kinds += [HintKind.SYNC_EXPIRED] if classed and classed[0] == "pending_sync" else []
        for kind in kinds:
            subject = fields.get("instance" if template == "static_replaced" else "member") or ""
            generation = int(fields.get("generation") or -1)
            self.hints[group].append(Hint(at_ms, kind, subject, generation, broker))

    def evidence(self, run: RunFolder) -> Iterator[Evidence]:
        """Yield the evidence of each group, and release it."""
        for group in sorted(self.requests.keys() | self.hints.keys() | self.partitions.keys()):
            held = group in self.partitions
            epoch_events = [*self.starts, *self.epochs[self.partitions[group]]] if held else []
            yield Evidence(
                group,
                _by_time(self.requests.pop(group, ())),
                _by_time(self.hints.pop(group, ())),
                _by_time(epoch_events),
                run.stalls,
                run.outages,
            )


def read(run: RunFolder) -> Reader:
    """Read the logs of all brokers of a run."""
    reader = Reader(CompiledGrammar(run.grammar))
    for log in sorted(run.path.glob("brokers/*/group.log")):
        reader.read(log)
    return reader


def _by_time(items: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(sorted(items, key=lambda item: item.at_ms))
