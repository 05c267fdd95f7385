"""What a browser with the live page open is sent, as server-sent events: the whole, then changes.

Each event is one JSON object: `{"runs": [...], "live": {...}}` is the whole, at first, for another
run, and whenever the browser was too slow for the changes; `{"runs": patch}` and `{"live": patch}`
change it (`loadtest.page.patches`). A browser that connects again begins with the whole, so nothing
is lost. Each browser has a greenlet that looks for what is new.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import msgspec

from loadtest.page.patches import Patch, apply, difference
from loadtest.timing import EVENTS_EVERY_S, EVENTS_IDLE_S

Json = dict[str, Any]

_encode = msgspec.json.encode  # the whole of 500 members is 2 MB, for which `json` holds the hub

KEPT = 20
"""How many changes are kept: a browser that is further behind is sent the whole."""


class Live:
    """The state of a run as its runner made it (`groupquake.live.state`), and its last changes."""

    def __init__(self) -> None:
        self.state: Json = {}
        self.changes = 0
        """How many there were."""
        self._kept: deque[bytes] = deque(maxlen=KEPT)

    def take(self, patch: Patch) -> None:
        """Change the state."""
        self.state = apply(self.state, patch)
        self._kept.append(_encode({"live": patch}))
        self.changes += 1

    def since(self, change: int) -> list[bytes] | None:
        """Return the changes after one as events; None if they are not kept any more."""
        newer, kept = self.changes - change, len(self._kept)
        return None if newer > kept else list(self._kept)[kept - newer :]


def stream(runs: Callable[[], list[Json]], latest: Callable[[], Live]) -> Iterator[bytes]:
    """Yield the events of one browser, in the form of an event stream, until it leaves."""
    live, change, shown = Live(), 0, list[Json]()
    idle_s = 0.0
    while True:
        now, newer = runs(), None if live is not latest() else live.since(change)
        if newer is None:
            live = latest()
            found = [_encode({"runs": now, "live": live.state})]
        else:
            patch = difference(shown, now)
            found = [*newer, *([_encode({"runs": patch})] if patch else [])]
        change, shown = live.changes, now
        yield from (b"data: %b\n\n" % one for one in found)
        idle_s = 0.0 if found else idle_s + EVENTS_EVERY_S
        if idle_s > EVENTS_IDLE_S:
            idle_s = 0.0
            yield b": nothing new\n\n"  # fails if the browser has left
        gevent.sleep(EVENTS_EVERY_S)
