"""`disk.slow`: the file system of a broker's data freezes for a while, again and again."""

import shlex
import subprocess
import threading
import time
from functools import partial

from chaos.clusters import Cluster, ClusterError, commands
from chaos.clusters.volume import Volume
from chaos.faults.broker_probe import BrokerProbe
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import grouped
from chaos.faults.one_broker import OneBroker, cluster_errors
from scenarios import faults as declared

_PROBE = "probe"
_WRITES = (
    "while began=$(date +%s%N); do printf x >{0}; rm {0};"
    " echo $((($(date +%s%N) - began) / 1000000)); sleep 0.05; done"
)
"""Writes again and again, and prints how many milliseconds each took."""


class DiskSlow(OneBroker):
    """Freezes and thaws the disk of one broker; how long writes of ours take is the witness."""

    UNDO = "thaw-disk"

    def __init__(
        self,
        broker: int,
        group: str | None,
        fault: declared.DiskSlow,
        cluster: Cluster,
        probe: BrokerProbe,
    ) -> None:
        super().__init__(broker, group, fault.lasts_ms, cluster, probe)
        self._stall_s, self._period_s = fault.stall_ms / 1000, fault.period_ms / 1000
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._writer: subprocess.Popen[bytes] | None = None
        self._longest_ms = 0
        self._failed: ClusterError | None = None

    def inject(self) -> None:
        """Begin with the first stall."""
        with cluster_errors():
            volume = self._cluster.volume(self._broker)
            volume.freeze()
        # A process of its own: one that waits for a frozen disk cannot be killed.
        self._writer = commands.start(
            _WRITES.format(shlex.quote(str(volume.path / _PROBE))),
            volume.path.parent.parent,
            subprocess.PIPE,
            subprocess.DEVNULL,
        )
        for work in (partial(self._stall, volume), self._measure):
            self._threads.append(threading.Thread(target=work, name=self.target))
            self._threads[-1].start()

    def verify(self) -> Finding:
        """Return whether a write of ours had to wait."""
        evidence = f"a write to the disk of {self.target} took {grouped(self._longest_ms)} ms"
        if self._failed:
            return Finding(False, f"{evidence}, and it could not be frozen: {self._failed}")
        return Finding(self._longest_ms >= self._stall_s * 500, evidence)

    def heal(self) -> str:
        """Let writes go on for good."""
        self._over.set()
        with cluster_errors():
            self._cluster.volume(self._broker).thaw()
            if self._writer is not None:
                commands.kill(self._writer)
            for thread in self._threads:
                thread.join()
            self._cluster.volume(self._broker).thaw()  # it may have been frozen in between
        return "writes go on"

    def verify_healed(self, stop: threading.Event) -> Finding:
        """Wait until a write goes through at once, and the broker is in sync again."""
        took_s = _write(self._cluster.volume(self._broker))
        back = self._probe.await_back(stop)
        evidence = f"a write took {grouped(round(took_s * 1000))} ms, {back.evidence}"
        return Finding(back.holds and took_s < self._stall_s / 2, evidence)

    def _stall(self, volume: Volume) -> None:
        """Freeze it for the first part of each period, from now on; it is frozen."""
        try:
            while True:
                self._over.wait(self._stall_s)
                volume.thaw()
                if self._over.wait(self._period_s - self._stall_s):
                    return
                volume.freeze()
        except ClusterError as error:
            self._failed = error

    def _measure(self) -> None:
        assert self._writer is not None
        with self._writer as writer:
            assert writer.stdout is not None
            for took_ms in writer.stdout:
                self._longest_ms = max(self._longest_ms, int(took_ms))


def _write(volume: Volume) -> float:
    """Write a byte to the disk; return how long that took, in seconds."""
    began = time.monotonic()
    (volume.path / _PROBE).write_bytes(b"x")
    (volume.path / _PROBE).unlink()
    return time.monotonic() - began


def make(fault: declared.DiskSlow, context: FaultContext) -> tuple[DiskSlow, ...]:
    """Return the slow disk of each broker that the fault hits now."""
    return tuple(
        DiskSlow(broker, group, fault, context.cluster, context.probe(broker))
        for broker, group in context.brokers_of(fault)
    )
