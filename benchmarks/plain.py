"""The plain loop that Spark is compared with: one process and one thread around the same oracle.

It parses the same lines with the same templates, and builds the same evidence for the same
`replay`. It reads each line and parses each body once. Unlike the pipeline, it stores no tables and
compares no timelines.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low
from typing import Any, TypeVar

from kafka_protocol.apis import GROUP_APIS, HELD_APIS
from kafka_protocol.coordinator_lines import Grammar, LineParser
from kafka_protocol.log_line import NUMBERED
from kafka_protocol.request_log import COMPLETED, LOGGER, PARTS_MS
from reference_coordinator.replay import EpochEvent, Evidence, Hint, HintKind, ObservedRequest
from reports.judgement.coordinator_epochs import EPOCH_EVENTS
from reports.judgement.parsing import ARRIVAL_ERROR_MS, HANDLING_DELAY_MS
from reports.judgement.run_folder import RunFolder
from reports.judgement.timeline import HINTS

Json = dict[str, Any]
Item = TypeVar("Item", ObservedRequest, Hint, EpochEvent)


class CompiledGrammar:
    """A grammar with its compiled patterns."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.line = re.compile(NUMBERED)
        self.coordinator = LineParser(grammar)


@dataclass(slots=True)
class ProcessLog:
    """The log of one broker process, with the times of its own clock."""

    requests: list[tuple[int, int, Json]] = field(default_factory=list)
    """Line number, nanoseconds, body."""
    lines: list[tuple[int, str, Json]] = field(default_factory=list)
    """Nanoseconds, template, fields."""
    differences_ms: list[float] = field(default_factory=list)

    def offset_ms(self) -> float:
        """Return the offset of the broker's clock, as `reading.Clocks` computes it."""
        return median_low(self.differences_ms) + 0.5

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
            offset_ms = process.offset_ms()
            seen: set[tuple[str, int]] = set()
            for number, nanos, body in process.requests:
                self._add_request(log.parent.name, number, nanos / 1e6 + offset_ms, body, seen)
            self.starts.append(
                EpochEvent(process.end_nanos() / 1e6 + offset_ms, log.parent.name, "ended")
            )
            for nanos, template, fields in process.lines:
                self._add_line(log.parent.name, nanos / 1e6 + offset_ms, template, fields)

    def _processes(self, log: Path) -> Iterator[ProcessLog]:
        compiled, process, broker = self.grammar, ProcessLog(), log.parent.name
        grammar = compiled.grammar
        with log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for number, text in enumerate(lines, 1):
                self.lines += 1
                match = compiled.line.match(text.rstrip("\r\n"))
                if match is None:
                    self.rejected += 1
                    continue
                _, ms, printed_ns, _, body, logger = match.groups()
                nanos = int(printed_ns)
                if body.endswith(grammar.first_line_end):
                    if process.differences_ms:
                        yield process
                    process = ProcessLog()
                process.differences_ms.append(int(ms) - nanos / 1e6)
                if logger == LOGGER and body.startswith(COMPLETED):
                    try:
                        process.requests.append((number, nanos, json.loads(body[len(COMPLETED) :])))
                    except ValueError:
                        self.rejected += 1
                elif logger not in grammar.irrelevant_loggers:
                    found = self._parsed(broker, logger, body)
                    if found is None:
                        self.rejected += 1
                    else:
                        process.lines.append((nanos, *found))
        if process.differences_ms:
            yield process

    def _parsed(self, broker: str, logger: str, body: str) -> tuple[str, Json] | None:
        """Parse a coordinator line; None if no template matches."""
        line = self.grammar.coordinator.parsed(broker, logger, body)
        if line.template is None:
            return None
        shard = {"partition": line.partition} if line.partition else {}
        return line.template, {**line.fields, **shard}

    def _add_request(
        self, broker: str, line: int, at_ms: float, body: Json, seen: set[tuple[str, int]]
    ) -> None:
        """Add a request, unless it is incomplete, a duplicate, or has inconsistent times."""
        try:
            header, request, response = body["requestHeader"], body["request"], body["response"]
            api, serial = header["requestApiKeyName"], header["correlationId"]
            queue, local, remote, *rest = (body[name] for name in PARTS_MS)
            total, connection, group = body["totalTimeMs"], body["connection"], request["groupId"]
            whole = "errorCode" in response or "topics" in response
            exact = abs(total - queue - local - remote - sum(rest)) < 1.0
            if not whole or not exact or api not in GROUP_APIS or (connection, serial) in seen:
                self.rejected += 1
                return
            read_ms = at_ms - total + queue
            done_ms = read_ms + local
            answered_ms = done_ms + remote
            observed = ObservedRequest(
                id=f"{broker}:{line}",
                broker=broker,
                api=api,
                api_version=header["requestApiVersion"],
                client_id=header["clientId"],
                connection=connection,
                earliest_ms=read_ms - ARRIVAL_ERROR_MS,
                at_ms=read_ms + local / 2,
                latest_ms=min(answered_ms, done_ms + HANDLING_DELAY_MS)
                if api in HELD_APIS
                else answered_ms,
                answered_ms=answered_ms,
                request=request,
                response=response,
                serial=serial,
            )
        except (KeyError, TypeError):
            self.rejected += 1
            return
        seen.add((connection, serial))
        self.requests[group].append(observed)

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
        kind = HINTS.get(template)
        if template == "preparing":
            classed = self.grammar.grammar.classed(fields["reason"])
            kind = "sync_expired" if classed and classed[0] == "pending_sync" else kind
        if kind is not None:
            subject = fields.get("instance" if template == "static_replaced" else "member") or ""
            generation = int(fields.get("generation") or -1)
            self.hints[group].append(Hint(at_ms, HintKind(kind), subject, generation, broker))

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
