"""Reads a recording without Spark: its brokers' lines, and the evidence of each group.

The same reading as in `reports.reading`, in plain Python and for logs that are whole.
"""

import json
import lzma
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import Any

from reference_coordinator.profiles import Profile, Settings
from reference_coordinator.releases import profile_for
from reference_coordinator.replay import Evidence, Hint, HintKind, Observed, Serving
from reports.grammar import GRAMMARS, Grammar
from reports.offices import SERVINGS
from reports.parsing import COMPLETED, DATED, EARLY_MS, MAY_PARK, NUMBERED, TURN_MS
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


@dataclass(frozen=True)
class Recording:
    """A recorded run folder."""

    folder: Path

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Versions and settings."""
        content: dict[str, Any] = json.loads((self.folder / "environment.json").read_text())
        return content

    @property
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

    @property
    def numbered(self) -> bool:
        """Whether lines carry serial numbers."""
        return self.environment["kafka_version"].startswith("4.")

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines, broker by broker, as they stand in the logs."""
        logs = sorted(self.folder.glob("brokers/*/group.log.xz"))
        return tuple(line for log in logs for line in self._read(log))

    def _read(self, log: Path) -> Iterator[Line]:
        form = re.compile(NUMBERED if self.numbered else DATED)
        lives: list[list[tuple[int, re.Match[str]]]] = []
        for number, text in enumerate(lzma.decompress(log.read_bytes()).decode().splitlines(), 1):
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
                yield self._understood(line)

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

    def _understood(self, line: Line) -> Line:
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

    @cache  # noqa: B019 (a recording lives as long as the tests)
    def evidence(self, group: str) -> Evidence:
        """Collect what is known of a group."""
        mine = defaultdict(list)
        for line in self.lines:
            if line.request is not None and line.request["request"]["groupId"] == group:
                mine["requests"].append(line.observed)
            elif line.fields.get("group") == group and line.template in HINTS:
                mine["hints"].append(self._hint(line))
            elif line.template == "starting":
                mine["servings"].append(Serving(line.at_ms, line.broker, "started"))
            elif line.template in SERVINGS and (
                line.fields["partition"] == self.partitions.get(group)
            ):
                kind = SERVINGS[line.template]
                mine["servings"].append(Serving(line.at_ms, line.broker, kind))
        mine["servings"] += [Serving(end.at_ms, end.broker, "ended") for end in self.last_lines]
        in_order = {name: tuple(sorted(mine[name], key=_time)) for name in mine}
        return Evidence(group, **in_order)

    def _hint(self, line: Line) -> Hint:
        subject = line.fields.get(
            "instance" if line.template == "static_replaced" else "member", ""
        )
        return Hint(
            line.at_ms,
            HintKind(HINTS[line.template]),
            subject,
            int(line.fields.get("generation", -1)),
            line.broker,
        )


def _time(item: Observed | Hint | Serving) -> float:
    return item.at_ms


RECORDINGS = {
    folder.name: Recording(folder)
    for folder in sorted(Path(__file__).parent.iterdir())
    if (folder / "environment.json").exists()
}
"""All recordings that the tests have."""
