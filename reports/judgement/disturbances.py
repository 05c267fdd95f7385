"""The one rule of what proves something: a difference beside the disturbances of its run.

All disturbances are listed first. Each difference has a window of its own, from its cause to its
observation. If that meets a disturbance which may explain such a difference, the difference is
unknown, and names it. Every other difference is proven.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import inf, isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Self

from reports.judgement import doubtful
from reports.judgement.breaches import LATE, OF_CLIENTS, Breach
from reports.judgement.coordinators.elections import unplanned_elections
from reports.judgement.findings import LENGTH_ALONE, Finding, possible_metadata_changes
from reports.judgement.rows import Json
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run.faults import outage_of
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.run_context import RunContext
from reports.judgement.timelines.compare import began_ms
from reports.judgement.timelines.member_lines import OF_LOADS
from reports.timing import AROUND_BUSY_MS, CATCHING_UP_MS, MATTERS_MS, WRITES_FAIL_MS

if TYPE_CHECKING:
    from reports.judgement.results import Results

MOST_GAPS = 1_000
"""From so many gaps on there may be more behind the last one that was read."""

SHOWN = 20  # how many disturbances a verdict lists that explain nothing

IS_BREACH: frozenset[str] = frozenset(Breach)
ACROSS_CLOCKS = OF_CLIENTS | {Breach.SENT_WHILE_DOWN}
"""The breaches that compare times of brokers with times of the journal, or of clients."""
EXPLAINS: Mapping[Source, Callable[[Finding], bool]] = {
    Source.PRESSURE: lambda one: one.kind not in IS_BREACH - LATE,
    Source.STANDSTILL: lambda _: False,  # the replay has it: its timers and answers may be late
    Source.WRITES: lambda one: one.kind not in IS_BREACH,
    Source.ELECTION: lambda one: one.kind not in IS_BREACH,
    Source.FAULT: lambda one: one.about in OF_LOADS,  # the rest of a fault the replay has, too
    Source.LOG: lambda _: True,
    Source.REQUESTS: lambda _: True,
    Source.UNSEEN: lambda _: True,
    Source.CLOCK: lambda _: True,
    Source.HISTORY: lambda one: one.kind in OF_CLIENTS,
    Source.UNREAD: lambda _: True,
}  # which differences a disturbance may explain, by where it is known from
LOSES_STATE = (Source.WRITES, Source.ELECTION, Source.LOG, Source.REQUESTS, Source.UNSEEN)
"""After these a group's state is not known for as long as its timers run."""


