"""What makes a verdict unknown, in words: one line for each cause."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from reports.judgement import as_json
from reports.judgement.findings import Finding
from reports.judgement.run.disturbance import Disturbance, Source, clock
from reports.judgement.run.run_folder import RunFolder
from reports.timing import NEVER_ENDS_MS

Json = dict[str, Any]
LISTED_ALREADY = (Source.LOG, Source.REQUESTS, Source.CLOCK, Source.HISTORY, Source.UNREAD)
"""Where a disturbance is a doubt in itself, which the verdict has anyway."""
FEW = 5
"""So many findings of one cause are listed each."""
SHOWN = 20
"""How many disturbances a verdict lists that explain nothing."""


def described(one: Disturbance) -> str:
    """Say in words what a disturbance is, and when it was."""
    began = f" from {clock(one.from_ms)}" if one.from_ms > 0 else ""
    ended = f" until {clock(one.until_ms)}" if one.until_ms < NEVER_ENDS_MS else ""
    return f"{one.because}{began}{ended}{' UTC' if began or ended else ''}"


def doubts(found: Iterable[Finding]) -> Iterator[str]:
    """Say why findings are not proven: one line for all of a group with one cause."""
    causes: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for one in found:
        is_listed = one.may_be is not None and one.may_be.source in LISTED_ALREADY
        if one.root is None and not one.proven and not is_listed:
            because = (
                f"{one.kind}, which proves nothing"
                if one.may_be is None
                else (f"may be due to this: {described(one.may_be)}")
            )
            causes[one.group, because].append(one)
    for (group, because), mine in causes.items():
        many = "1 finding" if len(mine) == 1 else f"{len(mine)} findings"
        yield f"group {group}: {many}, the first at {clock(mine[0].at_ms)} UTC: {because}"


def first_of_each(found: Sequence[Finding]) -> tuple[list[Finding], dict[int, int]]:
    """Leave out what many findings of a group say again that one cause explains.

    Returns the others, and how many findings each stands for, by place, if for more than itself.
    """
    alike = lambda one: (one.group, one.kind, one.may_be)
    counts = Counter(alike(one) for one in found if one.root is None and not one.proven)
    shown: list[Finding] = []
    places: dict[int, int] = {}
    times: dict[int, int] = {}
    seen = set[object]()
    for place, one in enumerate(found):
        if one.root is not None:
            if one.root not in places:
                continue
            one = replace(one, root=places[one.root])  # noqa: PLW2901
        elif not one.proven and counts[alike(one)] > FEW:
            if alike(one) in seen:
                continue
            seen.add(alike(one))
            times[len(shown)] = counts[alike(one)]
        places[place] = len(shown)
        shown.append(one)
    return shown, times


def listed(
    run: RunFolder,
    disturbances: Iterable[Disturbance],
    found: Iterable[Finding],
    changed: Iterable[Disturbance],
) -> list[Json]:
    """List the disturbances of a run; those that make a finding, or a count, unknown come first."""
    used = Counter(one.may_be for one in found if one.may_be is not None and one.root is None)
    used.update(changed)
    began = dict(run.phases)
    from_ms, until_ms = min(began.values(), default=-inf), began.get("teardown", inf)
    others = [one for one in disturbances if one not in used and one.meets(from_ms, until_ms)]
    return [as_json.disturbance(one, used[one]) for one in [*used, *others[:SHOWN]]]
