"""The opponent: one process, one loop, no Spark, around the same oracle.

It reads the same lines, understands them by the same grammar and builds the same evidence for the
same `replay`; every line is read once, every body parsed once. What the pipeline does beyond that
it leaves out: it stores no tables and lays no timelines side by side.
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


class Words:
    """A grammar, ready to match lines one after the other."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.line = re.compile(NUMBERED)
        self.coordinator = LineParser(grammar)


@dataclass(slots=True)
class Life:
    """What a broker's log holds from one start to the next, with the times of its own clock."""

    asked: list[tuple[int, int, Json]] = field(default_factory=list)
    """Line number, nanoseconds, body."""
    told: list[tuple[int, str, Json]] = field(default_factory=list)
    """Nanoseconds, template, fields."""
    apart_ms: list[float] = field(default_factory=list)

    def offset_ms(self) -> float:
        """Return what is to be added to the broker's clock, as `reading.Clocks` does."""
        return median_low(self.apart_ms) + 0.5

    def end_nanos(self) -> int:
        """Return when the broker began to shut down, or else its last line."""
        down = [nanos for nanos, template, _ in self.told if template == "shutting_down"]
        lines = [nanos for nanos, *_ in self.told] + [nanos for _, nanos, _ in self.asked]
        return min(down or [max(lines, default=0)])


@dataclass(slots=True)
class Reader:
    """Collects the evidence of all groups from log after log."""

    words: Words
    lines: int = 0
    rejected: int = 0
    requests: dict[str, list[ObservedRequest]] = field(default_factory=lambda: defaultdict(list))
    hints: dict[str, list[Hint]] = field(default_factory=lambda: defaultdict(list))
    loads: dict[int, list[EpochEvent]] = field(default_factory=lambda: defaultdict(list))
    starts: list[EpochEvent] = field(default_factory=list)
    partitions: dict[str, int] = field(default_factory=dict)

    def read(self, log: Path) -> None:
        """Read one broker's log."""
        for life in self._lives(log):
            offset_ms = life.offset_ms()
            seen: set[tuple[str, int]] = set()
            for number, nanos, body in life.asked:
                self._ask(log.parent.name, number, nanos / 1e6 + offset_ms, body, seen)
            self.starts.append(
                EpochEvent(life.end_nanos() / 1e6 + offset_ms, log.parent.name, "ended")
            )
            for nanos, template, fields in life.told:
                self._tell(log.parent.name, nanos / 1e6 + offset_ms, template, fields)

    def _lives(self, log: Path) -> Iterator[Life]:
        words, life, broker = self.words, Life(), log.parent.name
        grammar = words.grammar
        with log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for number, text in enumerate(lines, 1):
                self.lines += 1
                match = words.line.match(text.rstrip("\r\n"))
                if match is None:
                    self.rejected += 1
                    continue
                _, ms, printed_ns, _, body, logger = match.groups()
                nanos = int(printed_ns)
                if body.endswith(grammar.first_words):
                    if life.apart_ms:
                        yield life
                    life = Life()
                life.apart_ms.append(int(ms) - nanos / 1e6)
                if logger == LOGGER and body.startswith(COMPLETED):
                    try:
                        life.asked.append((number, nanos, json.loads(body[len(COMPLETED) :])))
                    except ValueError:
                        self.rejected += 1
                elif logger not in grammar.irrelevant_loggers:
                    found = self._told(broker, logger, body)
                    if found is None:
                        self.rejected += 1
                    else:
                        life.told.append((nanos, *found))
        if life.apart_ms:
            yield life

    def _told(self, broker: str, logger: str, body: str) -> tuple[str, Json] | None:
        """Understand a coordinator's line."""
        line = self.words.coordinator.parsed(broker, logger, body)
        if line.template is None:
            return None
        shard = {"partition": line.partition} if line.partition else {}
        return line.template, {**line.fields, **shard}

    def _ask(
        self, broker: str, line: int, at_ms: float, body: Json, seen: set[tuple[str, int]]
    ) -> None:
        """Take a request, if all of it is there, once, and its time is the sum of its parts."""
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
            taken_ms = at_ms - total + queue
            done_ms = taken_ms + local
            answered_ms = done_ms + remote
            observed = ObservedRequest(
                id=f"{broker}:{line}",
                broker=broker,
                api=api,
                api_version=header["requestApiVersion"],
                client_id=header["clientId"],
                connection=connection,
                earliest_ms=taken_ms - ARRIVAL_ERROR_MS,
                at_ms=taken_ms + local / 2,
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

    def _tell(self, broker: str, at_ms: float, template: str, fields: Json) -> None:
        """Take what a coordinator's line says of an instant, or of who serves a partition."""
        if template == "starting":
            self.starts.append(EpochEvent(at_ms, broker, "started"))
        elif template in EPOCH_EVENTS:
            serving = EpochEvent(at_ms, broker, EPOCH_EVENTS[template])
            self.loads[int(fields["partition"])].append(serving)
        group = fields.get("group")
        if group is None:
            return
        if "partition" in fields:
            partition = int(fields["partition"])
            self.partitions[group] = min(partition, self.partitions.get(group, partition))
        kind = HINTS.get(template)
        if template == "preparing":
            classed = self.words.grammar.classed(fields["reason"])
            kind = "sync_expired" if classed and classed[0] == "pending_sync" else kind
        if kind is not None:
            subject = fields.get("instance" if template == "static_replaced" else "member") or ""
            generation = int(fields.get("generation") or -1)
            self.hints[group].append(Hint(at_ms, HintKind(kind), subject, generation, broker))

    def evidence(self, run: RunFolder) -> Iterator[Evidence]:
        """Yield what is known of each group, and let go of it."""
        for group in sorted(self.requests.keys() | self.hints.keys() | self.partitions.keys()):
            held = group in self.partitions
            servings = [*self.starts, *self.loads[self.partitions[group]]] if held else []
            yield Evidence(
                group,
                _in_time(self.requests.pop(group, ())),
                _in_time(self.hints.pop(group, ())),
                _in_time(servings),
                run.stalls,
                run.outages,
            )


def read(run: RunFolder) -> Reader:
    """Read the logs of all brokers of a run."""
    reader = Reader(Words(run.grammar))
    for log in sorted(run.path.glob("brokers/*/group.log")):
        reader.read(log)
    return reader


def _in_time(items: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(sorted(items, key=lambda item: item.at_ms))
