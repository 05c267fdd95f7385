"""Reads a run folder without Spark: its brokers' lines, and the evidence of each group.

The same reading as in `reports.reading`, in plain Python and for logs that are whole, as they were
written or compressed (`group.log`, `group.log.xz`).
"""

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from reference_coordinator.profiles import Profile, Settings
from reference_coordinator.releases import profile_for
from reference_coordinator.replay import Evidence, Hint, HintKind, Observed, Serving
from reports.grammar import GRAMMARS, Grammar
from reports.offices import SERVINGS
from reports.parsing import COMPLETED, DATED, EARLY_MS, MAY_PARK, NUMBERED, TURN_MS
from reports.run_folder import RunFolder
from reports.timeline import HINTS


@dataclass(frozen=True)
class Line:
    """One line. `template` and `fields` are what the grammar makes of a coordinator's line."""

    broker: str
    number: int
    life: int
    at_ms: float
    thread: str
    level: str
    text: str
    logger: str
    template: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def request(self) -> dict[str, Any] | None:
        """The request that it tells of, if it does."""
        if not self.text.startswith(COMPLETED):
            return None
        told: dict[str, Any] = json.loads(self.text.removeprefix(COMPLETED))
        return told

    @property
    def group(self) -> str:
        """The group that its request is about, "" if it tells of none."""
        return "" if self.request is None else str(self.request["request"]["groupId"])

    @property
    def observed(self) -> Observed:
        """The request as the oracle sees it."""
        told = self.request
        assert told is not None
        header = told["requestHeader"]
        taken = self.at_ms - told["totalTimeMs"] + told["requestQueueTimeMs"]
        done = taken + told["localTimeMs"]
        answered = done + told["remoteTimeMs"]
        api = header["requestApiKeyName"]
        return Observed(
            id=f"{self.broker}:{self.number}",
            broker=self.broker,
            api=api,
            api_version=header["requestApiVersion"],
            client_id=header["clientId"],
            connection=told["connection"],
            earliest_ms=taken - EARLY_MS,
            at_ms=taken + told["localTimeMs"] / 2,
            latest_ms=min(answered, done + TURN_MS) if api in MAY_PARK else answered,
            answered_ms=answered,
            request=told["request"],
            response=told["response"],
            serial=header["correlationId"],
        )


