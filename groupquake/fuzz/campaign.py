"""Plays many sequences at the same time, each in its own group, and writes their event files."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

from groupquake.fuzz.script import Step
from groupquake.fuzz.sequence import Played, play, play_again
from groupquake.fuzz.stall_detector import StallDetector
from groupquake.fuzz.target import Target

PROGRESS_EVERY_S = 5.0
WARM_UP = 40
"""The number of sequences that are played first and not judged: a broker that has just started
responds late, and late responses allow many orders of requests."""


def header(target: Target, played: Played) -> dict[str, Any]:
    """Return the header of a sequence's event file; a `bulky` sequence is an outage throughout."""
    outages = {"outages": [[0, round(played.log.now_ms())]]} if played.bulky else {}
    stalls = [{"broker": "", "from_ms": begun, "until_ms": ended} for begun, ended in played.stalls]
    return {
        "kafka": target.kafka,
        "coordinator": target.coordinator,
        "config": dict(target.config),
        "group": played.group,
        "sequence": played.number,
        **({"logged": {"stalls": stalls}} if stalls else {}),
        **outages,
    }


def event_file(target: Target, played: Played) -> str:
    """Return a sequence as an event file."""
    text = StringIO()
    played.log.write(text, header(target, played))
    return text.getvalue()


@dataclass
class Campaign:
    """Plays sequences of a seed on a broker, up to `in_flight` at once, with stall detection."""

    target: Target
    stall_detector: StallDetector
    seed: int
    in_flight: int
    progress: Callable[[str], None]

    def play(self, count: int, file: Path) -> Iterator[Played]:
        """Play `count` random sequences; yields each when it is written to `file`."""
        writing = threading.Lock()

        def one(number: int) -> Played:
            played = self._with_stalls(lambda: play(self.target, self.seed, number))
            text = event_file(self.target, played)
            with writing, file.open("a") as out:
                out.write(text)
            return played

        yield from self._all(one, range(count), count)

    def warm_up(self) -> None:
        """Play sequences that are not judged."""
        with ThreadPoolExecutor(self.in_flight) as threads:
            for _ in threads.map(lambda n: play(self.target, self.seed, -n), range(1, WARM_UP + 1)):
                pass
        self.progress("the broker is warm")

    def play_again(
        self, scripts: Sequence[Sequence[Step]], name: str, *, bulky: bool
    ) -> list[Played]:
        """Play scripts; return the sequences in the order of the scripts."""

        def one(place: int) -> Played:
            group = f"fuzz-{self.seed}-{name}-{place}"
            script = scripts[place]
            return self._with_stalls(
                lambda: play_again(self.target, script, group, place, bulky=bulky)
            )

        with ThreadPoolExecutor(self.in_flight) as threads:
            return list(threads.map(one, range(len(scripts))))

    def _with_stalls(self, play_one: Callable[[], Played]) -> Played:
        """Play a sequence, and add the stalls of the broker during it."""
        played = play_one()
        ended_s = time.monotonic()
        origin_s = ended_s - played.log.now_ms() / 1000
        stalls = tuple(
            (round((begun_s - origin_s) * 1000, 3), round((until_s - origin_s) * 1000, 3))
            for begun_s, until_s in self.stall_detector.stalls(origin_s, ended_s)
        )
        return replace(played, stalls=stalls)

    def _all(
        self, one: Callable[[int], Played], numbers: Iterable[int], count: int
    ) -> Iterator[Played]:
        began = shown_s = time.monotonic()
        requests = 0
        with ThreadPoolExecutor(self.in_flight) as threads:
            futures: list[Future[Played]] = [threads.submit(one, number) for number in numbers]
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    played = future.result()
                    requests += len(played.log.exchanges)
                    now = time.monotonic()
                    if now > shown_s + PROGRESS_EVERY_S or done == count:
                        shown_s = now
                        rate = requests / (now - began)
                        self.progress(
                            f"played {done} of {count}: {requests:,} requests, {rate:.0f} a second"
                        )
                    yield played
            finally:
                for future in futures:
                    future.cancel()
