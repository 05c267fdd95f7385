"""Lies about fenced lines: about whom they are, when, and whether there is one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from reports.judgement.timelines.line_fields import FENCED
from selftest.lies.group_lines import GroupLines, Lie, Lines, middle
from selftest.lies.lines import MOVED_MS, Tell, changed
from selftest.mutants.log_synthesis import SynthesizedLine

RUNS = ("duplicate-instance-id", "static")
"""Runs with such lines, and their group."""


def _says(name: str, instead: Callable[[Mapping[str, str]], str]) -> Tell:
    """Print another value of a field of the line, given all its fields."""

    def tell(log: GroupLines) -> Lines | None:
        place = middle(log.of_template(FENCED))
        if place is None:
            return None
        message, grammar = log.recorded[place].row["message"], log.recording.run.grammar
        says = grammar.said(FENCED, message)
        other = grammar.template(FENCED).printed({**says, name: instead(says)})
        lines = log.lines
        lines[place] = replace(lines[place], text=lines[place].text.replace(message, other))
        return lines

    return tell


def _later(line: SynthesizedLine) -> SynthesizedLine:
    return replace(line, at_ms=line.at_ms + MOVED_MS)


def _lies() -> Iterator[Lie]:
    lies: dict[str, Tell] = {
        "left_out": changed(FENCED, lambda _: []),
        "twice": changed(FENCED, lambda line: [line, _later(line)]),
        "late": changed(FENCED, lambda line: [_later(line)]),
        "of_another_member": _says("member", lambda says: f"{says['member']}0"),
        "of_the_holder": _says("member", lambda says: says["holder"]),
        "of_another_instance": _says("instance", lambda says: f"{says['instance']}0"),
        "of_another_operation": _says("operation", lambda _: "leave-group"),
        "with_another_holder": _says("holder", lambda says: says["member"]),
    }
    for name, tell in lies.items():
        yield Lie(f"fenced_line_{name}", "lines", *RUNS, tell)


FENCES = tuple(_lies())