@dataclass(frozen=True)
class Disturbances:
    """The disturbances of a run, and what of its groups decides which of them concern it.

    `groups` are rows of the table `groups`, by group, `rebalances` those of the comparison, each
    with when it began, in ms, and whether it was as expected.
    """

    listed: Sequence[Disturbance]
    groups: Mapping[str, Json]
    rebalances: Mapping[str, Sequence[tuple[float, bool]]] = field(default_factory=dict)

    @classmethod
    def of_run(cls, run: RunFolder, data: "Results", unread: Mapping[str, str] = {}) -> Self:
        """List all that is known of a run; `unread` says why nothing about a group is proven."""
        listed = [
            *of_pressure(run.busy),
            *data.of_brokers,
            *_faults(run),
            *of_gaps(data.gaps),
            *_history(run, data.altered_history),
            *(_unread(cause, group) for group, cause in unread.items()),
            *(_unread(cause) for cause in doubtful.assumed(run)),
        ]
        if not data.tells_bytes:
            listed += [
                replace(_unread(LENGTH_ALONE, group), from_ms=at_ms)
                for group, at_ms in possible_metadata_changes(data.comparison).items()
            ]
        in_order = attrgetter("from_ms", "until_ms", "cause", "broker")
        rebalances: dict[str, list[tuple[float, bool]]] = defaultdict(list)
        for row in data.comparison:
            rebalances[row["group"]].append((began_ms(row), row["outcome"] == "match"))
        return cls(sorted(listed, key=in_order), data.groups, rebalances)

    def judged(self, found: Sequence[Finding]) -> list[Finding]:
        """Mark the findings that a disturbance may explain; the order stays.

        What follows one of these while the group's state is not known is a consequence of it.
        """
        judged: list[Finding] = []
        lost: dict[str, tuple[int, float]] = {}
        for place, one in enumerate(found):
            root, until_ms = lost.get(one.group, (None, -inf))
            if one.root is None and one.kind not in IS_BREACH and one.at_ms <= until_ms:
                one = replace(one, root=root)  # noqa: PLW2901
            if one.root is not None:
                cause = judged[one.root].may_be
                judged.append(one if cause is None else replace(one, proven=False, may_be=cause))
                continue
            may_be = next((d for d in self._of(one.group) if self._explains(d, one)), None)
            if may_be is not None:
                one = replace(one, proven=False, may_be=may_be)  # noqa: PLW2901
                if may_be.source in LOSES_STATE:
                    until_ms = may_be.until_ms + CATCHING_UP_MS + self._timers_ms(one.group)
                    lost[one.group] = place, max(until_ms, self._right_ms(one))
            judged.append(one)
        return judged

    def within(
        self, group: str, from_ms: float, until_ms: float, sources: Iterable[Source]
    ) -> Iterator[Disturbance]:
        """Yield those from some sources that concern a group in a time."""
        wanted = frozenset(sources)
        for one in self._of(group):
            if one.source in wanted and one.meets(from_ms, until_ms):
                yield one

    def as_json(
        self, run: RunFolder, found: Iterable[Finding], changed: Iterable[Disturbance]
    ) -> list[Json]:
        """List them as `verdict.json` does: those that make a finding, or a count, unknown first.

        And some of the others, of the time of the run. None stands for no begin or end.
        """
        used = Counter(one.may_be for one in found if one.may_be is not None and one.root is None)
        used.update(changed)
        began = dict(run.phases)
        of_run = min(began.values(), default=-inf), began.get("teardown", inf)
        others = [one for one in self.listed if one not in used and one.meets(*of_run)]
        ms = lambda at_ms: round(at_ms) if isfinite(at_ms) else None
        return [
            {
                "source": one.source,
                "broker": one.broker or None,
                "groups": None if one.groups is None else sorted(one.groups),
                "from_ms": ms(one.from_ms),
                "until_ms": ms(one.until_ms),
                "because": one.because,
                "explains": used[one],
            }
            for one in [*used, *others[:SHOWN]]
        ]

    @cached_property
    def _by_group(self) -> Mapping[str | None, Sequence[Disturbance]]:
        found: dict[str | None, list[Disturbance]] = defaultdict(list)
        for one in self.listed:
            for group in one.groups or (None,):
                found[group].append(one)
        return found

    def _of(self, group: str) -> Iterable[Disturbance]:
        return chain(self._by_group.get(None, ()), self._by_group.get(group, ()))

    def _explains(self, disturbance: Disturbance, one: Finding) -> bool:
        """Whether a disturbance may be why a difference is there."""
        source, (from_ms, until_ms) = disturbance.source, one.window
        if not EXPLAINS[source](one):
            return False
        if source is Source.PRESSURE and disturbance.is_of_machine and one.despite_lateness:
            return False
        if source is Source.CLOCK:
            serving = self.groups.get(one.group, {}).get("brokers", ())
            return one.kind in ACROSS_CLOCKS or {disturbance.broker} < {*serving}
        elsewhere = disturbance.broker and one.broker not in ("", disturbance.broker)
        if source in (Source.PRESSURE, Source.UNSEEN) and elsewhere:
            return False
        if source is Source.PRESSURE and one.is_early:  # its request may have come earlier
            from_ms -= self.groups.get(one.group, {}).get("max_session_timeout_ms") or 0.0
        if source is Source.REQUESTS:
            is_over = until_ms >= disturbance.until_ms  # until then its broker had the group
            if elsewhere and not is_over:
                return False
        if source in (Source.LOG, Source.REQUESTS, Source.UNSEEN) and one.kind in IS_BREACH:
            from_ms = -inf
        elif source in (Source.LOG, Source.REQUESTS):
            # a request that is missing started timers; one that a log lacks may have waited, too
            lasts_ms = self._timers_ms(one.group)
            from_ms -= lasts_ms
            until_ms += lasts_ms if source is Source.LOG else 0.0
        return disturbance.meets(from_ms, until_ms)

    def _right_ms(self, one: Finding) -> float:
        """Return when a rebalance was as expected again: no time brings a generation right."""
        after = [it for it in self.rebalances.get(one.group, ()) if it[0] > one.at_ms]
        right = (at_ms for at_ms, as_expected in after if as_expected)
        return next(right, max(after, default=(-inf, False))[0])

    def _timers_ms(self, group: str) -> float:
        """Return how long timers of a group run at most."""
        row = self.groups.get(group, {})
        names = ("max_rebalance_timeout_ms", "max_session_timeout_ms")
        return max(row.get(name) or 0.0 for name in names)


