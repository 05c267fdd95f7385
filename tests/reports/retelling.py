"""Writes a run folder whose brokers tell the stories of a recording anew, with lies among them."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from groupquake.selftest.mutants.log_synthesis import SynthesizedLine
from groupquake.selftest.mutants.synthesized_run import with_timestamps
from reports.judgement.recording import Recording

ABOUT_NO_GROUP = frozenset({
    "starting", "started", "shutting_down", "shut_down", "elected", "resigned",
    "load_scheduled", "loading", "loaded", "load_ignored",
    "unload_scheduled", "unload_started", "unloaded", "unload_ignored",
    "runtime_closing", "runtime_closed", "events_closing", "events_closed", "closed_event",
})  # fmt: skip
"""Templates of lines that a broker prints whatever its groups do."""


def retell(recording: Recording, stories: Iterable[list[SynthesizedLine]], folder: Path) -> None:
    """Write a run folder with the lines about no group as recorded, and all the stories."""
    shutil.copytree(recording.folder, folder, ignore=shutil.ignore_patterns("*.xz"))
    lives: dict[tuple[str, int], list[tuple[bool, float, str]]] = {}
    for line in recording.lines:
        if line.template in ABOUT_NO_GROUP:
            last = line.template == "shut_down"
            lives.setdefault((line.broker, line.process), []).append((last, line.at_ms, line.text))
    for story in stories:
        for told in story:
            lives[told.broker, told.process].append((False, told.at_ms, told.text))
    start_ms = int(min(line.at_ms for line in recording.lines))
    for broker, life in sorted(lives):
        in_order = sorted(lives[broker, life], key=lambda told: told[:2])
        with (folder / "brokers" / broker / "group.log").open("a") as log:
            told = [(at_ms, text) for _, at_ms, text in in_order]
            lines = with_timestamps(told, start_ms, numbered=recording.parser.numbered)
            log.writelines(f"{line}\n" for line in lines)
