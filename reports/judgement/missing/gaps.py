"""Gaps: where evidence is missing or unreadable, and which of them the run's faults explain."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from reports.judgement.log.log_places import LogPlaces, log_of
from reports.judgement.log.processes import END_MISSING, START_MISSING
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run.evidence_level import Level

if TYPE_CHECKING:  # executors have no experiments
    from reports.judgement.run.run_folder import RunFolder

ENDS_OF_GROUPS = ("groups_deleted", "group_expired", "tombstones")
"""Templates of lines about groups that are deleted or expire. No request of the group tells the
oracle of it, and the next request finds no group."""
OFFSETS_REMOVED = "offsets_removed"
ENDS_OF_OFFSETS = ("offsets_expired", OFFSETS_REMOVED)
"""Templates of lines about committed offsets that are deleted, without their groups."""
REMOVED_NONE = "(Removed|Generated) 0 "
"""What such a line says if it deleted none, as a regular expression."""
_TOPIC = re.compile(r"name=([^],]+)")
_PARTITION = re.compile(r"([A-Za-z0-9._-]+)-[0-9]+(?=[],]|$)")
"""A deleted topic, or else one of its partitions, in such a line."""
NOT_UNDERSTOOD, NUL = "line not understood", "\0"
CLOCK_OFF_MS = 1_000.0
"""How far a broker's clock may be from the journal's. Where both run on one machine they are the
same; in the recorded runs brokers end 25 to 10,000 ms after the teardown began, and at most 250 ms
after it was noted as over."""
KILL_MS = 1_000.0
"""How long after the journal's entry of a kill a broker's last line may be stamped."""
_DELETION = "a group or its offsets may have been deleted, which is not replayed"


@dataclass(frozen=True, slots=True)
class Gap:
    """A place where evidence is missing or unreadable; line 0 stands for the whole log.

    `at_ms` is None if its time is missing, too. What is missing of a `group` alone came since
    `from_ms`. One that is not `sure` is no doubt in itself.
    """

    broker: str
    line: int
    at_ms: float | None
    what: str
    topics: frozenset[str] = frozenset()
    """The topics whose offsets were removed with them, if that is all that the line tells."""
    source: Source = Source.LOG
    group: str = ""
    from_ms: float | None = None
    sure: bool = True

    @property
    def disturbance(self) -> Disturbance:
        """When, and to which groups, something may have happened that is in no log.

        That is the time of one line, unless the rest of the log is missing, or a group that was
        deleted.
        """
        whole = self.at_ms is None
        from_ms = self.from_ms if self.from_ms is not None else self.at_ms
        lasts = whole or self.what in (START_MISSING, END_MISSING) or _DELETION in self.what
        return Disturbance(
            self.broker,
            -inf if from_ms is None else from_ms,
            inf if lasts or self.at_ms is None else self.at_ms,
            f"{self.what} (broker {self.broker})",
            self.source,
            frozenset({self.group}) if self.group else None,
        )

    def described(self, places: LogPlaces) -> str:
        """Tell the file, the line in it, and what is missing."""
        whole = log_of(self.broker, places.folder)
        at = places.written(self.broker, self.line) if self.line else whole
        return f"{at}: {self.what}"


def unreadable(row: Mapping[str, Any]) -> Gap:
    """Make a gap of a line that no template matches."""
    what = f"{NOT_UNDERSTOOD}: {row['text'].replace(NUL, '')[:120]}"
    return Gap(row["broker"], row["line"], row["at_ms"], what)


def missing(row: Mapping[str, Any]) -> Gap:
    """Make a gap of a row of the table `lost`."""
    return Gap(row["broker"], row["line"], row["at_ms"], row["what"])


def unlogged(row: Mapping[str, Any]) -> Gap:
    """Make a gap of a row of the table `unlogged`."""
    return replace(
        missing(row),
        source=Source.REQUESTS if row["sure"] else Source.UNSEEN,
        group=row["group"],
        from_ms=row["from_ms"],
        sure=row["sure"],
    )


def possible_deletion(row: Mapping[str, Any]) -> Gap:
    """Make a gap of a line after which a group, or its offsets, may be deleted without a request.

    Their requests, DeleteGroups and OffsetDelete, are not logged.
    """
    text = row["message"].rstrip(".") if row["template"] == OFFSETS_REMOVED else ""
    topics = frozenset(_TOPIC.findall(text) or _PARTITION.findall(text))
    what = f"{_DELETION}: {row['message'][:300]}"
    return Gap(row["broker"], row["line"], row["at_ms"], what, topics)


def missing_log(broker: str) -> Gap:
    """Make a gap of a broker's log that does not exist."""
    return Gap(broker, 0, None, "the whole log is missing")


