"""Explains what is wrong in a verdict, findings and unmet expectations alike.

It adds sentences, pages, log lines and courses of events, and `why` a verdict is no `pass`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from reference_coordinator.replay import ObservedRequest
from reports.judgement.explained import sentences
from reports.judgement.explained.course import Arrow, acts_until, as_json, course_of
from reports.judgement.explained.pages import UNMET, page_of_defect, page_of_kind, pages
from reports.judgement.explained.quoted import add_lines
from reports.judgement.findings import Finding
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.rows import Json
from reports.judgement.run.run_folder import RunFolder

QUOTED = 20  # the first so many of what is wrong are quoted
COURSES = 3  # so many groups have a course


def zero_ms(run: RunFolder) -> float:
    """Return what the times of sentences count from: the begin of the impact, else of the run."""
    began = dict(run.phases)
    return began.get("impact", min(began.values(), default=0.0))


def of_finding(judged: Mapping[str, Any], zero: float, one: Finding) -> Json:
    """Return the page and the sentences of a root; `judged` as `page_of_defect`."""
    if one.root is not None:
        return {}
    page, rule = _page_and_rule(judged, one.group, one.kind)
    return {"page": page, "says": sentences.says(one, rule, zero)}


def of_expectation(judged: Mapping[str, Any], item: Json, more: str) -> Json:
    """Return the page and the sentences of an expectation not met; `more` is behind its number."""
    page, rule = _page_and_rule(judged, item["group"], UNMET)
    return {"page": page, "says": sentences.of_number(item, rule, more)}


def _page_and_rule(judged: Mapping[str, Any], group: str, kind: str) -> tuple[str, str]:
    defect, of_kind = page_of_defect(judged, group), page_of_kind(kind)
    page = defect or of_kind
    return page, pages()[page].rule or pages()[of_kind].rule


def groups_of(judged: Json) -> list[str]:
    """Return the groups of which requests are needed for `add`: the first that are wrong."""
    wrong = (*(first for first, *_ in by_cause(judged["findings"])), *judged["expectations_unmet"])
    return [*dict.fromkeys(one["group"] for one in wrong)][:COURSES]


def add(
    judged: Json,
    run: RunFolder,
    requests: Mapping[str, Sequence[ObservedRequest]],
    smallest: Mapping[str, Sequence[Arrow]],
    places: LogPlaces,
) -> None:
    """Complete a verdict: who did what before what is wrong, lines around it, `courses`, and `why`.

    `requests` are all of some groups, `smallest` the arrows of the counterexample's group. In a
    course of another group, what was no answer stands as a note of its broker. An unmet expectation
    has the place of the last request by which a member of its group came or went.
    """
    zero, found = zero_ms(run), [*chain.from_iterable(by_cause(judged["findings"]))]
    for one in (*found, *judged["expectations_unmet"]):
        group = one["group"]
        asked = requests.get(group, ())
        one["says"] = {"done": sentences.done(one, judged["faults"], asked, zero), **one["says"]}
        acts = acts_until(asked, one["at_ms"])
        if acts and "log" not in one:
            broker, _, number = acts[-1].id.rpartition(":")
            file, line = places.place(broker, int(number))
            one["log"] = {"broker": broker, "file": file, "line": line}
        if "log" in one and group in requests and group not in judged["courses"]:
            arrows = smallest.get(group) or [*course_of(acts), _note(one)]
            judged["courses"][group] = as_json(arrows, zero)
    placed = (one for one in (*found, *judged["expectations_unmet"]) if "log" in one)
    add_lines(run.path, [*islice(placed, QUOTED)])
    judged["why"] = why(judged)


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


def why(judged: Json) -> list[str]:
    """Return the reasons of a verdict other than `pass`, the worst first."""
    doubts = zip(judged["unknown_because"], judged["settled_by"], strict=True)
    causes, clients = by_cause(judged["findings"]), judged["clients"]
    wrong = (*(first for first, *_ in causes), *judged["expectations_unmet"])
    broken = clients["says"] if clients["verdict"] == "broken" and clients["counts"] else ()
    return [
        *(f"{reason} (to settle it: {settled_by})" for reason, settled_by in doubts),
        *(f"{one['says']['observed']} Due: {one['says']['due']}" for one in wrong),
        *(f"your client: {what}" for what in broken),
    ]


def _note(wrong: Json) -> Arrow:
    broker = f"broker {wrong['log']['broker'] or '?'}"
    what = f"{wrong['what']}: " if "what" in wrong else ""
    due, observed = (what + sentences.plain(str(wrong[side])) for side in ("expected", "observed"))
    return Arrow(wrong["at_ms"], broker, broker, "", observed, asks=False, due=due)
