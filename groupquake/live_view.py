"""The live view of a run in progress: its rebalances and faults, from the run folder.

Rebalances come from coordinator lines: the templates `preparing`, `stabilized` (without a member
count before 2.8) and `empty`. The live view judges nothing and skips lines that match none of them;
the analysis judges all lines.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.journal import Entry
from chaos.tail import Tail
from kafka_protocol.coordinator_lines import finder_of
from kafka_protocol.log_line import written_ms
from kafka_protocol.request_log import COMPLETED
from loadtest.history import clock

Row = dict[str, str]

SHOWN = 200
"""The most rows of a table: the latest ones."""

_REBALANCES = finder_of("preparing", "stabilized", "empty")
_CLIENT_REASON = re.compile(r"; client reason: not provided(?=\)?$)")


@dataclass(slots=True)
class _Rebalance:
    at_ms: int
    group: str
    old: str
    reason: str
    new: str = "…"
    members: str = ""
    took_ms: int | None = None

    def row(self) -> Row:
        return {
            "at": clock(self.at_ms),
            "group": self.group,
            "generation": f"{self.old} → {self.new}",
            "reason": self.reason,
            "members": self.members,
            "duration": "" if self.took_ms is None else f"{self.took_ms / 1000:.3f} s",
        }


class Rebalances:
    """Collects rebalances from the lines of group.log."""

    def __init__(self) -> None:
        """Start without rebalances."""
        self._all: list[_Rebalance] = []
        self._in_progress: dict[str, _Rebalance] = {}

    def take(self, line: str) -> None:
        """Process one line."""
        if COMPLETED in line:
            return
        try:
            match _REBALANCES.find(line):
                case "preparing", fields:
                    self._begin(written_ms(line), **fields)
                case "stabilized", {"group": group, "generation": generation, **more}:
                    self._settle(group, generation, more.get("members", ""), written_ms(line))
                case "empty", {"group": group, "generation": generation}:
                    self._settle(group, generation, "0", written_ms(line))
        except ValueError:
            return

    def _begin(self, at_ms: int, group: str, generation: str, reason: str, **_: str) -> None:
        begun = _Rebalance(at_ms, group, generation, _CLIENT_REASON.sub("", reason))
        self._in_progress[group] = begun
        self._all.append(begun)

    def _settle(self, group: str, generation: str, members: str, at_ms: int) -> None:
        rebalance = self._in_progress.pop(group, None)
        if rebalance is not None:
            rebalance.new, rebalance.members = generation, members
            rebalance.took_ms = at_ms - rebalance.at_ms

    def rows(self) -> list[Row]:
        """Return the rows, the latest first."""
        latest = sorted(self._all, key=lambda rebalance: rebalance.at_ms)[-SHOWN:]
        return [rebalance.row() for rebalance in reversed(latest)]


def fault_rows(entries: list[Entry]) -> list[Row]:
    """Return the rows of the faults in a journal, the latest first."""
    rows: dict[str, Row] = {}
    for entry in entries:
        match entry:
            case {"event": "intent", "fault_id": id_, "fault": fault, "target": target}:
                rows[id_] = {
                    "id": id_,
                    "fault": fault,
                    "target": target,
                    "injected": "",
                    "healed": "",
                    "verified": "",
                    "witness": "",
                }
            case {"event": "injected", "fault_id": id_, "at_ms": at_ms} if id_ in rows:
                rows[id_]["injected"] = clock(at_ms)
            case {"event": "healed", "fault_id": id_, "at_ms": at_ms, "healed": healed} if (
                id_ in rows
            ):
                rows[id_]["healed"] = clock(at_ms) if healed else "NOT HEALED"
            case {"event": "verified", "fault_id": id_, "verified": verified} if id_ in rows:
                rows[id_]["verified"] = "yes" if verified else "NO"
                rows[id_]["witness"] = str(entry.get("witness", ""))
    return list(rows.values())[: -SHOWN - 1 : -1]


class LiveView:
    """Follows the logs and the journal of a run folder; files may appear later."""

    def __init__(self, folder: Path) -> None:
        """Start at the first lines."""
        self._folder = folder
        self._tails: dict[Path, Tail] = {}
        self._rebalances = Rebalances()
        self._journal: list[Entry] = []

    def tables(self) -> dict[str, Any]:
        """Read the appended lines, and return both tables."""
        for log in self._folder.glob("brokers/*/group.log"):
            for line in self._appended(log):
                self._rebalances.take(line)
        self._journal += map(json.loads, self._appended(self._folder / "journal.jsonl"))
        return {"rebalances": self._rebalances.rows(), "faults": fault_rows(self._journal)}

    def _appended(self, path: Path) -> Iterator[str]:
        return self._tails.setdefault(path, Tail(path)).appended()
