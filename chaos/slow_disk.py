"""A disk that stalls: the file system of a broker's data freezes for a while, again and again."""

import shlex
import subprocess
import threading
import time

from chaos.clusters import ClusterError, commands
from chaos.clusters.volume import Volume

_PROBE = "probe"
_WRITES = (
    "while began=$(date +%s%N); do printf x >{0}; rm {0};"
    " echo $((($(date +%s%N) - began) / 1000000)); sleep 0.05; done"
)
"""Writes again and again, and prints how many milliseconds each took."""


class SlowDisk:
    """Freezes and thaws a disk, and measures how long writes of ours take meanwhile."""

    def __init__(self, volume: Volume, name: str) -> None:
        self.longest_ms = 0
        """How long a write took at most."""
        self.failure: ClusterError | None = None
        """Why it could not be frozen again."""
        self._volume = volume
        self._name = name
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._writer: subprocess.Popen[bytes] | None = None

    def stall(self, stall_s: float, period_s: float) -> None:
        """Freeze it for the first part of each period, from now on."""
        self._volume.freeze()
        # A process of its own: one that waits for a frozen disk cannot be killed.
        self._writer = commands.start(
            _WRITES.format(shlex.quote(str(self._volume.path / _PROBE))),
            self._volume.path.parent.parent,
            subprocess.PIPE,
            subprocess.DEVNULL,
        )
        self._threads = [
            threading.Thread(target=self._stall, args=(stall_s, period_s), name=self._name),
            threading.Thread(target=self._measure, args=(self._writer,), name=self._name),
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let writes go on for good."""
        self._over.set()
        self._volume.thaw()
        if self._writer is not None:
            commands.kill(self._writer)
        for thread in self._threads:
            thread.join()
        self._volume.thaw()  # it may have been frozen in between

    def write_ms(self) -> int:
        """Write a byte; return how long that took."""
        began = time.monotonic()
        (self._volume.path / _PROBE).write_bytes(b"x")
        (self._volume.path / _PROBE).unlink()
        return round((time.monotonic() - began) * 1000)

    def _stall(self, stall_s: float, period_s: float) -> None:
        try:
            while True:
                self._over.wait(stall_s)
                self._volume.thaw()
                if self._over.wait(period_s - stall_s):
                    return
                self._volume.freeze()
        except ClusterError as error:
            self.failure = error

    def _measure(self, writer: "subprocess.Popen[bytes]") -> None:
        with writer:
            assert writer.stdout is not None
            for took_ms in writer.stdout:
                self.longest_ms = max(self.longest_ms, int(took_ms))
