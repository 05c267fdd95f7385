"""What the experiment expects: numbers of rebalances, owners in the end, and the verdict."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from reports.judgement.run.evidence_level import Level
from scenarios import Experiment
from scenarios.model import ExpectedVerdict, Range

Json = dict[str, Any]

UNOWNED = "partitions without owner"
"""What is counted where an experiment expects owners."""
NOTICED_MS = 5_000.0
"""How long clients that run may take to notice new partitions, and to be assigned them; or five
times as long as they may keep metadata. Measured: 1,864 ms at most, where they keep it for 1 s."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An expectation that was not met; `too_many` if the observed number is above its maximum."""

    group: str
    phase: str
    what: str
    expected: str
    observed: int
    too_many: bool
    most: float = inf
    """The most that was expected."""
    reason: str | None = None
    """The reason of the rebalances that are counted, if not all are."""
    proven: bool = True
    """Whether it is not met for certain: the reasons of some rebalances may be unknown."""

    @property
    def as_json(self) -> Json:
        """Its entry in `verdict.json`."""
        return {
            "group": self.group,
            "phase": self.phase,
            "what": self.what,
            "expected": self.expected,
            "observed": self.observed,
        }


def unmet(
    experiment: Experiment,
    counts: Counter[tuple[str, str, str]],
    unowned: Mapping[str, Sequence[str]],
    level: Level = Level.REQUESTS,
) -> tuple[Shortfall, ...]:
    """Return the unmet expectations of an experiment's `expect`.

    `counts` are observed rebalances by (group, phase, reason), `unowned` partitions without owner.
    At level `wire` a rebalance whose reason is not known may have any.
    """
    found: list[Shortfall] = []
    for wanted in experiment.bounds:
        mine = Counter[str]()
        for (group, phase, reason), count in counts.items():
            if group == wanted.group and wanted.phase in (None, phase):
                mine[reason] += count
        observed = mine[wanted.reason] if wanted.reason else mine.total()
        unknown = mine[""] if wanted.reason and level is Level.WIRE else 0
        about = (wanted.group, wanted.phase or "total", "rebalances")
        missed = _missed(*about, observed, wanted.rebalances, wanted.reason)
        if unknown:
            most = _missed(*about, observed + unknown, wanted.rebalances, wanted.reason)
            proven = bool(missed and most) and missed[0].too_many == most[0].too_many
            missed = [replace(one, proven=proven) for one in (missed or most)]
        found += missed
    for owners in experiment.owners:
        observed = len(unowned[owners.group])
        found += _missed(owners.group, "the end", UNOWNED, observed, owners.unowned)
    return tuple(found)


def had_time(item: Shortfall, ran_ms: float | None, experiment: Experiment) -> bool:
    """Tell whether an expectation was not met though its clients had the time for it.

    They ran for `ran_ms` while nothing changed, and did not notice new partitions (see `pace`).
    """
    if ran_ms is None or item.what != UNOWNED or not item.too_many:
        return False
    groups = (group for group in experiment.workload.groups if group.name == item.group)
    needs_ms = (5 * group.metadata_max_age_ms for group in groups)
    return ran_ms >= max((NOTICED_MS, *needs_ms))


def _missed(
    group: str, phase: str, what: str, observed: int, wanted: Range, reason: str | None = None
) -> list[Shortfall]:
    """Return an expectation if it was not met, else nothing."""
    low, high = wanted.min, wanted.max
    most = inf if high is None else high
    if low <= observed <= most:
        return []
    span = f"{low}" if low == high else f"{low}..{'' if high is None else high}"
    span += f" with reason {reason}" if reason else ""
    return [Shortfall(group, phase, what, span, observed, observed > most, most, reason)]


def expected_verdict(
    expected: ExpectedVerdict | None,
    verdict: str,
    broken: Mapping[str, Sequence[str]],
    proven: Collection[str],
    unmet: Sequence[Shortfall],
    unanswered: Collection[str] = (),
) -> Json | None:
    """Return the verdict that the experiment expects and whether it came true; None without one.

    `broken` are the broken promises by group, `proven` the groups with a proven finding, `unmet`
    the unmet expectations that prove something. An expected fail comes true only if the promise it
    names is the only one broken in the group it names, and nothing else is wrong in any group. For
    the reason `unowned`, all that is wrong must be partitions without owner, in that group, or in
    any group if none is named. For `unanswered`, all that is wrong must be requests that were never
    answered: `unanswered` are the groups where nothing else is proven.
    """
    if expected is None:
        return None
    came_true = verdict == expected.verdict
    if expected.verdict == "fail":
        short = {item.group for item in unmet}
        if expected.because == "unowned":
            ownerless = {item.group for item in unmet if item.what == UNOWNED and item.too_many}
            where = ownerless if expected.group is None else {expected.group}
            came_true = came_true and not proven and short == ownerless == where
        elif expected.because == "unanswered":
            came_true = came_true and {*unanswered} == {*proven, *short} == {expected.group}
        else:
            named = broken.get(expected.group or "", ()) == [expected.because]
            came_true = came_true and named and {*proven, *short} == {expected.group}
    return {
        "verdict": expected.verdict,
        "because": expected.because,
        "group": expected.group,
        "came_true": came_true,
    }


def described(expected: Mapping[str, Any]) -> str:
    """Write an expected verdict (`foretold` in `verdict.json`) in words."""
    because = f" because of {expected['because']}" if expected["because"] else ""
    where = f" in {expected['group']}" if expected["group"] else ""
    return f"{expected['verdict']}{because}{where}"
