"""Lies about coordinator lines and times: when, what of whom, and in which order."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from selftest.lies.answers import FAULTY, QUIET
from selftest.lies.group_lines import GroupLines, Json, Lie, Lines, middle, rewritten
from selftest.mutants.log_synthesis import SynthesizedLine

Tell = Callable[[GroupLines], Lines | None]
DUPLICATES = ("duplicate-instance-id", "static")
"""Runs in which instances return."""
TEMPLATES = ("preparing", "stabilized", "assignment", "group_loaded")
"""Some coordinator lines."""
MOVED_MS = 1_500.0
"""By how much a line is moved: by more than what waits for it may be late."""
HELD_MS = 2_000.0
"""How much later an answer is sent: what a member sends next leaves no room for more."""
HELD_ALONE_MS = 2_500.0
"""How much later an answer is sent that others overtake."""


def changed(template: str, change: Callable[[SynthesizedLine], Lines]) -> Tell:
    """Print other lines instead of the middle one of a template."""

    def tell(log: GroupLines) -> Lines | None:
        place = middle(log.of_template(template))
        if place is None:
            return None
        lines = log.lines
        return [*lines[:place], *change(lines[place]), *lines[place + 1 :]]

    return tell


def _moved(template: str, by_ms: float) -> Tell:
    """Print a line earlier or later."""
    return changed(template, lambda line: [replace(line, at_ms=line.at_ms + by_ms)])


def _left_out(template: str) -> Tell:
    """Leave a line out."""
    return changed(template, lambda _: [])


def _twice(template: str) -> Tell:
    """Print a line once more, two seconds later."""
    return changed(template, lambda line: [line, replace(line, at_ms=line.at_ms + 2_000.0)])


def _more(template: str, pattern: str) -> Tell:
    """Add one to the number in a line that a pattern's group finds."""

    def change(line: SynthesizedLine) -> Lines:
        match = re.search(pattern, line.text)
        assert match is not None, line.text
        begin, end = match.span(1)
        return [replace(line, text=f"{line.text[:begin]}{int(match[1]) + 1}{line.text[end:]}")]

    return changed(template, change)


def _held(api: str, by_ms: float) -> Tell:
    """Send an answer later, on a connection that is silent so long."""

    def tell(log: GroupLines) -> Lines | None:
        place = middle([p for p in log.answered(api) if log.free_ms(p) > by_ms + 100.0])
        if place is None:
            return None
        lines = log.lines
        later = rewritten(lines[place], lambda logged: _hold(logged, by_ms))
        lines[place] = replace(later, at_ms=later.at_ms + by_ms)
        return lines

    return tell


def _held_alone(api: str, by_ms: float) -> Tell:
    """Hold one answer back though others show that it was due; its client connects again."""

    def tell(log: GroupLines) -> Lines | None:
        place = middle([p for p in log.answered(api) if log.is_overtaken(p)])
        if place is None:
            return None
        lines, held = log.lines, log.recorded[place]
        later = rewritten(lines[place], lambda logged: _hold(logged, by_ms))
        lines[place] = replace(later, at_ms=later.at_ms + by_ms)
        for at in range(place + 1, len(lines)):
            other = log.recorded[at]
            if other.request is not None and other.row["connection"] == held.row["connection"]:
                lines[at] = rewritten(lines[at], _connected_again)
        return lines

    return tell


def _hold(logged: Json, by_ms: float) -> None:
    logged["remoteTimeMs"] += by_ms
    logged["totalTimeMs"] += by_ms


def _connected_again(logged: Json) -> None:
    logged["connection"] += "0"


def _id_given_again(log: GroupLines) -> Lines | None:
    """Give an instance that returns the id of its first member, wherever the new one stands."""
    given: dict[str, list[str]] = {}
    for place in log.answered("JOIN_GROUP"):
        request = log.recorded[place].request
        assert request is not None
        instance = request["request"].get("groupInstanceId")
        member = request["response"]["memberId"]
        known = given.setdefault(instance or "", [])
        if instance and member not in known:
            known.append(member)
    several = next((ids for ids in given.values() if len(ids) > 1), None)
    if several is None:
        return None
    first, last = several[0], several[-1]
    return [replace(line, text=line.text.replace(last, first)) for line in log.lines]


def _lies() -> Iterator[Lie]:
    for template in TEMPLATES:
        name = template.removeprefix("group_")
        runs = FAULTY if name == "loaded" else QUIET
        yield Lie(f"{name}_line_left_out", "lines", *runs, _left_out(template))
        yield Lie(f"{name}_line_twice", "lines", *runs, _twice(template))
        if name != "loaded":
            for by_ms in (-MOVED_MS, MOVED_MS):
                when = "early" if by_ms < 0 else "late"
                yield Lie(f"{name}_line_{when}", "order of lines", *runs, _moved(template, by_ms))
    numbers = {
        "stabilized_one_more": ("stabilized", r"with (\d+) members"),
        "later_generation": ("stabilized", r"generation (\d+) with"),
        "one_more_assigned": ("assignment", r"has (\d+) members"),
        "one_more_static": ("assignment", r"(\d+) of which"),
        "one_more_loaded": ("group_loaded", r"with (\d+) "),
    }
    for name, (template, pattern) in numbers.items():
        runs = FAULTY if name == "one_more_loaded" else QUIET
        yield Lie(name, "lines", *runs, _more(template, pattern))
    yield Lie("heartbeat_held", "lateness", *QUIET, _held("HEARTBEAT", HELD_MS))
    commit, sync = (_held_alone(api, HELD_ALONE_MS) for api in ("OFFSET_COMMIT", "SYNC_GROUP"))
    yield Lie("offset_commit_held_alone", "lateness", *QUIET, commit)
    yield Lie("sync_group_held_alone", "lateness", *DUPLICATES, sync)
    yield Lie("id_given_again", "member ids", *DUPLICATES, _id_given_again)


LINES = tuple(_lies())
