"""Whether what an experiment foretells came true: the verdict, and for the reason that it names."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from scenarios.model import Foretold

Json = dict[str, Any]


def told(
    foretold: Foretold | None,
    verdict: str,
    broken: Mapping[str, Sequence[str]],
    wrong: Collection[str],
) -> Json | None:
    """Say what was foretold, and whether it came true; None if nothing was.

    `broken` are the promises that are broken, by group; in the groups `wrong` something is proven
    to be wrong. A fail counts if it breaks the promise that is named, in the group that is named,
    and all that is wrong is wrong there.
    """
    if foretold is None:
        return None
    came_true = verdict == foretold.verdict
    if foretold.verdict == "fail":
        named = broken.get(foretold.group or "", ()) == [foretold.because]
        came_true = came_true and named and set(wrong) == {foretold.group}
    return {
        "verdict": foretold.verdict,
        "because": foretold.because,
        "group": foretold.group,
        "came_true": came_true,
    }
