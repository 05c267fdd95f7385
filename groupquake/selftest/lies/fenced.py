"""Lies about fenced lines: about whom they are, when, and whether there is one."""

import re
from collections.abc import Iterator
from dataclasses import replace

from groupquake.selftest.lies.group_lines import Lie, Lines
from groupquake.selftest.lies.lines import MOVED_MS, Tell, changed
from groupquake.selftest.mutants.log_synthesis import SynthesizedLine
from reports.judgement.fenced_lines import FENCED

RUNS = ("duplicate-instance-id", "static")
"""Runs with such lines, and their group."""
WORDS = re.compile(
    r"(Request memberId=)(\S+)( for static member with groupInstanceId=)(\S+)"
    r"( is fenced by \w+ memberId=)(\S+)( during operation )(\S+)"
)
MEMBER, INSTANCE, HOLDER, OPERATION = 2, 4, 6, 8
"""The groups of `WORDS`."""


def _says(name: int, instead: str) -> Tell:
    """Print another text for a group; `instead` may name groups."""

    def change(line: SynthesizedLine) -> Lines:
        parts = "".join(instead if group == name else rf"\g<{group}>" for group in range(1, 9))
        text, count = WORDS.subn(parts, line.text)
        assert count == 1, line.text
        return [replace(line, text=text)]

    return changed(FENCED, change)


def _lies() -> Iterator[Lie]:
    later = lambda line: replace(line, at_ms=line.at_ms + MOVED_MS)
    lies: dict[str, Tell] = {
        "left_out": changed(FENCED, lambda _: []),
        "twice": changed(FENCED, lambda line: [line, later(line)]),
        "late": changed(FENCED, lambda line: [later(line)]),
        "of_another_member": _says(MEMBER, rf"\g<{MEMBER}>0"),
        "of_the_holder": _says(MEMBER, rf"\g<{HOLDER}>"),
        "of_another_instance": _says(INSTANCE, rf"\g<{INSTANCE}>0"),
        "of_another_operation": _says(OPERATION, "leave-group"),
        "with_another_holder": _says(HOLDER, rf"\g<{MEMBER}>"),
    }
    for name, tell in lies.items():
        yield Lie(f"fenced_line_{name}", "lines", *RUNS, tell)


FENCES = tuple(_lies())
