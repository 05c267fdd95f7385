"""Whether what an experiment foretells came true: the verdict, and for the reason that it names."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from reports.expectations import Shortfall
from reports.wording import UNOWNED
from scenarios.model import ExpectedVerdict

Json = dict[str, Any]


def told(
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
