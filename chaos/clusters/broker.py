"""One broker: a JVM of our own as a child process, and what it says about itself."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from chaos.clusters.complaint import complaint
from chaos.clusters.interface import BrokerInfo, ClusterError

_GOODBYE = "] Shutdown complete. (org.apache.kafka.coordinator.group.GroupCoordinatorService)"


class Broker:
    """Starts, watches and signals one broker. Its folder holds everything it writes."""

    def __init__(self, info: BrokerInfo, folder: Path) -> None:
        self.info = info
        self.folder = folder
        self._stdout = folder / "stdout.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._sizes_at_launch: dict[Path, int] = {}

    @property
    def pid(self) -> int | None:
        """The process id while the broker runs (or is paused), else None."""
        process = self._process
        return process.pid if process and process.poll() is None else None

    def launch(self, command: Sequence[str]) -> None:
        """Start the JVM; it is ready some seconds later. Its logs go on where they ended."""
        if self.pid is not None:
            raise ClusterError(f"broker {self.info.id} already runs (process {self.pid})")
        _end_line(self.info.group_log)
        logs = (self.info.group_log, self.info.server_log, self._stdout)
        self._sizes_at_launch = {log: _size(log) for log in logs}
        with self._stdout.open("ab") as stdout:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C in the terminal is for the runner alone
            )

    def is_ready(self) -> bool:
        """Whether the broker said that it takes requests of clients since it was launched.

        An open port is no proof: the controller's opens seconds before (seen on 4.3).
        Raises ClusterError with the broker's own words if it has ended.
        """
        process = self._process
        if process is not None and process.poll() is not None:
            raise ClusterError(
                f"broker {self.info.id} ended with status {process.returncode} before it was"
                f" ready: {self.complaint()}; see {self.folder}"
            )
        ready = f"listenerType=BROKER, nodeId={self.info.id}] Enabling request processing."
        return ready in self._said(self.info.server_log)

    def has_closed_groups(self) -> bool:
        """Whether the group coordinator's last line is written: nothing follows in `group.log`.

        No request is answered any more by then: the broker has closed its connections (4.3).
        """
        log = self.info.group_log
        return _GOODBYE in self._said(log, since=_size(log) - 1000)

    def complaint(self) -> str:
        """Return the line that says best what the broker has to complain of since its launch."""
        return complaint(self._said(self.info.server_log) + "\n" + self._said(self._stdout))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the JVM. Raises ClusterError if the broker does not run."""
        if self._process is None or self.pid is None:
            raise ClusterError(f"broker {self.info.id} does not run; start it first")
        self._process.send_signal(number)

    def ended_within(self, timeout_s: float) -> bool:
        """Wait until the process has ended; False if it still runs after `timeout_s`."""
        if self._process is not None:
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return False
        return True

    def _said(self, log: Path, since: int = 0) -> str:
        """Return what a log holds from byte `since` on, and from the last launch on."""
        if not log.exists():
            return ""
        with log.open("rb") as file:
            file.seek(max(since, self._sizes_at_launch[log]))
            return file.read().decode(errors="replace")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _end_line(log: Path) -> None:
    """Keep a line that SIGKILL cut off apart from the first one of the next start."""
    if _size(log) > 0:
        with log.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.write(b"\n")
