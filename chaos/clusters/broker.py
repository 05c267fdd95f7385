"""One broker as a child process: a JVM of our own."""

import signal
import subprocess
from pathlib import Path

from chaos.clusters.child import Child, freeze, launch
from chaos.clusters.interface import BrokerInfo, ClusterError
from chaos.clusters.local_broker import LocalBroker, Words


class Broker(LocalBroker):
    """A broker that is started by `command`."""

    def __init__(self, info: BrokerInfo, folder: Path, words: Words) -> None:
        super().__init__(info, folder, words)
        self.command: tuple[str, ...] = ()
        self._process: Child | None = None

    @property
    def runs(self) -> bool:
        """Whether the process exists, paused or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return None if self._process is None else self._process.poll()

    @property
    def process_id(self) -> int | None:
        """The process id; None while it does not run."""
        return self._process.pid if self._process is not None and self.runs else None

    def kill(self) -> None:
        """SIGKILL."""
        self._running().kill()

    def terminate(self) -> None:
        """SIGCONT, then SIGTERM."""
        process = self._running()
        process.send_signal(signal.SIGCONT)
        process.terminate()

    def pause(self) -> None:
        """SIGSTOP; no thread runs when this returns."""
        process = self._running()
        if not freeze(process):
            raise ClusterError(
                f"broker {self.info.id}: process {process.pid} still runs 10 s after SIGSTOP;"
                " the machine may be overloaded"
            )

    def resume(self) -> None:
        """SIGCONT."""
        self._running().send_signal(signal.SIGCONT)

    def ended_within(self, timeout_s: float) -> bool:
        """Wait for the process."""
        if self._process is not None:
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return False
        return True

    def _launch(self) -> None:
        self._process = launch(self.command, self.stdout)

    def _running(self) -> Child:
        if self._process is None or self._process.poll() is not None:
            raise self._not_running()
        return self._process
