"""Explains the findings of a verdict: adds sentences, pages, log lines and courses of events."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reference_coordinator.replay import ObservedRequest
from reports.judgement.explained import sentences
from reports.judgement.explained.course import Arrow, as_json, last_acts
from reports.judgement.explained.pages import UNMET, page_of_defect, page_of_kind, pages
from reports.judgement.explained.quoted import add_lines
from reports.judgement.findings import Finding
from reports.judgement.run.run_folder import RunFolder

Json = dict[str, Any]
QUOTED = 20  # the first so many roots are quoted
COURSES = 3  # so many groups have a course


def zero_ms(run: RunFolder) -> float:
    """Return what the times of sentences count from: the begin of the impact, else of the run."""
    began = dict(run.phases)
    return began.get("impact", min(began.values(), default=0.0))


def of_finding(
    judged: Mapping[str, Any], faults: Sequence[Json], zero: float
) -> Callable[[Finding], Json]:
    """Return what gives the sentences and the page of a root; `judged` as `page_of_defect`."""

    def about(one: Finding) -> Json:
        if one.root is not None:
            return {}
        page, kind = page_of_defect(judged, one.group), page_of_kind(one.kind)
        rule = pages()[page or kind].rule or pages()[kind].rule
        entry = {"kind": one.kind, "group": one.group, "at_ms": one.at_ms}
        done = sentences.done(entry, faults, (), zero)
        return {"says": {"done": done, **sentences.says(one, rule, zero)}, "page": page or kind}

    return about


def of_expectation(judged: Mapping[str, Any], group: str) -> str:
    """Return the page about an expectation that a group does not meet."""
    return page_of_defect(judged, group) or page_of_kind(UNMET)


def groups_of(judged: Json) -> list[str]:
    """Return the groups of which requests are needed for `add`: the first with proven roots."""
    proven = (one for one in judged["findings"] if one["root"] and one["proven"])
    return [*dict.fromkeys(one["group"] for one in proven)][:COURSES]


def add(
    judged: Json,
    run: RunFolder,
    requests: Mapping[str, Sequence[ObservedRequest]],
    smallest: Mapping[str, Sequence[Arrow]],
) -> None:
    """Complete a verdict: who did what before its roots, the lines around them, and `courses`.

    `requests` are all of some groups, `smallest` the arrows of the counterexample's group. In a
    course of another group, what was no answer stands as a note of its broker.
    """
    zero, causes = zero_ms(run), by_cause(judged["findings"])
    for first, *more in causes:
        group = first["group"]
        for one in (first, *more):
            one["says"]["done"] = sentences.done(
                one, judged["faults"], requests.get(group, ()), zero
            )
        if group in requests and group not in judged["courses"]:
            acts = last_acts(requests[group], first["at_ms"])
            arrows = smallest.get(group) or [*acts, _note(first)]
            judged["courses"][group] = as_json(arrows, zero)
    add_lines(run.path, [one for first, *more in causes for one in (first, *more)][:QUOTED])


def by_cause(found: Iterable[Json]) -> list[list[Json]]:
    """Return the roots of one cause together: those of a group with the same page.

    Proven ones come first, and an answer or a rebalance comes before the lines about it.
    """
    causes: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for one in found:
        if one["root"]:
            causes[one["group"], one["page"]].append(one)
    rank = lambda one: (not one["proven"], one["kind"].endswith("_line"))
    of_cause = (sorted(mine, key=rank) for mine in causes.values())
    return sorted(of_cause, key=lambda mine: rank(mine[0]))


def _note(root: Json) -> Arrow:
    broker = f"broker {root['log']['broker'] or '?'}"
    observed, due = sentences.plain(root["observed"]), sentences.plain(root["expected"])
    return Arrow(root["at_ms"], broker, broker, "", observed, asks=False, due=due)
