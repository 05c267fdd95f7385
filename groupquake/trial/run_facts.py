"""What a run folder tells beside its verdict: what its client calls itself, the machine's load."""

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.clusters.interface import GROUP_LOG
from reports.judgement.run import machine_log
from reports.judgement.run.run_folder import MACHINE
from scenarios.regular_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SOFTWARE = re.compile(rb'"softwareName":"([^"]+)","softwareVersion":"([^"]*)"')
_UNKNOWN = b"unknown"  # what brokers write of a client that does not say (KIP-511)


def software(folder: Path) -> str | None:
    """Return name and version that members gave with ApiVersions (KIP-511), if they did."""
    for log in sorted(folder.glob(f"brokers/*/{GROUP_LOG}")):
        with open_regular(log) as lines:
            for line in lines:
                named = b'"JOIN_GROUP"' in line and _SOFTWARE.search(line)
                if named and named[1] != _UNKNOWN:
                    return b" ".join(named.groups()).decode(errors="replace")
    return None


def load(folder: Path) -> tuple[float, float] | None:
    """Return the lowest and the highest load average (of 1 min) of a run, if it is known."""
    entries: Sequence[Mapping[str, Any]] = ()
    with suppress(OSError), open_regular(folder / MACHINE) as file:
        entries, _ = machine_log.read(file.read())
    loads = [one["load"] for one in entries if "load" in one]
    return (min(loads), max(loads)) if loads else None
