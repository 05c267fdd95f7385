"""An incident read in this process, without a command and without a page."""

import io
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from reports.incident.analysis import Asked
from reports.incident.analysis import incident_of as read_by
from reports.incident.rows import text_lines
from reports.incident.small import Small
from reports.judgement.log.log_bytes import unpacked

RECORDED = Path(__file__).parents[2] / "recorded" / "stock"
"""Stock logs of real brokers, a folder each; rotated, and compressed with xz here."""


def recorded(name: str) -> dict[str, bytes]:
    """Return the files of a recorded log by their names, as the broker's machine had them."""
    files = sorted((RECORDED / name).iterdir())
    return {file.stem: lzma.decompress(file.read_bytes()) for file in files}


def texts_of(name: str, content: bytes) -> Iterable[str]:
    """Return the lines of a file, unpacked."""
    return text_lines(unpacked(io.BytesIO(content), name))


def incident_of(files: Mapping[str, bytes], **asked: str) -> dict[str, Any]:
    """Return the content of `incident.json`."""
    with TemporaryDirectory() as folder:
        paths = {Path(folder) / name: name for name in files}
        for path, name in paths.items():
            path.write_bytes(files[name])
        return read_by(Small(paths), Asked(ZoneInfo("UTC"), **asked))[0]
