"""The wall clock of a broker in a container: it is set off while the broker runs, and read.

libfaketime, loaded into the broker's JVM before all else, adds what stands in a file of the
broker's folder to every time of the day that the JVM asks for. `System.nanoTime`, by which the JVM
also waits, stays as it is.
"""

import re
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple

from chaos.errors import ClusterError
from chaos.timing import CLOCK_CONNECT_S, CLOCK_LINE_S, CLOCK_POLL_S
from kafka_protocol.log_line import dated_ms
from scenarios.durations import now_ms

LIBRARY = "libfaketimeMT.so.1"
"""The variant with a lock: all threads of a JVM read one offset."""
FILE = "clock"
"""In the folder of a broker: the offset of its clock in seconds, with a sign."""
_TOO_LONG = struct.pack(">i", 0x7FFFFFFF)
"""The length of a request that no broker takes; each logs a line about it at once."""
_REFUSED = re.compile(rb"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] WARN .* Unexpected error ")


def variables(folder: PurePath) -> Mapping[str, str]:
    """Return what the broker's environment needs; `folder` is its folder as it sees it.

    The offset is read again a second later at most: to read it each time would cost a JVM 0.1 ms.
    Debian builds the library so that it replaces timed waits, which then return at once where the
    monotonic clock is left alone; `FORCE_MONOTONIC_FIX=0` leaves these alone, too.
    """
    return {
        "LD_PRELOAD": f"/usr/$LIB/faketime/{LIBRARY}",
        "FAKETIME_TIMESTAMP_FILE": str(folder / FILE),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        "NO_FAKE_STAT": "1",
    }


class Reading(NamedTuple):
    """How far a broker's clock is ahead of this machine's, at least and at most, in ms."""

    least_ms: int
    most_ms: int


class Clock:
    """The clock of one broker, which has a folder, a log, and a host and port for clients."""

    def __init__(self, folder: Path, server_log: Path, address: tuple[str, int]) -> None:
        self._file = folder / FILE
        self._log = server_log
        self._address = address

    def set_off(self, by_ms: int) -> None:
        """Let it run ahead by so much from now on, or behind; 0 sets it right.

        The broker notices within a second.
        """
        new = self._file.with_suffix(".new")
        try:
            new.write_text(f"{by_ms / 1000:+.3f}\n")
            new.replace(self._file)  # in one step: half an offset would be one, too
        except OSError as error:
            raise ClusterError(f"{self._file}: {error.strerror}") from error

    def read(self) -> Reading | None:
        """Let the broker write a line to its `server.log`, and compare its time with ours.

        Returns None if it writes none within 5 s, or takes no connection.
        """
        read_to = self._log.stat().st_size if self._log.exists() else 0
        sent_ms = now_ms()
        with suppress(OSError), socket.create_connection(self._address, CLOCK_CONNECT_S) as peer:
            peer.sendall(_TOO_LONG)
            deadline = time.monotonic() + CLOCK_LINE_S
            while time.monotonic() < deadline:
                if (shown_ms := _stamp_ms(self._log, read_to)) is not None:
                    return Reading(shown_ms - now_ms(), shown_ms - sent_ms + 1)
                time.sleep(CLOCK_POLL_S)
        return None


def _stamp_ms(log: Path, read_to: int) -> int | None:
    """Return the time that the first line about a refused request shows, behind a place."""
    with log.open("rb") as file:
        file.seek(read_to)
        for line in file:
            if (found := _REFUSED.match(line)) is not None:
                return dated_ms(found[1].decode())
    return None
