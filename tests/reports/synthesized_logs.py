"""Writes a run folder with synthesized logs: groups of a recording as mutants would print them."""

import re
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from reports.judgement.recording import Recording
from selftest.mutants.log_synthesis import SynthesizedLine
from selftest.mutants.synthesized_run import with_timestamps

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ABOUT_NO_GROUP = frozenset({
    "starting", "started", "shutting_down", "shut_down", "elected", "resigned",
    "load_scheduled", "loading", "loaded", "load_ignored",
    "unload_scheduled", "unload_started", "unloaded", "unload_ignored",
    "runtime_closing", "runtime_closed", "events_closing", "events_closed", "closed_event",
})  # fmt: skip
"""Templates of lines that do not depend on groups."""


def with_own_ids(lines: Iterable[SynthesizedLine], group: str) -> list[SynthesizedLine]:
    """Give the members of a group ids of their own: a fenced line names a member and no group."""
    own = lambda found: str(uuid.uuid5(uuid.NAMESPACE_OID, group + found[0]))
    return [replace(line, text=UUID.sub(own, line.text)) for line in lines]


def write_run(recording: Recording, groups: Iterable[list[SynthesizedLine]], folder: Path) -> None:
    """Write a run folder: lines about no group as recorded, and the synthesized lines of groups.

    The journal says how long the log of a broker is that was killed: its first process was.
    """
    shutil.copytree(recording.folder, folder, ignore=shutil.ignore_patterns("*.xz"))
    logs: dict[tuple[str, int], list[tuple[bool, float, str]]] = {}
    for line in recording.lines:
        if line.template in ABOUT_NO_GROUP:
            last = line.template == "shut_down"
            logs.setdefault((line.broker, line.process), []).append((last, line.at_ms, line.text))
    for group in groups:
        for one in group:
            logs[one.broker, one.process].append((False, one.at_ms, one.text))
    start_ms = int(min(line.at_ms for line in recording.lines))
    for broker, process in sorted(logs):
        in_order = sorted(logs[broker, process], key=lambda line: line[:2])
        with (folder / "brokers" / broker / "group.log").open("a") as log:
            stamped = [(at_ms, text) for _, at_ms, text in in_order]
            lines = with_timestamps(stamped, start_ms, numbered=recording.run.parser.numbered)
            log.writelines(f"{line}\n" for line in lines)
    journal = folder / "journal.jsonl"
    for broker, *_ in recording.run.killed_between:
        lines = len(logs[min(place for place in logs if place[0] == broker)])
        measured = re.sub(r'"log_lines": \d+', f'"log_lines": {lines}', journal.read_text())
        journal.write_text(measured)
