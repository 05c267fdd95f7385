"""Detects stalls of the broker, or of the machine that it shares with the fuzzer.

In a stall, timers expire late and responses come late, which is no fault of the coordinator. The
detector sends heartbeats on its own connection for a group that no sequence uses.
"""

import time
from dataclasses import dataclass, field
from typing import Self

from groupquake.background import Background
from groupquake.fuzz.timing import ANSWER_WITHIN_S, BEAT_EVERY_S, STILL_S
from loadtest.wire import Connection, WireError

BEAT = {"groupId": "fuzz-stall-detector", "generationId": -1, "memberId": ""}


@dataclass
class StallDetector(Background):
    """Sends heartbeats to a broker as long as the context lasts, in one thread.

    Times are those of `time.monotonic`, in s.
    """

    thread_name = "stall-detector"
    host: str
    port: int
    _stalls: list[tuple[float, float]] = field(default_factory=list)
    _last_response_s: float = field(default_factory=time.monotonic)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._last_response_s = time.monotonic()
        return super().__enter__()

    def stalls(self, from_s: float, until_s: float) -> list[tuple[float, float]]:
        """List the stalls between two times, cut to them."""
        waits_since_s = self._last_response_s  # read first: a response may end this stall meanwhile
        known = [*self._stalls, (waits_since_s, time.monotonic())]
        cut = ((max(begun, from_s), min(ended, until_s)) for begun, ended in known)
        return [(begun, ended) for begun, ended in cut if ended - begun > STILL_S]

    def _run(self) -> None:
        connection = Connection(self.host, self.port, "stall-detector")
        try:
            while not self._over.wait(BEAT_EVERY_S):
                connection.ask("HEARTBEAT", 0, BEAT, ANSWER_WITHIN_S)
                self._note_response()
        except WireError:
            return  # the broker is gone; the sequences find that out too
        finally:
            connection.close()

    def _note_response(self) -> None:
        now_s = time.monotonic()
        if now_s - self._last_response_s > STILL_S:
            self._stalls.append((self._last_response_s, now_s))
        self._last_response_s = now_s
