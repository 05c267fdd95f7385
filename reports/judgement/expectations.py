"""What the experiment itself asks for: rebalances by group, phase and reason; owners in the end."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios import Experiment
from scenarios.model import ExpectedVerdict, Range

Json = dict[str, Any]

UNOWNED = "partitions without owner"
"""What is counted where an experiment asks for owners."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An expectation that was not met."""

    group: str
    phase: str
    what: str
    expected: str
    observed: int
    too_many: bool


def unmet(
    experiment: Experiment,
    counts: Counter[tuple[str, str, str]],
    unowned: Mapping[str, Sequence[str]],
) -> tuple[Shortfall, ...]:
    """Compare with `expect` what was observed.

    That is rebalances, by (group, phase, reason), and the partitions without owner, by group.
    """
    short: list[Shortfall] = []
    for wanted in experiment.bounds:
        observed = sum(
            count
            for (group, phase, reason), count in counts.items()
            if group == wanted.group
            and wanted.phase in (None, phase)
            and wanted.reason in (None, reason)
        )
        because = f" with reason {wanted.reason}" if wanted.reason else ""
        phase = wanted.phase or "total"
        short += _missed(wanted.group, phase, "rebalances", observed, wanted.rebalances, because)
    for owners in experiment.owners:
        observed = len(unowned[owners.group])
        short += _missed(owners.group, "the end", UNOWNED, observed, owners.unowned)
    return tuple(short)


def _missed(
    group: str, phase: str, what: str, observed: int, wanted: Range, because: str = ""
) -> list[Shortfall]:
    """Return the expectation if it was not met, else nothing."""
    low, high = wanted.min, wanted.max
    too_many = high is not None and observed > high
    if observed >= low and not too_many:
        return []
    span = f"{low}" if low == high else f"{low}..{'' if high is None else high}"
    return [Shortfall(group, phase, what, f"{span}{because}", observed, too_many)]


def expected_verdict(
    foretold: ExpectedVerdict | None,
    verdict: str,
    broken: Mapping[str, Sequence[str]],
    proven: Collection[str],
    unmet: Sequence[Shortfall],
) -> Json | None:
    """Say what was foretold, and whether it came true; None if nothing was.

    `broken` are the promises that are broken, by group; in the groups `proven` something is proven
    to be wrong, `unmet` are the counts that prove something. A fail counts if it breaks the promise
    that is named, in the group that is named, and all that is wrong is wrong there; or, where that
    is foretold, if nothing is wrong but in groups whose partitions have no owner.
    """
    if foretold is None:
        return None
    came_true = verdict == foretold.verdict
    if foretold.verdict == "fail":
        short = {item.group for item in unmet}
        if foretold.because == "unowned":
            ownerless = {item.group for item in unmet if item.what == UNOWNED and item.too_many}
            where = ownerless if foretold.group is None else {foretold.group}
            came_true = came_true and not proven and short == ownerless == where
        else:
            named = broken.get(foretold.group or "", ()) == [foretold.because]
            came_true = came_true and named and {*proven, *short} == {foretold.group}
    return {
        "verdict": foretold.verdict,
        "because": foretold.because,
        "group": foretold.group,
        "came_true": came_true,
    }


def described(foretold: Mapping[str, Any]) -> str:
    """Say what was foretold."""
    because = f" because of {foretold['because']}" if foretold["because"] else ""
    where = f" in {foretold['group']}" if foretold["group"] else ""
    return f"{foretold['verdict']}{because}{where}"
