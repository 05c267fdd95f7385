"""One broker on this machine, process or container: its folder and its logs."""

import os
from abc import ABC, abstractmethod
from pathlib import Path

from chaos.clusters.interface import BrokerInfo
from chaos.clusters.java import error_line
from chaos.errors import ClusterError
from scenarios.external import Verb


class LocalBroker(ABC):
    """Starts, watches and breaks one broker. Its folder holds everything it writes.

    `ready` is in `server.log` once it accepts requests of clients; `shutdown` ends the last line of
    its group coordinator.
    """

    def __init__(self, info: BrokerInfo, ready: str, shutdown: str) -> None:
        self.info = info
        self.folder = info.group_log.parent
        self.stdout = self.folder / "stdout.log"
        self._ready = ready.format(info.id)
        self._shutdown = shutdown
        self._sizes_at_launch: dict[Path, int] = {}

    @property
    @abstractmethod
    def exit_status(self) -> int | None:
        """What it ended with, negative for a signal of a process; None while it runs, or is paused.

        It is 0 before the first launch.
        """

    @property
    def runs(self) -> bool:
        """Whether it runs, or is paused."""
        return self.exit_status is None

    @property
    @abstractmethod
    def process_id(self) -> int | None:
        """The process id of the JVM as this machine has it; None if it is not known."""

    @abstractmethod
    def send(self, verb: Verb) -> None:
        """Kill, stop, pause or resume it. Raises ClusterError if it does not run."""

    @abstractmethod
    def ended_within(self, timeout_s: float) -> bool:
        """Wait until it has ended; False if it still runs after `timeout_s`."""

    @abstractmethod
    def _launch(self) -> None:
        """Start the JVM, for the first time or again."""

    def launch(self) -> None:
        """Start it; it is ready some seconds later. It appends to its logs."""
        if self.runs:
            raise ClusterError(f"broker {self.info.id} already runs")
        _end_line(self.info.group_log)
        logs = (self.info.group_log, self.info.server_log, self.stdout)
        self._sizes_at_launch = {log: _size(log) for log in logs}
        self._launch()

    def is_ready(self) -> bool:
        """Whether the broker has logged since its launch that it accepts requests of clients.

        An open port is no proof: the controller's opens seconds before (seen on 4.3).
        Raises ClusterError with the error line of the broker if it has ended.
        """
        status = self.exit_status
        if status is not None:
            raise ClusterError(
                f"broker {self.info.id} ended with status {status} before it was"
                f" ready: {self.error_line()}; see {self.folder}"
            )
        return self._ready in self._logged(self.info.server_log)

    @property
    def log_bytes(self) -> int:
        """How long its `group.log` is."""
        return _size(self.info.group_log)

    def has_closed_groups(self) -> bool:
        """Whether the group coordinator's last line is written: nothing follows in `group.log`.

        No request is answered any more by then: the broker has closed its connections (3.9, 4.3).
        """
        return self._shutdown in self._logged(self.info.group_log, since=self.log_bytes - 1000)

    def error_line(self) -> str:
        """Return the line that says best what went wrong since the launch of the broker."""
        return error_line(self._logged(self.info.server_log) + "\n" + self._logged(self.stdout))

    def _not_running(self) -> ClusterError:
        return ClusterError(f"broker {self.info.id} does not run; start it first")

    def _logged(self, log: Path, since: int = 0) -> str:
        """Return what a log holds from byte `since` on, and from the last launch on."""
        if not log.exists():
            return ""
        with log.open("rb") as file:
            file.seek(max(since, self._sizes_at_launch[log]))
            return file.read().decode(errors="replace")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _end_line(log: Path) -> None:
    """End a line that SIGKILL cut off, so that the next start begins a new one."""
    if _size(log) > 0:
        with log.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.write(b"\n")