def of_pressure(busy: Iterable[Disturbance]) -> Iterator[Disturbance]:
    """Yield when brokers may have got no CPU; times next to each other are one."""
    spans: dict[tuple[str, bool], list[Disturbance]] = defaultdict(list)
    for one in sorted(busy, key=lambda one: (one.from_ms, one.until_ms)):
        from_ms, until_ms = one.from_ms - AROUND_BUSY_MS, one.until_ms + AROUND_BUSY_MS
        alike = spans[one.broker, one.is_of_machine]
        if alike and from_ms <= alike[-1].until_ms:
            alike[-1] = replace(alike[-1], until_ms=max(alike[-1].until_ms, until_ms))
        else:
            alike.append(replace(one, from_ms=from_ms, until_ms=until_ms))
    return chain.from_iterable(spans.values())


def of_brokers(context: RunContext, groups: Iterable[str]) -> Iterator[Disturbance]:
    """Yield when brokers stood still, and elections of groups' partitions without a fault."""
    yield from of_standstills(context.standstills)
    known = context.outages, context.stalls, context.grown_ms[1]
    for group in groups:
        partition = context.epochs.partition_of(group)
        for one in unplanned_elections(context.epochs, partition, *known):
            yield replace(one, groups=frozenset({group}))


def of_standstills(standstills: Iterable[Disturbance]) -> Iterator[Disturbance]:
    """Yield when brokers stood still, and when writes may have failed as one did for long."""
    for one in standstills:
        cause = f"broker {one.broker} stood still for {one.lasted_ms:,.0f} ms: {one.cause}"
        if one.lasted_ms >= MATTERS_MS:
            yield replace(one, cause=cause)
        if one.lasted_ms >= WRITES_FAIL_MS:
            until_ms = one.until_ms + CATCHING_UP_MS
            cause += "; writes may have failed, and other brokers taken over"
            yield replace(one, until_ms=until_ms, cause=cause, source=Source.WRITES)


def _faults(run: RunFolder) -> Iterator[Disturbance]:
    for fault in run.faults:
        if outage := outage_of(fault):
            cause = f"fault {fault['name']} on {fault['target']}, and what it takes to catch up"
            broker = fault["broker"] or ""
            yield Disturbance(broker, outage.from_ms, outage.until_ms, cause, Source.FAULT)


def of_gaps(gaps: Sequence[Disturbance]) -> Iterator[Disturbance]:
    """Yield when evidence is missing; after the last of many gaps there may be more."""
    last_ms = max((one.from_ms for one in gaps), default=inf)
    for one in gaps:
        is_last = len(gaps) >= MOST_GAPS and one.from_ms == last_ms
        yield replace(one, until_ms=inf) if is_last else one


def _history(run: RunFolder, altered: Sequence[str]) -> Iterator[Disturbance]:
    gone = [doubtful.HISTORY_GONE] if run.lost_history else []
    for cause in (*altered, *gone):
        yield Disturbance("", -inf, inf, cause, Source.HISTORY)


def _unread(cause: str, group: str | None = None) -> Disturbance:
    groups = None if group is None else frozenset({group})
    return Disturbance("", -inf, inf, cause, Source.UNREAD, groups)