def wrong_start_counts(in_logs: Mapping[str, int], run: "RunFolder") -> list[Gap]:
    """Make gaps of logs with fewer starts of their brokers than the journal has, or more.

    `in_logs` counts the starts in each log that exists. A log that was cut exactly between two
    processes shows in no other way. Where the run itself died, nothing is compared: the end of its
    journal was written by `groupquake heal`.
    """
    if not run.completed:
        return []
    started = run.starts
    unsure = {fault["broker"] for fault in run.faults if fault["open"]}
    return [
        Gap(
            broker,
            0,
            None,
            f"{count} starts of the broker are in the log, {started[broker]} in the journal",
        )
        for broker, count in in_logs.items()
        if count < started[broker] or (count > started[broker] and broker not in unsure)
    ]


def wrong_clocks(ended_ms: Mapping[str, float], run: "RunFolder") -> list[Gap]:
    """Make gaps of brokers whose clock is not the journal's: they end outside of the teardown.

    `ended_ms` are the times of the last lines of brokers whose logs are whole. The journal notes
    the teardown before the brokers are stopped, and its end after it. Times of such a broker say
    nothing beside those of the journal or of other brokers, so nothing is proven.
    """
    teardown = run.teardown if run.completed else None
    if teardown is None:
        return []
    first_ms, last_ms = teardown[0] - CLOCK_OFF_MS, teardown[1] + CLOCK_OFF_MS
    off_ms = {
        broker: min(at_ms - first_ms, 0.0) or max(at_ms - last_ms, 0.0)
        for broker, at_ms in ended_ms.items()
    }
    return [
        Gap(broker, 0, None, f"its clock is {abs(ms) + CLOCK_OFF_MS:.0f} ms or more "
            f"{'behind' if ms < 0 else 'ahead of'} that of the journal", source=Source.CLOCK)
        for broker, ms in sorted(off_ms.items())
        if ms
    ]  # fmt: skip


def unexplained(gaps: Sequence[Gap], run: "RunFolder") -> list[Gap]:
    """Drop the gaps that the run's own faults explain.

    The log of a broker that ran before begins where the run began. All of its groups are new. No
    fault ends the tap, or deletes what it wrote: at level `wire` all gaps are left.
    """
    if run.level is Level.WIRE:
        return list(gaps)
    left = [gap for gap in gaps if not is_about_topics(run.deleted, gap)]
    whole = without_cuts(without_kills(left, run.log_lines), run.cut_short)
    return [gap for gap in whole if run.outside is None or gap.what != START_MISSING]


def is_about_topics(deleted: Collection[str], gap: Gap) -> bool:
    """Tell whether offsets were removed with these topics, and with no other."""
    return bool(gap.topics) and gap.topics <= set(deleted)


def without_kills(gaps: Sequence[Gap], log_lines: Mapping[tuple[str, float], int]) -> list[Gap]:
    """Drop the gaps that kills explain: a log that ends there, and a truncated last line.

    Each kill ends one process of one log. Everything that a broker wrote is on disk when it is
    killed: `log_lines` says, by broker and ms, how many lines that were. A log with fewer was cut.
    """
    left = list(gaps)
    for (broker, killed_ms), lines in sorted(log_lines.items()):
        ends = [
            gap
            for gap in left
            if (gap.broker, gap.what) == (broker, END_MISSING)
            and gap.at_ms is not None
            and gap.at_ms <= killed_ms + KILL_MS
            and lines <= gap.line
        ]
        left = _without_last(left, ends)
    return left


def without_cuts(gaps: Sequence[Gap], cut_short: Collection[str]) -> list[Gap]:
    """Drop the missing ends of the logs of brokers (ids) that were killed as they did not stop.

    Their logs are known to be as long as when they were killed.
    """
    left = list(gaps)
    for broker in cut_short:
        left = _without_last(left, [g for g in left if (g.broker, g.what) == (broker, END_MISSING)])
    return left


def _without_last(gaps: list[Gap], ends: Sequence[Gap]) -> list[Gap]:
    """Drop the last of some missing ends of a log, and the truncated line that may follow it."""
    if not ends:
        return gaps
    end = max(ends, key=lambda gap: gap.line)
    return [gap for gap in gaps if gap != end and not _cut_off(gap, end)]


def _cut_off(gap: Gap, end: Gap) -> bool:
    """Whether a gap is the truncated line that follows the end of a log."""
    behind = (gap.broker, gap.line) == (end.broker, end.line + 1)
    return behind and gap.what.startswith(NOT_UNDERSTOOD)
