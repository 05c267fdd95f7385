"""Lines that the brokers of recorded runs wrote."""

import lzma
from collections.abc import Iterator
from pathlib import Path

from kafka_protocol.request_log import COMPLETED

RECORDED = Path(__file__).parents[1] / "recorded"


def lines_in(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the brokers and their lines of the runs in a folder, whose name is a pattern."""
    for log in sorted(RECORDED.glob(f"{folder}/brokers/*/group.log.xz")):
        for line in lzma.decompress(log.read_bytes()).decode().splitlines():
            yield log.parent.name, line


def requests_in(folder: str) -> Iterator[str]:
    """Yield the bodies of the lines about completed requests."""
    for _, line in lines_in(folder):
        if COMPLETED in line:
            yield line[line.index(COMPLETED) : line.rindex(" (")]
