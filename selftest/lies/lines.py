"""Lies about coordinator lines and times: when, what of whom, and in which order."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from reports.judgement.timelines.member_lines import DOUBTFUL_LINE, FENCED
from selftest.lies.group_lines import (
    DUPLICATES,
    FAULTY,
    QUIET,
    GroupLines,
    Json,
    Lie,
    Lines,
    Tell,
    in_the_middle,
    rewritten,
)
from selftest.mutants.log_synthesis import SynthesizedLine
from selftest.timing import AGAIN_MS, HELD_ALONE_MS, HELD_MS, MOVED_MS

NUMBERS = {
    "stabilized_one_more": ("stabilized", r"with (\d+) members"),
    "later_generation": ("stabilized", r"generation (\d+) with"),
    "one_more_assigned": ("assignment", r"has (\d+) members"),
    "one_more_static": ("assignment", r"(\d+) of which"),
    "one_more_loaded": ("group_loaded", r"with (\d+) "),
}
"""Numbers in lines: the template, and what is in front of the number or behind it."""


OF_LOADS = {"left_out": ("missing_line",), "twice": ("unexpected_line",)}
"""The doubts by which a line about a load shows: a broker that is killed may lose lines."""


def changed(template: str, change: Callable[[SynthesizedLine], Lines]) -> Tell:
    """Print other lines instead of the middle one of a template."""
    return in_the_middle(
        partial(GroupLines.of_template, template=template),
        lambda log, place: change(log.lines[place]),
    )


def later(line: SynthesizedLine, by_ms: float) -> SynthesizedLine:
    """Print a line later, or earlier."""
    return replace(line, at_ms=line.at_ms + by_ms)


CHANGES: Mapping[str, Callable[[SynthesizedLine], Lines]] = {
    "left_out": lambda _: [],
    "twice": lambda line: [line, later(line, AGAIN_MS)],
    "early": lambda line: [later(line, -MOVED_MS)],
    "late": lambda line: [later(line, MOVED_MS)],
}


def lines() -> Iterator[Lie]:
    """Yield what leaves a line out, adds one, moves one, or changes a number in one."""
    for template in ("preparing", "stabilized", "assignment"):
        for what, change in CHANGES.items():
            freedom = "order of lines" if what in ("early", "late") else "lines"
            yield Lie(f"{template}_line_{what}", freedom, *QUIET, changed(template, change))
    for what, doubts in OF_LOADS.items():
        tell = changed("group_loaded", CHANGES[what])
        yield Lie(f"loaded_line_{what}", "lines", *FAULTY, tell, doubts)
    for name, (template, pattern) in NUMBERS.items():
        tell = changed(template, partial(_one_more, pattern))
        if template == "group_loaded":
            yield Lie(name, "lines", *FAULTY, tell, ("wrong_line",))
        else:
            yield Lie(name, "lines", *QUIET, tell)


def _one_more(pattern: str, line: SynthesizedLine) -> Lines:
    """Add one to the number in a line that a pattern's group finds."""
    match = re.search(pattern, line.text)
    assert match is not None, line.text
    begin, end = match.span(1)
    return [replace(line, text=f"{line.text[:begin]}{int(match[1]) + 1}{line.text[end:]}")]


def held() -> Iterator[Lie]:
    """Yield what sends an answer too late, and what gives a member an id of before."""
    one = in_the_middle(_is_free, lambda log, place: [_held(log.lines[place], HELD_MS)])
    yield Lie("heartbeat_held", "lateness", *QUIET, one)
    for api, runs in (("OFFSET_COMMIT", QUIET), ("SYNC_GROUP", DUPLICATES)):
        alone = _connected_again(partial(_overtaken, api))
        yield Lie(f"{api.lower()}_held_alone", "lateness", *runs, alone, ("unexplained",))
    yield Lie("id_given_again", "member ids", *DUPLICATES, _id_given_again)


def _is_free(log: GroupLines) -> list[int]:
    return [p for p in log.answered("HEARTBEAT") if log.free_ms(p) > HELD_MS + 100.0]


def _overtaken(api: str, log: GroupLines) -> list[int]:
    return [p for p in log.answered(api) if log.is_overtaken(p)]


def _held(line: SynthesizedLine, by_ms: float) -> SynthesizedLine:
    """Send an answer later."""

    def hold(logged: Json) -> None:
        logged["remoteTimeMs"] += by_ms
        logged["totalTimeMs"] += by_ms

    return later(rewritten(line, hold), by_ms)


def _connected_again(places: Callable[[GroupLines], list[int]]) -> Tell:
    """Hold one answer back though others show that it was due; its client connects again."""

    def rename(logged: Json) -> None:
        logged["connection"] += "0"

    def tell(log: GroupLines) -> Lines | None:
        found = places(log)
        if not found:
            return None
        place, changed_lines = found[len(found) // 2], log.lines
        changed_lines[place] = _held(changed_lines[place], HELD_ALONE_MS)
        for following in log.on_connection(place):
            changed_lines[following] = rewritten(changed_lines[following], rename)
        return changed_lines

    return tell


def _id_given_again(log: GroupLines) -> Lines | None:
    """Give an instance that returns the id of its first member, wherever the new one stands."""
    given: dict[str, dict[str, None]] = {}
    for place in log.answered("JOIN_GROUP"):
        request = log.recorded[place].request
        assert request is not None
        instance = request["request"].get("groupInstanceId")
        if instance:
            given.setdefault(instance, {})[request["response"]["memberId"]] = None
    several = next((list(ids) for ids in given.values() if len(ids) > 1), None)
    if several is None:
        return None
    first, last = several[0], several[-1]
    return [replace(line, text=line.text.replace(last, first)) for line in log.lines]


def fenced_lines() -> Iterator[Lie]:
    """Yield what changes the line that a member was fenced: whether, when, and about whom."""
    lies: dict[str, Tell] = {
        "left_out": changed(FENCED, CHANGES["left_out"]),
        "twice": changed(FENCED, lambda line: [line, later(line, MOVED_MS)]),
        "late": changed(FENCED, CHANGES["late"]),
        "of_another_member": _says("member", lambda says: f"{says['member']}0"),
        "of_the_holder": _says("member", lambda says: says["holder"]),
        "of_another_instance": _says("instance", lambda says: f"{says['instance']}0"),
        "of_another_operation": _says("operation", lambda _: "leave-group"),
        "with_another_holder": _says("holder", lambda says: says["member"]),
    }
    for name, tell in lies.items():
        doubts = (DOUBTFUL_LINE,) if name == "with_another_holder" else ()
        yield Lie(f"fenced_line_{name}", "lines", *DUPLICATES, tell, doubts)


def _says(name: str, instead: Callable[[Mapping[str, str]], str]) -> Tell:
    """Print another value of a field of the line, given all its fields."""

    def other(log: GroupLines, place: int) -> Lines:
        message, grammar = log.recorded[place].row["message"], log.recording.run.grammar
        says = grammar.said(FENCED, message)
        printed = grammar.template(FENCED).printed({**says, name: instead(says)})
        line = log.lines[place]
        return [replace(line, text=line.text.replace(message, printed))]

    return in_the_middle(partial(GroupLines.of_template, template=FENCED), other)
