"""An incident read in this process, without Spark: the same functions, joined by Python."""

import io
import lzma
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from reports.incident.group_incident import row_about
from reports.incident.lines.form import Form
from reports.incident.lines.reader import REJECTED, Line, Reader, SplitSummary
from reports.incident.log_files import log_files
from reports.incident.summary import summary
from reports.judgement.log.log_bytes import FORMS, OTHERS, unpacked

RECORDED = Path(__file__).parents[2] / "recorded" / "stock"
"""Stock logs of real brokers, a folder each; rotated, and compressed with xz here."""


def recorded(name: str) -> dict[str, bytes]:
    """Return the files of a recorded log by their names, as the broker's machine had them."""
    files = sorted((RECORDED / name).iterdir())
    return {file.stem: lzma.decompress(file.read_bytes()) for file in files}


def texts_of(name: str, content: bytes) -> Iterable[str]:
    if name.endswith((*FORMS, *OTHERS)):
        lines = unpacked(io.BytesIO(content), name)
        return (line.decode("utf-8", "replace").rstrip("\r") for line in lines)
    *lines, last = content.decode("utf-8", "replace").split("\n")
    return [line.rstrip("\r") for line in (*lines, *([last] if last else []))]


def incident_of(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the content of `incident.json`, but for what only Spark's tables order."""
    splits: list[tuple[str, int, SplitSummary]] = []
    lines: dict[str, list[Line]] = {}
    rejected: list[dict[str, Any]] = []
    for name, content in files.items():
        if not content:
            continue
        reader = Reader(Form(), ZoneInfo("UTC"))
        lines[name] = []
        for number, text in enumerate(texts_of(name, content), 1):
            read = reader.read(text)
            lines[name] += read.lines
            if read.status == REJECTED:
                rejected.append(
                    {"file": name, "number": number, "why": read.why, "line": text[:300]}
                )
        splits.append((name, 0, reader.summary()))
    found = log_files(files, splits)
    copies, once = _counted_once(lines, {file["path"]: file["broker"] for file in found})
    by_group: dict[str, list[Line]] = defaultdict(list)
    for line in sorted(once, key=lambda line: line.at_ms):
        if line.group is not None:
            by_group[line.group].append(line)
    of_groups = [row_about(name, about, None) for name, about in by_group.items()]
    of = lambda table: [row for group in of_groups for row in group[table]]
    shown = {
        "longest": of("rebalances"), "worst_members": of("members"),
        "coordinator_moves": [], "fenced": [], "rejected": rejected[:100],
    }  # fmt: skip
    templates = Counter((line.broker, line.template) for line in once)
    for file in found:
        file["copies"] = copies.get(file["path"], 0)
    groups = {one["group"]: msgspec.json.decode(one["incident"]) for one in of_groups}
    return summary(found, groups, templates, shown, "UTC")


def _counted_once(
    lines: Mapping[str, list[Line]], brokers: Mapping[str, str]
) -> tuple[dict[str, int], list[Line]]:
    copies: Counter[str] = Counter()
    seen: set[tuple[str, str, int]] = set()
    once = []
    for file, broker in brokers.items():
        again: Counter[str] = Counter()
        for line in lines.get(file, ()):
            of_broker = line._replace(broker=line.broker or broker)
            at = f"{line.at_ms} {line.text}"
            again[at] += 1
            key = (of_broker.broker, at, again[at])
            copies[file] += key in seen
            if key not in seen:
                seen.add(key)
                once.append(of_broker)
    return {file: count for file, count in copies.items() if count}, once
