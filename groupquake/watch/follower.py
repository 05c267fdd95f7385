"""Files and pipes in; what they gave, counted, out, batch after batch."""

import selectors
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

from groupquake.timing import FOLLOW_S
from groupquake.watch.counting import Counting
from groupquake.watch.files import FollowedFile
from groupquake.watch.group_counts import Event
from groupquake.watch.pipes import Pipe


class Batch(NamedTuple):
    """What happened; what is the matter with sources; whether anything changed in the counts."""

    events: list[Event]
    notices: list[str]
    is_new: bool


class Follower:
    """Reads what there is of all sources, then waits a moment."""

    def __init__(
        self, counting: Counting, files: Mapping[str, FollowedFile], pipes: Iterable[Pipe]
    ) -> None:
        """Take the sources, files by their names."""
        self._counting, self._files, self._pipes = counting, files, [*pipes]
        self._ready = selectors.PollSelector()  # it takes files as standard input, too

    def batches(self, is_stopped: Callable[[], bool], *, is_kept: bool) -> Iterator[Batch]:
        """Yield batches until it is stopped, or nothing more can come.

        What is pending when it is stopped is counted at once, unless it `is_kept` for another one.
        """
        is_over = lambda: not self._files and all(pipe.is_over for pipe in self._pipes)
        while not is_stopped() and not is_over():
            yield self._batch()
        if is_over() or not is_kept:
            yield Batch(self._counting.settle(inf), [], is_new=True)

    def close(self) -> None:
        """End the commands, and close the files."""
        for pipe in self._pipes:
            pipe.close()
        for file in self._files.values():
            file.close()
        self._ready.close()

    def _batch(self) -> Batch:
        now_s, counting = time.monotonic(), self._counting
        was_pending, has_read = bool(counting.state.pending), False
        for name, file in self._files.items():
            if texts := file.read():
                counting.take(name, texts, now_s)
                has_read = True
        for pipe in self._pipes:
            if pipe.may_open(now_s):
                counting.begins(pipe.name)
                self._ready.register(pipe.fileno(), selectors.EVENT_READ, pipe)
        for key, _ in self._ready.select(0 if has_read else FOLLOW_S):
            counting.take(key.data.name, key.data.read(now_s), now_s)
            has_read = True
            if not key.data.is_open:
                self._ready.unregister(key.fd)
        events = counting.settle(time.monotonic())
        return Batch(events, [*self._notices()], has_read or was_pending)

    def _notices(self) -> Iterator[str]:
        pipes = {pipe.name: pipe for pipe in self._pipes}
        named: dict[str, FollowedFile | Pipe] = {**self._files, **pipes}
        for name, source in named.items():
            if source.notice:
                yield f"{name}: {source.notice}"
                source.notice = ""
