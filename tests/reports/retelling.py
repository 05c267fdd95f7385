"""Writes a run folder whose brokers tell the stories of a recording anew, with lies among them."""

import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from groupquake.mutants.recording import Recording
from groupquake.mutants.storyteller import Told

ABOUT_NO_GROUP = frozenset({
    "starting", "started", "shutting_down", "shut_down", "elected", "resigned",
    "load_scheduled", "loading", "loaded", "load_ignored",
    "unload_scheduled", "unload_started", "unloaded", "unload_ignored",
    "runtime_closing", "runtime_closed", "events_closing", "events_closed", "closed_event",
})  # fmt: skip
"""Templates of lines that a broker prints whatever its groups do."""


def retell(recording: Recording, stories: Iterable[list[Told]], folder: Path) -> None:
    """Write a run folder with the lines about no group as recorded, and all the stories."""
    shutil.copytree(recording.folder, folder, ignore=shutil.ignore_patterns("*.xz"))
    lives: dict[tuple[str, int], list[tuple[bool, float, str]]] = {}
    for line in recording.lines:
        if line.template in ABOUT_NO_GROUP:
            text = f"{line.thread} {line.level} {line.text} ({line.logger})"
            last = line.template == "shut_down"
            lives.setdefault((line.broker, line.life), []).append((last, line.at_ms, text))
    for story in stories:
        for told in story:
            lives[told.broker, told.life].append((False, told.at_ms, told.text))
    for broker, life in sorted(lives):
        in_order = sorted(lives[broker, life], key=lambda told: told[:2])
        with (folder / "brokers" / broker / "group.log").open("a") as log:
            log.writelines(_stamped(recording, [(at_ms, text) for _, at_ms, text in in_order]))


def _stamped(recording: Recording, lines: list[tuple[float, str]]) -> Iterator[str]:
    """Put the times before lines, as the recorded release does."""
    start = int(min(line.at_ms for line in recording.lines))
    for number, (at_ms, text) in enumerate(lines, 1):
        if recording.numbered:
            yield f"{number} {int(at_ms)} {round((at_ms - start) * 1e6)} {text}\n"
        else:
            now = datetime.fromtimestamp(int(at_ms) / 1000, UTC)
            yield f"{now:%Y-%m-%d %H:%M:%S},{int(at_ms) % 1000:03} {text}\n"