@dataclass(frozen=True, eq=False)
class Recording:
    """A recorded run folder."""

    folder: Path

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Versions and settings."""
        content: dict[str, Any] = json.loads((self.folder / "environment.json").read_text())
        return content

    @cached_property
    def profile(self) -> Profile:
        """The rules of its coordinator under its settings."""
        environment = self.environment
        profile = profile_for(environment["kafka_version"], environment["coordinator"])
        assert profile is not None
        return profile.with_settings(Settings.from_properties(environment["broker_config"]))

    @property
    def grammar(self) -> Grammar:
        """The lines of its coordinator."""
        return GRAMMARS[self.environment["coordinator"]]

    @cached_property
    def run(self) -> RunFolder:
        """What the folder tells beside the logs."""
        return RunFolder(self.folder)

    @property
    def numbered(self) -> bool:
        """Whether lines carry serial numbers."""
        return self.run.numbered_lines

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines, broker by broker, as they stand in the logs."""
        logs = sorted(self.folder.glob("brokers/*/group.log*"))
        return tuple(line for log in logs for line in self._read(log))

    def _read(self, log: Path) -> Iterator[Line]:
        form = re.compile(NUMBERED if self.numbered else DATED)
        lives: list[list[tuple[int, re.Match[str]]]] = []
        content = log.read_bytes()
        written = lzma.decompress(content) if log.suffix == ".xz" else content
        for number, text in enumerate(written.decode().splitlines(), 1):
            match = form.match(text)
            assert match is not None, text
            if match[form.groups - 1].endswith(self.grammar.first_words):
                lives.append([])
            lives[-1].append((number, match))
        for life, told in enumerate(lives, 1):
            times = self._times([match for _, match in told])
            for (number, match), at_ms in zip(told, times, strict=True):
                thread = match[0].split(" ")[3 if self.numbered else 2]
                level, text, logger = match.groups()[-3:]
                line = Line(log.parent.name, number, life, at_ms, thread, level, text, logger)
                yield self.understood(line)

    def _times(self, told: list[re.Match[str]]) -> list[float]:
        """Put the lines of one life on fine UTC time."""
        if self.numbered:
            offset = median(int(m[2]) - int(m[3]) / 1e6 for m in told) + 0.5
            return [int(m[3]) / 1e6 + offset for m in told]
        within: Counter[float] = Counter()
        times = []
        for match in told:
            logged = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
            now = round(logged.timestamp() * 1000)
            within[now] += 1
            times.append(now + 0.5 + within[now] / 1000)
        return times

    def understood(self, line: Line) -> Line:
        """Match a coordinator's line against the templates."""
        prefix = re.match(self.grammar.prefix, line.text)
        if not line.logger.startswith(self.grammar.loggers) or prefix is None:
            return line
        for template in self.grammar.templates:
            found = re.match(template.regex, prefix[3]) if line.logger in template.loggers else None
            if found is not None:
                told = dict(zip(template.fields, found.groups(), strict=True))
                shard = {"partition": prefix[2]} if prefix[2] else {}
                return Line(
                    **{k: v for k, v in vars(line).items() if k not in ("template", "fields")},
                    template=template.name,
                    fields=shard | told,
                )
        return line

    @property
    def last_lines(self) -> tuple[Line, ...]:
        """The line with which each life of a broker ends."""
        return tuple({(line.broker, line.life): line for line in self.lines}.values())

    @property
    def ends(self) -> tuple[Line, ...]:
        """Where each life of a broker ends for its groups: as it begins to shut down, at least."""
        ends = {(line.broker, line.life): line for line in self.last_lines}
        downs = (line for line in self.lines if line.template == "shutting_down")
        return tuple((ends | {(line.broker, line.life): line for line in downs}).values())

    @cached_property
    def partitions(self) -> dict[str, str]:
        """The offsets partition of each group."""
        return {
            line.fields["group"]: line.fields["partition"]
            for line in self.lines
            if {"group", "partition"} <= line.fields.keys()
        }

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups of which there are requests."""
        told = (line.request for line in self.lines)
        return tuple(sorted({str(request["request"]["groupId"]) for request in told if request}))

    def loads(self, partition: str) -> tuple[Line, ...]:
        """Return what brokers say of a partition that they take up or give up.

        Java says that it is about to load before it looks whether it has to: that is none.
        """
        mine = [line for line in self.lines if line.fields.get("partition") == partition]
        turns = [line for line in mine if line.template in {*SERVINGS, "load_ignored"}]
        following = {
            id(line): after
            for broker in {line.broker for line in turns}
            for line, after in pairwise(turn for turn in turns if turn.broker == broker)
        }
        return tuple(
            line
            for line in turns
            if line.template != "load_ignored"
            and not (
                line.template == "loading"
                and id(line) in following
                and following[id(line)].template == "load_ignored"
            )
        )

    @cache  # noqa: B019 (there are few recordings, and they are needed to the end)
    def evidence(self, group: str) -> Evidence:
        """Collect what is known of a group."""
        requests = [line.observed for line in self.lines if line.group == group and line.request]
        hints = [self._hint(line) for line in self.lines if line.fields.get("group") == group]
        servings = [
            Serving(line.at_ms, line.broker, "started")
            for line in self.lines
            if line.template == "starting"
        ]
        servings += [
            Serving(line.at_ms, line.broker, SERVINGS[line.template])
            for line in self.loads(self.partitions.get(group, ""))
        ]
        servings += [Serving(end.at_ms, end.broker, "ended") for end in self.ends]
        return Evidence(
            group,
            tuple(sorted(requests, key=_time)),
            tuple(sorted(filter(None, hints), key=_time)),
            tuple(sorted(servings, key=_time)),
        )

    def evidence_with_faults(self, group: str) -> Evidence:
        """Collect what is known of a group, also of when its brokers stood still or were down."""
        return replace(self.evidence(group), stalls=self.run.stalls, outages=self.run.outages)

    def reason(self, line: Line) -> tuple[str, str]:
        """Return the class of a "Preparing" line's reason, and the member that it names."""
        told = line.fields.get("reason", "")
        for name, regex in self.grammar.reasons:
            if found := re.search(regex, told):
                return name, found[1]
        return told, ""

    def _hint(self, line: Line) -> Hint | None:
        kind = HINTS.get(line.template)
        if line.template == "preparing" and self.reason(line)[0] == "pending_sync":
            kind = "sync_expired"
        if kind is None:
            return None
        subject = line.fields.get(
            "instance" if line.template == "static_replaced" else "member", ""
        )
        generation = int(line.fields.get("generation", -1))
        return Hint(line.at_ms, HintKind(kind), subject, generation, line.broker)


def _time(item: Observed | Hint | Serving) -> float:
    return item.at_ms
