"""Faults of a broker's disk and of its wall clock."""

import time
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from scenarios import timing
from scenarios.durations import PositiveMs, SignedMs, format_ms
from scenarios.faults.base import Finding, grouped
from scenarios.faults.targeted import BrokerAway, BrokerFault
from scenarios.problems import Path, Problem
from scenarios.setup import Setup

if TYPE_CHECKING:
    from chaos.clusters.clock import Reading
    from chaos.clusters.volume import SlowDisk

_NO_SPACE = "No space left on device"


class DiskFull(BrokerAway):
    """Leaves no free byte on the disk of the brokers; each ends at its next write.

    Afterwards the space is free again, and the brokers start.
    """

    noun = "full disk"
    process = "killed"
    needs = "volume"
    undo_name = "free-disk"
    undo_words = "free the disk, start again after {}"

    fault: Literal["disk.full"]

    def inject(self) -> None:
        """Fill the disk; the broker has ended when this returns, or goes on nevertheless."""
        self._probe.note_logs()
        self._context.cluster.volume(self._broker).fill()
        self._probe.await_end(timing.FULL_DISK_ENDS_S, self._context.stop)
        self._hit.details["log_lines"] = self._probe.log_lines()

    def verify(self) -> Finding:
        """Return whether the broker found no space, by its own log, and its port is closed."""
        free = self._context.cluster.volume(self._broker).free_bytes
        said = self._probe.has_logged(_NO_SPACE)
        takes, door = self._probe.door()
        line = f"{'a' if said else 'no'} line '{_NO_SPACE}' in its server.log"
        return Finding(said and not takes, f"{free} bytes free on its disk, {line}, {door}")

    def heal(self) -> str:
        """Free the disk and start the broker; it takes requests when this returns."""
        self._context.cluster.volume(self._broker).free()
        self._context.end_broker(self._broker)  # its process may be ending still
        self._context.cluster.act("start", self._broker)
        return "disk freed, started, and ready for requests"


class DiskSlow(BrokerFault):
    """Makes writes of the brokers wait, again and again, as an overloaded disk does."""

    noun = "slow disk"
    needs = "volume"
    undo_name = "thaw-disk"
    undo_words = "let writes go on after {}"

    fault: Literal["disk.slow"]
    lasts_ms: PositiveMs
    """How long the disk is slow."""
    stall_ms: PositiveMs = 400
    """How long writes wait each time."""
    period_ms: PositiveMs = 500
    """From the start of one wait to the start of the next."""

    @cached_property
    def _disk(self) -> "SlowDisk":
        return self._context.slow_disk(self._broker)

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, and that writes get on in between."""
        yield from super().checks(experiment, path)
        if self.period_ms <= self.stall_ms:
            yield Problem(
                (*path, "period"),
                f"{format_ms(self.period_ms)} is not longer than a stall; write more than "
                f"{format_ms(self.stall_ms)}",
            )

    def inject(self) -> None:
        """Begin with the first stall."""
        self._disk.stall(self.stall_ms / 1000, self.period_ms / 1000)

    def verify(self) -> Finding:
        """Return whether a write of ours had to wait."""
        took_ms, failure = self._disk.longest_ms, self._disk.failure
        evidence = f"a write to the disk of {self._hit.target} took {grouped(took_ms)} ms"
        if failure:
            return Finding(False, f"{evidence}, and it could not be frozen: {failure}")
        return Finding(took_ms >= self.stall_ms / 2, evidence)

    def heal(self) -> str:
        """Let writes go on for good."""
        self._disk.end()
        return "writes go on"

    def verify_healed(self) -> Finding:
        """Wait until a write goes through at once, and the broker is in sync again."""
        took_ms = self._disk.write_ms()
        back = super().verify_healed()
        evidence = f"a write took {grouped(took_ms)} ms, {back.evidence}"
        return Finding(back.holds and took_ms < self.stall_ms / 2, evidence)


class ClockSkew(BrokerFault):
    """Sets the wall clocks of the brokers forward or back, as a wrong time server does.

    At the end they jump back. The monotonic clock is left as it is.
    """

    noun = "clock skew"
    needs = "clock"
    undo_name = "set-clock"
    undo_words = "set right after {}"

    fault: Literal["clock.skew"]
    by_ms: SignedMs
    """How far the clock is ahead, or behind with a minus; 500 ms at least."""
    lasts_ms: PositiveMs
    """How long it is wrong."""

    _before: "Reading | None" = None

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, and that it can be seen."""
        yield from super().checks(experiment, path)
        if abs(self.by_ms) < timing.LEAST_SKEW_MS:
            least = format_ms(timing.LEAST_SKEW_MS)
            yield Problem((*path, "by"), f"is too little to be seen; write {least} or more")
        if self.lasts_ms < timing.SHORTEST_SKEW_MS:
            least = format_ms(timing.SHORTEST_SKEW_MS)
            yield Problem(
                (*path, "lasts"), f"is too short for a broker to notice; write {least} or more"
            )

    def inject(self) -> None:
        """Set the clock off; the broker has noticed when this returns, or it never does."""
        self._before = self._read()
        self._set_off(self.by_ms)

    def verify(self) -> Finding:
        """Return whether the time in its log is off by so much."""
        now = self._read()
        return Finding(
            self._is_off_by(self.by_ms, now),
            f"server.log of {self._hit.target} is {_told(now)}, {_told(self._before)} before the"
            " fault",
        )

    def heal(self) -> str:
        """Set the clock right; the broker has noticed when this returns, or it never does."""
        self._set_off(0)
        return "clock set right"

    def verify_healed(self) -> Finding:
        """Return whether the time in its log is as before, once the broker is in sync."""
        back, now = super().verify_healed(), self._read()
        return Finding(back.holds and self._is_off_by(0, now), f"{_told(now)}, {back.evidence}")

    def _read(self) -> "Reading | None":
        return self._context.cluster.clock(self._broker).read()

    def _set_off(self, by_ms: int) -> None:
        self._context.cluster.clock(self._broker).set_off(by_ms)
        deadline = time.monotonic() + timing.CLOCK_NOTICED_S
        while not self._is_off_by(by_ms, self._read()) and time.monotonic() < deadline:
            time.sleep(timing.CLOCK_POLL_S)

    def _is_off_by(self, by_ms: int, now: "Reading | None") -> bool:
        """Whether the clock is certainly nearer to this offset than to the other one."""
        if now is None or self._before is None:
            return False
        near_ms = abs(self.by_ms) / 2
        least_ms = now.least_ms - self._before.most_ms
        most_ms = now.most_ms - self._before.least_ms
        return by_ms - near_ms < least_ms and most_ms < by_ms + near_ms


def _told(reading: "Reading | None") -> str:
    if reading is None:
        return "without a line about our request"
    least, most = grouped(reading.least_ms), grouped(reading.most_ms)
    return f"{least} to {most} ms ahead of our clock"
