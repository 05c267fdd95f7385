"""Texts of several sources in, as they come; the counts of all groups, and storms, out.

All that it knows of groups is a `State`, which can be written down at any time: what goes on from
there, and reads again what there is, counts as if nothing had ended.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from hashlib import blake2b
from itertools import islice
from math import inf
from operator import attrgetter
from typing import NamedTuple

import msgspec

from groupquake.timing import HOLD_S
from groupquake.watch.group_counts import GroupCounts, GroupView, Storm
from reports.incident.lines.anchor import hinted
from reports.incident.lines.form import SAMPLES, recognised
from reports.incident.lines.reader import Line, Reader
from reports.incident.timing import BACK_MS

FOLDED = "folded"
"""The status of a line that came before: by another appender, or from a source that began again."""
RECENT = 20_000
"""How many lines of coordinators are remembered, so that they do not count again, or pending."""


class State(msgspec.Struct, tag_field="file", tag="groupquake watch"):
    """What is kept. `written_ns` belongs to what reads files.

    `samples` are a source's first lines of coordinators, by which its form is recognised. `pending`
    are lines that lines of an earlier time may still precede. `latest_ms` and `brokers` are of each
    process, that is of each source and constant text before its lines.
    """

    written_ns: dict[str, int] = {}
    samples: dict[str, list[str]] = {}
    groups: dict[str, GroupCounts] = {}
    pending: list[Line] = []
    recent: dict[int, None] = {}
    latest_ms: dict[str, float] = {}
    brokers: dict[str, str] = {}


class View(NamedTuple):
    """What is shown: groups; lines read, by status; and why the last one was rejected."""

    groups: list[GroupView]
    lines: Mapping[str, int]
    rejected: str


class Counting:
    """Counts what texts tell. Times `now_s` are of any clock that only goes forward."""

    def __init__(self, state: State, zone: tzinfo, pattern: str = "") -> None:
        """Go on from a state; `zone` and `pattern` are as for `report`. Raises EvidenceError."""
        recognised((), pattern)  # a bad pattern is one before any line comes
        self.state = state
        self._zone, self._pattern = zone, pattern
        self._readers: dict[str, Reader] = {}
        self._heard_s: dict[str, float] = {}
        self._again_ms: dict[str, float] = {}
        self._lines, self._rejected = Counter[str](), ""
        self._views = {name: one.view(name) for name, one in state.groups.items()}

    def begins(self, source: str) -> None:
        """Take note that a source begins anew, and may repeat what it gave."""
        for process, at_ms in self.state.latest_ms.items():
            if process.startswith(f"{source}\n"):
                self._again_ms[process] = at_ms - BACK_MS

    def take(self, source: str, texts: Sequence[str], now_s: float) -> None:
        """Take the next lines of a source, in their order."""
        samples = self.state.samples.setdefault(source, [])
        more = [*islice(filter(hinted, texts), SAMPLES - len(samples))]
        if more or source not in self._readers:
            samples += more
            self._readers[source] = Reader(recognised(samples, self._pattern), self._zone)
        for text in texts:
            read = self._readers[source].read(text)
            fresh = [line for line in read.lines if self._is_fresh(source, line, now_s)]
            self._lines[read.status if fresh or not read.lines else FOLDED] += 1
            self._rejected = read.why or self._rejected

    def settle(self, now_s: float) -> list[Storm]:
        """Count the lines that no line of an earlier time may precede; return storms that begin.

        A process is waited for while it writes. At the infinite time all lines are counted.
        """
        latest_ms, pending = self.state.latest_ms, self.state.pending
        awaited = (latest_ms[one] for one, at_s in self._heard_s.items()
                   if one in latest_ms and now_s - at_s < HOLD_S)  # fmt: skip
        pending.sort(key=attrgetter("at_ms"))  # stable: of one time, as they came
        until_ms = min(awaited, default=inf) - BACK_MS
        settled = bisect_right(pending, until_ms, key=attrgetter("at_ms"))
        settled = max(settled, len(pending) - RECENT)  # the clock of a process may be late
        begun: list[Storm] = []
        names = dict.fromkeys(line.group or "" for line in pending[:settled])
        for line in pending[:settled]:
            group = self.state.groups.setdefault(line.group or "", GroupCounts())
            begun += group.take(line)
        del pending[:settled]
        self._views |= {name: self.state.groups[name].view(name) for name in names}
        return begun

    def view(self) -> View:
        """Return what is shown now; later changes do not change it."""
        groups = sorted(self._views.values(), key=lambda one: (-one.rebalances, one.name))
        return View(groups, dict(self._lines), self._rejected)

    def _is_fresh(self, source: str, line: Line, now_s: float) -> bool:
        """Put a line among the pending ones, unless it came before."""
        state, process = self.state, f"{source}\n{line.source}"
        broker = line.broker or state.brokers.get(process, "")
        state.brokers[process] = broker
        named = f"{process}\n{broker}"
        self._heard_s[named] = now_s
        same = f"{broker}\n{line.at_ms}\n{line.text}".encode(errors="replace")
        key = int.from_bytes(blake2b(same, digest_size=7).digest())
        if key in state.recent or line.at_ms < self._again_ms.get(named, -inf):
            return False
        state.recent[key] = None
        if len(state.recent) > RECENT:
            del state.recent[next(iter(state.recent))]
        state.latest_ms[named] = max(line.at_ms, state.latest_ms.get(named, -inf))
        if line.group is not None:
            state.pending.append(line._replace(broker=broker))
        return True
